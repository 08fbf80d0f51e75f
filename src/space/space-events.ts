import type { SpaceId } from "../base/ids.ts";
import type { CommitBatch } from "../change/fold/commit-batch.ts";
import type { Space } from "./space.ts";

/** What happens to the account's spaces, by name; the arguments that listeners get. */
interface SpaceEventMap {
  /** After a commit, when its writers were answered. Of the account's own space, too. */
  committed: [space: Space, batch: CommitBatch];
  /** The ACL has moved: members, rights or keys may be others. Of the account's own space, too. */
  aclChanged: [space: Space];
  /** Opened. What is built upon a space is built by listeners. */
  opened: [space: Space];
  closed: [spaceId: SpaceId];
  /** The row or the root of a space that is kept in step was written, here or by another device. */
  known: [spaceId: SpaceId];
  /** Its row says that it is over for this account; it may be kept until those concerned have heard of that. */
  over: [spaceId: SpaceId];
  /** About to leave this device, and still open. */
  ending: [spaceId: SpaceId];
  /** Its data have left this device: deleted, left, or ended by others. */
  ended: [spaceId: SpaceId];
}

type Listeners = { [K in keyof SpaceEventMap]: Set<(...args: SpaceEventMap[K]) => void> };

/** The one place where others hear of spaces. Listeners must not throw; they are called in the order of their coming. */
export interface SpaceEvents {
  /** Answers how to stop. */
  on<K extends keyof SpaceEventMap>(name: K, listener: (...args: SpaceEventMap[K]) => void): () => void;
  emit<K extends keyof SpaceEventMap>(name: K, ...args: SpaceEventMap[K]): void;
  /** Called before a space closes, while it is open; it closes once all have resolved. Answers how to stop. */
  onClosing(listener: (space: Space) => void | Promise<void>): () => void;
  /** Resolves when all that is built upon a space has let go of it, last built first. */
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
