import { concatBytes, equalBytes, readUint64, utf8ToBytes, writeUint64 } from "../base/bytes.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { CHUNK_BYTES, type ChunkPosition, openChunk, sealChunk } from "./content-seal.ts";

/**
 * The manifest of a content: the hashes of its sealed chunks, in pages that are sealed and hashed in turn, up to one
 * page, the root. `rootCid` is the hash of the sealed root, so every chunk can be verified by itself, whoever sent it.
 * The root holds the content's size, so that nobody can make it longer or shorter.
 */
const DIGEST_BYTES = 32;
/** Hashes in a page: 256 KiB, less than a chunk. */
export const PAGE_DIGESTS = 8192;
const ROOT_TAG = utf8ToBytes("svc/file-root/v1\0");
const ROOT_HEAD_BYTES = ROOT_TAG.length + 8;

export interface ContentIdentity {
  /** SHA-256 of the content. */
  readonly hash: Uint8Array;
  readonly size: number;
  readonly key: Uint8Array;
}

/** A sealed chunk or page, and the place it is sealed for. */
interface SealedPage {
  readonly position: ChunkPosition;
  readonly sealed: Uint8Array;
  readonly digest: Uint8Array;
}

export interface ChunkTree {
  readonly rootCid: string;
  readonly rootDigest: Uint8Array;
  /** The pages above the content, the root first. */
  readonly pages: readonly SealedPage[];
}

export const chunkCount = (size: number): number => Math.ceil(size / CHUNK_BYTES);

/** How many chunks or pages each level has, the content's first; the last is the root, one page. */
export function levelCounts(size: number): number[] {
  const counts = [chunkCount(size)];
  while (counts.at(-1)! > 1 || counts.length === 1) counts.push(Math.ceil(counts.at(-1)! / PAGE_DIGESTS));
  return counts;
}

export function positionIn(counts: readonly number[], level: number, index: number): ChunkPosition {
  return { level, index, last: index === counts[level]! - 1 };
}

/** Builds the pages over the digests (32 bytes each) of a content's sealed chunks. */
export function buildTree(content: ContentIdentity, digests: Uint8Array): ChunkTree {
  const counts = levelCounts(content.size);
  if (digests.length !== counts[0]! * DIGEST_BYTES) throw new RangeError("as many digests as chunks");
  const pages: SealedPage[] = [];
  let below = digests;
  for (let level = 1; level < counts.length; level++) {
    const above: Uint8Array[] = [];
    const sealedPages: SealedPage[] = [];
    for (let index = 0; index < counts[level]!; index++) {
      const from = index * PAGE_DIGESTS * DIGEST_BYTES;
      const list = below.subarray(from, from + PAGE_DIGESTS * DIGEST_BYTES);
      const position = positionIn(counts, level, index);
      const plain = level === counts.length - 1 ? concatBytes(rootHead(content.size), list) : list;
      const sealed = sealChunk(content.key, content.hash, position, plain);
      const digest = sha256(sealed);
      above.push(digest);
      sealedPages.push({ position, sealed, digest });
    }
    pages.unshift(...sealedPages);
    below = concatBytes(...above);
  }
  const { digest } = pages[0]!;
  return { rootCid: cidFromDigest(digest), rootDigest: digest, pages };
}

/** The digests that a page lists, or undefined when it is not this page of this content. */
export function openPage(
  content: ContentIdentity,
  position: ChunkPosition,
  sealed: Uint8Array,
): Uint8Array | undefined {
  const plain = openChunk(content.key, content.hash, position, sealed);
  if (!plain) return undefined;
  const counts = levelCounts(content.size);
  const isRoot = position.level === counts.length - 1;
  if (isRoot && !isHeadOf(plain, content.size)) return undefined;
  const list = isRoot ? plain.subarray(ROOT_HEAD_BYTES) : plain;
  const below = counts[position.level - 1]!;
  const expected = Math.min(PAGE_DIGESTS, below - position.index * PAGE_DIGESTS);
  return list.length === expected * DIGEST_BYTES ? list : undefined;
}

export const digestAt = (digests: Uint8Array, index: number): Uint8Array =>
  digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);

function rootHead(size: number): Uint8Array {
  const bytes = new Uint8Array(ROOT_HEAD_BYTES);
  bytes.set(ROOT_TAG);
  writeUint64(bytes, ROOT_TAG.length, BigInt(size));
  return bytes;
}

function isHeadOf(plain: Uint8Array, size: number): boolean {
  return (
    plain.length >= ROOT_HEAD_BYTES &&
    equalBytes(plain.subarray(0, ROOT_TAG.length), ROOT_TAG) &&
    readUint64(plain, ROOT_TAG.length) === BigInt(size)
  );
}
