import type { ChangeOrigin, ReadFrontiers } from "../../../src/account/own-space/read-frontiers.ts";
import type { ObjectId } from "../../../src/base/ids.ts";

/** What an account has read, over its devices: as the tech space keeps it. */
export function createFrontiers(): ReadFrontiers {
  const read = new Map<string, number>();
  const listeners = new Set<(objectId: ObjectId) => void>();
  const key = (objectId: string, { writer }: Pick<ChangeOrigin, "writer">) => `${objectId} ${writer}`;
  return {
    covers: (objectId, origin) => (read.get(key(objectId, origin)) ?? 0) >= origin.seq,
    async advance(_spaceId, objectId, origins) {
      for (const origin of origins)
        read.set(key(objectId, origin), Math.max(origin.seq, read.get(key(objectId, origin)) ?? 0));
      for (const listener of listeners) listener(objectId);
    },
    onChanged(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
