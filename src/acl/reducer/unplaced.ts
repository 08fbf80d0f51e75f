import { hexToBytes, readUint64, writeUint64 } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclState } from "./state.ts";

const LOWEST_KEY = "acl-unplaced";

/** Records of this log that lost their place when their branch did. Writes happen inside the commit queue's transaction. */
export function createUnplaced(store: SpaceStore) {
  /** Below this position no change here ever lost its place; undefined while none did. */
  const lowest = (): number | undefined => {
    const stored = store.meta(LOWEST_KEY);
    return stored && Number(readUint64(stored, 0));
  };

  return {
    lowest,
    /**
     * Notes which records lose their place by a branch that begins behind record `at`, and whether changes name them.
     * Answers from where on changes stand elsewhere.
     */
    note(before: AclState, after: AclState, at: number): number {
      let from = Math.min(at, lowest() ?? at);
      for (const [name, { pos }] of before.positions) {
        const now = after.positions.get(name)?.pos;
        if (now === pos) continue;
        from = Math.min(from, Math.floor(pos));
        if (now === undefined) store.unplacedRecords.put(hexToBytes(name)!, store.changes.anyAtAclPos(pos));
      }
      const stored = new Uint8Array(8);
      writeUint64(stored, 0, BigInt(from));
      store.putMeta(LOWEST_KEY, stored);
      return from;
    },
  };
}
