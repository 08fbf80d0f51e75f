import { bytesToUtf8, utf8ToBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Space } from "../../space/space.ts";
import type { ChunkPlaceInStore, ChunkStore } from "../network/chunk-store.ts";

const MARK = "files.store-mark";

/**
 * The newest place in the network's store at which a chunk of a space is known to lie. While it lies there the store is the
 * one that took all the chunks before it; a store that was wiped, or put back to an older state, has nothing there, or
 * something else.
 */
export function createStoreMark(chunks: Pick<ChunkStore, "isSame">) {
  /** Spaces whose mark was found in its place over this connection. */
  const seen = new Set<SpaceId>();

  const markOf = (space: Space): ChunkPlaceInStore | undefined => {
    const text = bytesToUtf8(space.engine.store.meta(MARK) ?? new Uint8Array(0));
    return text ? (JSON.parse(text) as ChunkPlaceInStore) : undefined;
  };

  return {
    /** Marks are looked at anew: this may be another store. */
    doubt: (): void => seen.clear(),
    async isLost(space: Space): Promise<boolean> {
      if (seen.has(space.id)) return false;
      const mark = markOf(space);
      if (mark && !(await chunks.isSame(mark))) return true;
      seen.add(space.id);
      return false;
    },
    async keep(space: Space, place: ChunkPlaceInStore): Promise<void> {
      const known = markOf(space);
      if (known && known.created === place.created && known.seq >= place.seq) return;
      await space.engine.write(() => space.engine.store.putMeta(MARK, utf8ToBytes(JSON.stringify(place))));
    },
    async forget(space: Space): Promise<void> {
      await space.engine.write(() => space.engine.store.dropMeta(MARK));
    },
  };
}
