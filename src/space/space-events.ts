import { createEvents, type Events } from "../base/events.ts";
import type { SpaceId } from "../base/ids.ts";
import type { CommitBatch } from "../change/fold/commit-batch.ts";
import type { Space } from "./space.ts";

/** What happens to the account's spaces, by name; the arguments that listeners get. */
interface SpaceEventMap {
  /** After a commit in an open space, the account's own among them, once its writers were answered. */
  committed: [space: Space, batch: CommitBatch];
  /** The ACL of an open space has changed: members, rights or keys. Also that of the account's own space. */
  aclChanged: [space: Space];
  /** Opened. Whatever is built on a space is built by listeners of this event. */
  opened: [space: Space];
  /** About to close, and still open: it closes once all that its listeners wait for has ended. */
  closing: [space: Space, waitFor: (work: Promise<void>) => void];
  closed: [spaceId: SpaceId];
  /** The row or the root of a space that is kept in sync was written, here or by another device. */
  known: [spaceId: SpaceId];
  /** Its row says that the space is over for this account. It may be kept until everybody concerned has been notified. */
  over: [spaceId: SpaceId];
  /** About to leave this device, and still open. */
  ending: [spaceId: SpaceId];
  /** Its data have left this device: the space was deleted or left, or others ended it. */
  ended: [spaceId: SpaceId];
}

/**
 * The one place where others are notified of what happens to any space. Who is concerned with one space alone listens to that
 * (`space.events`), so that its commits call nobody else.
 */
export interface SpaceEvents extends Events<SpaceEventMap> {
  /**
   * Notifies of commits and moves of the ACL in a space from now on. Called as soon as it is open, so that those who listen to
   * every space hear before those who listen to this one.
   */
  follow(space: Space): void;
  /** Notifies of `closing`. Resolves when everything that is built on the space has let go of it. */
  closing(space: Space): Promise<void>;
}

export function createSpaceEvents(): SpaceEvents {
  const events = createEvents<SpaceEventMap>();
  return {
    ...events,
    follow(space) {
      events.relay("committed", space.events, space);
      events.relay("aclChanged", space.events, space);
    },
    async closing(space) {
      const waited: Promise<void>[] = [];
      events.emit("closing", space, (work) => void waited.push(work));
      await Promise.all(waited);
    },
  };
}
