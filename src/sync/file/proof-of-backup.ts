import { createSemaphore } from "../../base/semaphore.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { digestAt, levelCounts, openPage, PAGE_DIGESTS, placeIn } from "../../files/chunk-tree.ts";
import type { Content } from "../../files/content.ts";
import type { ChunkPlaceInStore, ChunkStore } from "../network/chunk-store.ts";
import { chunkKeysOf } from "./network-chunks.ts";

const AT_ONCE = 8;

/**
 * Whether the network's store has all of a content, asked by a device that need not have its bytes: the manifest is read and
 * verified, and each chunk it lists has to be in its place. Answers where the root lies, or undefined when something is missing.
 */
export async function proveWithoutBytes(chunks: ChunkStore, content: Content): Promise<ChunkPlaceInStore | undefined> {
  const keys = chunkKeysOf(content);
  const counts = levelCounts(content.size);
  const root = digestOfCid(content.rootCid);
  const place = root && (await chunks.locate(keys, root));
  if (!root || !place) return undefined;
  let digests: Uint8Array[] = [root];
  for (let level = counts.length - 1; level >= 1; level--) {
    const below: Uint8Array[] = [];
    for (const [index, digest] of digests.entries()) {
      const sealed = await chunks.get(keys, digest);
      const list = sealed && openPage(content, placeIn(counts, level, index), sealed);
      if (!list) return undefined;
      const count = Math.min(PAGE_DIGESTS, counts[level - 1]! - index * PAGE_DIGESTS);
      for (let at = 0; at < count; at++) below.push(digestAt(list, at));
    }
    digests = below;
  }
  const turn = createSemaphore(AT_ONCE);
  let isMissing = false;
  await Promise.all(
    digests.map((digest) =>
      turn(async () => {
        if (!isMissing && !(await chunks.has(keys, digest))) isMissing = true;
      }),
    ),
  );
  return isMissing ? undefined : place;
}
