import type { SpaceId } from "../base/ids.ts";
import type { CommitBatch } from "../change/fold/commit-batch.ts";
import type { Space } from "./space.ts";

/** What happens to the account's spaces, its own among them, by name; the arguments that listeners get. */
interface SpaceEventMap {
  /** After a commit, when its writers were answered. */
  committed: [space: Space, batch: CommitBatch];
  /** The ACL has moved: members, rights or keys may be others. */
  aclChanged: [space: Space];
  /** Opened, with all that is built upon it. */
  opened: [space: Space];
  /** Asked to close, and still open. */
  closing: [space: Space];
  closed: [spaceId: SpaceId];
  /** Its data have left this device: deleted, left, or ended by others. */
  ended: [spaceId: SpaceId];
}

/** The one place where others hear of spaces. Listeners must not throw; each is called in the order of its coming. */
export interface SpaceEvents {
  /** Answers how to stop. */
  on<K extends keyof SpaceEventMap>(name: K, listener: (...args: SpaceEventMap[K]) => void): () => void;
  emit<K extends keyof SpaceEventMap>(name: K, ...args: SpaceEventMap[K]): void;
}

export function createSpaceEvents(): SpaceEvents {
  const listenersByName: { [K in keyof SpaceEventMap]: Set<(...args: SpaceEventMap[K]) => void> } = {
    committed: new Set(),
    aclChanged: new Set(),
    opened: new Set(),
    closing: new Set(),
    closed: new Set(),
    ended: new Set(),
  };
  return {
    on(name, listener) {
      listenersByName[name].add(listener);
      return () => void listenersByName[name].delete(listener);
    },
    emit(name, ...args) {
      for (const listener of [...listenersByName[name]]) listener(...args);
    },
  };
}
