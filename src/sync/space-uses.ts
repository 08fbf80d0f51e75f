import type { SpaceId } from "../base/ids.ts";

/** Which spaces are being worked with: these must stay open. */
export function createSpaceUses() {
  const counts = new Map<SpaceId, number>();
  return {
    async hold<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T> {
      counts.set(spaceId, (counts.get(spaceId) ?? 0) + 1);
      try {
        return await work();
      } finally {
        const left = counts.get(spaceId)! - 1;
        if (left > 0) counts.set(spaceId, left);
        else counts.delete(spaceId);
      }
    },
    isHeld: (spaceId: SpaceId): boolean => counts.has(spaceId),
  };
}
