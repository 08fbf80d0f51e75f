import { bytesToUtf8, utf8ToBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { ChunkStore, StoredChunk } from "../network/chunk-store.ts";

const MARK = "files.store-mark";

/**
 * The newest place in the network's store at which a chunk of a space is known to lie. While it lies there, the store is
 * the one that took all chunks before it. A store that was wiped or restored from an older copy has something else there,
 * or nothing.
 */
export function createStoreMark(chunks: Pick<ChunkStore, "isSame">) {
  /** Spaces whose mark was found in its place over this connection. */
  const seen = new Set<SpaceId>();

  const markOf = (replica: Replica): StoredChunk | undefined => {
    const text = bytesToUtf8(replica.note(MARK) ?? new Uint8Array(0));
    return text ? (JSON.parse(text) as StoredChunk) : undefined;
  };

  return {
    /** Marks are looked at anew: this may be another store. */
    doubt: (): void => seen.clear(),
    async isLost(replica: Replica): Promise<boolean> {
      if (seen.has(replica.id)) return false;
      const mark = markOf(replica);
      if (mark && !(await chunks.isSame(mark))) return true;
      seen.add(replica.id);
      return false;
    },
    async keep(replica: Replica, stored: StoredChunk): Promise<void> {
      const known = markOf(replica);
      if (known && known.created === stored.created && known.seq >= stored.seq) return;
      await replica.write((write) => write.putNote(MARK, utf8ToBytes(JSON.stringify(stored))));
    },
    async forget(replica: Replica): Promise<void> {
      await replica.write((write) => write.dropNote(MARK));
    },
  };
}
