import type { SpaceId } from "../base/ids.ts";
import type { CommitBatch } from "../change/fold/commit-batch.ts";
import type { Space } from "./space.ts";

/** What happens to the account's spaces, by name; the arguments that listeners get. */
interface SpaceEventMap {
  /** After a commit, once its writers were answered. Also for the account's own space. */
  committed: [space: Space, batch: CommitBatch];
  /** The ACL has changed: members, rights or keys may have changed. Also for the account's own space. */
  aclChanged: [space: Space];
  /** Opened. Whatever is built on a space is built by listeners of this event. */
  opened: [space: Space];
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

type Listeners = { [K in keyof SpaceEventMap]: Set<(...args: SpaceEventMap[K]) => void> };

/**
 * The one place where others are notified of what happens to spaces. Listeners must not throw; they are called in the order
 * in which they were added.
 */
export interface SpaceEvents {
  /** Answers how to stop. */
  on<K extends keyof SpaceEventMap>(name: K, listener: (...args: SpaceEventMap[K]) => void): () => void;
  emit<K extends keyof SpaceEventMap>(name: K, ...args: SpaceEventMap[K]): void;
  /** Called before a space closes, while it is open; it closes once all have resolved. Answers how to stop. */
  onClosing(listener: (space: Space) => void | Promise<void>): () => void;
  /** Resolves when everything that is built on a space has let go of it, last built first. */
  closing(space: Space): Promise<void>;
}

export function createSpaceEvents(): SpaceEvents {
  const listenersByName: Listeners = {
    committed: new Set(),
    aclChanged: new Set(),
    opened: new Set(),
    closed: new Set(),
    known: new Set(),
    over: new Set(),
    ending: new Set(),
    ended: new Set(),
  };
  const closingListeners = new Set<(space: Space) => void | Promise<void>>();
  return {
    on(name, listener) {
      listenersByName[name].add(listener);
      return () => void listenersByName[name].delete(listener);
    },
    emit(name, ...args) {
      for (const listener of [...listenersByName[name]]) listener(...args);
    },
    onClosing(listener) {
      closingListeners.add(listener);
      return () => void closingListeners.delete(listener);
    },
    async closing(space) {
      for (const listener of [...closingListeners].reverse()) await listener(space);
    },
  };
}
