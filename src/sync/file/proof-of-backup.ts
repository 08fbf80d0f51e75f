import { createSemaphore } from "../../base/semaphore.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { digestAt, levelCounts, openPage, PAGE_DIGESTS, positionIn } from "../../files/chunk-tree.ts";
import type { Content } from "../../files/content.ts";
import type { ChunkStore, StoredChunk } from "../network/chunk-store.ts";
import { chunkKeysOf } from "./network-chunks.ts";

const AT_ONCE = 8;

/**
 * Whether the network's store has all of a content. The device that asks need not have its bytes: the manifest is read and
 * verified, and each chunk it lists has to be in its place. Answers where the root lies, or undefined when something is
 * missing.
 */
export async function proveWithoutBytes(chunks: ChunkStore, content: Content): Promise<StoredChunk | undefined> {
  const keys = chunkKeysOf(content);
  const counts = levelCounts(content.size);
  const root = digestOfCid(content.rootCid);
  const stored = root && (await chunks.locate(keys, root));
  if (!root || !stored) return undefined;
  const turn = createSemaphore(AT_ONCE);

  /**
   * Whether everything below a page is there. One page of a level at a time, because the author of the row decides how many
   * there are.
   */
  const isWhole = async (level: number, index: number, digest: Uint8Array): Promise<boolean> => {
    const sealed = await chunks.get(keys, digest);
    const list = sealed && openPage(content, positionIn(counts, level, index), sealed);
    if (!list) return false;
    const first = index * PAGE_DIGESTS;
    const below = Array.from({ length: Math.min(PAGE_DIGESTS, counts[level - 1]! - first) }, (_, at) =>
      digestAt(list, at),
    );
    if (level > 1) {
      for (const [at, each] of below.entries()) if (!(await isWhole(level - 1, first + at, each))) return false;
      return true;
    }
    let isMissing = false;
    const look = async (each: Uint8Array): Promise<void> => {
      if (!isMissing && !(await chunks.has(keys, each))) isMissing = true;
    };
    await Promise.all(below.map((each) => turn(() => look(each))));
    return !isMissing;
  };
  return (await isWhole(counts.length - 1, 0, root)) ? stored : undefined;
}
