import { hexToBytes, readUint64, writeUint64 } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclState } from "./state.ts";

const LOWEST_KEY = "acl-lowest-lost-position";

/**
 * Records of this log that lost their position when their branch lost, and the changes that name them. Writes happen inside
 * the commit queue's transaction.
 */
export function createLostPositions(store: SpaceStore) {
  /** No change with a position below this ever lost its own here; undefined while none did. */
  const lowest = (): number | undefined => {
    const stored = store.meta(LOWEST_KEY);
    return stored && Number(readUint64(stored, 0));
  };

  /** Of the changes that count, those that name one of these records now wait with it. */
  const loseFrom = (lowestPos: number, lostByPos: ReadonlyMap<number, Uint8Array>): void => {
    for (const { no, writer, acl_pos } of store.changes.countedFromAclPos(lowestPos)) {
      const record = lostByPos.get(acl_pos);
      if (record) store.lostPositionChanges.put(no, writer, record);
    }
  };

  return {
    lowest,
    /**
     * Notes which records lose their position to a branch that begins behind record `at`, and which changes that counted so
     * far lose theirs with them. Returns the position from which changes may have another one.
     */
    note(before: AclState, after: AclState, at: number): number {
      let from = Math.min(at, lowest() ?? at);
      const lostByPos = new Map<number, Uint8Array>();
      let lowestLost = Number.POSITIVE_INFINITY;
      for (const [name, { pos }] of before.positions) {
        const now = after.positions.get(name)?.pos;
        if (now === pos) continue;
        from = Math.min(from, Math.floor(pos));
        if (now !== undefined) continue;
        lostByPos.set(pos, hexToBytes(name)!);
        lowestLost = Math.min(lowestLost, pos);
      }
      for (const id of lostByPos.values()) store.lostPositions.put(id);
      if (lostByPos.size > 0) loseFrom(lowestLost, lostByPos);
      const stored = new Uint8Array(8);
      writeUint64(stored, 0, BigInt(from));
      store.putMeta(LOWEST_KEY, stored);
      return from;
    },
  };
}
