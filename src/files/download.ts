import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { equalBytes } from "../base/bytes.ts";
import { digestOfCid } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { type BlobStore, HASHES, HAVE, OWN_MODE, PART, syncDir } from "./blob-store.ts";
import type { ChunkSources } from "./chunk-sources.ts";
import { buildTree, chunkCount, digestAt, levelCounts, openPage, PAGE_DIGESTS, positionIn } from "./chunk-tree.ts";
import type { Content } from "./content.ts";
import { CHUNK_BYTES, openChunk, sealChunk } from "./content-seal.ts";

/**
 * A content with missing chunks. Chunks arrive in any order; each is verified by the tree above it and kept in a sparse
 * file. Once the last is there, the file is synced and becomes a whole content. After a restart each chunk is verified
 * again when it is read, because nothing was synced.
 */
export interface Download {
  /** The plain bytes of a chunk, fetched if they are not here. Resolves to undefined when no reachable source has it. */
  chunk(index: number): Promise<Uint8Array | undefined>;
  /** The sealed bytes of a chunk that is here, for other peers; undefined when it is not. */
  sealedHere(index: number): Promise<Uint8Array | undefined>;
  readonly chunks: number;
  /** Number of chunks that are here. */
  present(): number;
  /** Resolves when the content is whole on the disk. */
  readonly whole: Promise<void>;
  isWhole(): boolean;
  close(): Promise<void>;
}

interface Page {
  readonly digests: Uint8Array;
}

const DIGEST_BYTES = 32;

export async function openDownload(content: Content, blobs: BlobStore, sources: ChunkSources): Promise<Download> {
  const { spaceId, rootCid, size, key, hash } = content;
  const counts = levelCounts(size);
  const chunks = chunkCount(size);
  const rootDigest = digestOfCid(rootCid);
  if (!rootDigest) throw new RangeError("a content is named by a CID");
  const base = blobs.pathOf(spaceId, rootCid);
  blobs.ensureDir(spaceId);
  const part = await open(base + PART, "a+", OWN_MODE).then(async (made) => {
    await made.close();
    return open(base + PART, "r+");
  });
  const pages = new Map<string, Promise<Page | undefined>>();
  const running = new Map<number, Promise<Uint8Array | undefined>>();
  /** Bits of the chunks that are here and verified, and of those that an earlier run says are here. */
  const good = createBits();
  const claimed = createBits((await readFile(base + HAVE).catch(() => undefined)) ?? undefined);
  const whole = Promise.withResolvers<void>();
  whole.promise.catch(() => undefined); // whoever awaits it gets the error; nobody has to await it
  let isWhole = false;
  let closed = false;
  let present = 0;
  let finishing: Promise<void> | undefined;
  await adoptKnownHashes();
  blobs.note(spaceId, rootCid, 0, true);

  /**
   * A single page over all chunks can be rebuilt from the hashes that an earlier run kept, because the root's hash proves
   * them.
   */
  async function adoptKnownHashes(): Promise<void> {
    if (counts.length !== 2) return;
    const digests = await readFile(base + HASHES).catch(() => undefined);
    if (!digests || digests.length !== chunks * DIGEST_BYTES) return;
    const kept = new Uint8Array(digests);
    if (buildTree(content, kept).rootCid === rootCid) pages.set("1/0", Promise.resolve({ digests: kept }));
  }

  /** The page of hashes of chunks, or of pages, fetched from the root down. */
  function page(level: number, index: number): Promise<Page | undefined> {
    const name = `${level}/${index}`;
    const known = pages.get(name);
    if (known) return known;
    const made = fetchPage(level, index);
    pages.set(name, made);
    const forget = (): void => void pages.delete(name);
    made.then((found) => found ?? forget(), forget);
    return made;
  }

  async function fetchPage(level: number, index: number): Promise<Page | undefined> {
    const isRoot = level === counts.length - 1;
    const above = isRoot ? undefined : await page(level + 1, Math.floor(index / PAGE_DIGESTS));
    if (!isRoot && !above) return undefined;
    const digest = above ? digestAt(above.digests, index % PAGE_DIGESTS) : rootDigest!;
    const position = positionIn(counts, level, index);
    const sealed = await sources.fetch({ content, position, digest });
    if (!sealed) return undefined;
    const digests = openPage(content, position, sealed);
    if (!digests) throw new ContentDamaged("a page of the content's manifest does not open");
    if (counts.length === 2) await writeFile(base + HASHES, digests, { mode: OWN_MODE });
    return { digests: new Uint8Array(digests) };
  }

  const lengthOf = (index: number): number => Math.min(CHUNK_BYTES, size - index * CHUNK_BYTES);

  async function readPart(index: number): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(lengthOf(index));
    const { bytesRead } = await part.read(bytes, 0, bytes.length, index * CHUNK_BYTES);
    return bytesRead === bytes.length ? bytes : undefined;
  }

  /** A chunk that an earlier run left is sealed again, because only then its hash can be compared. */
  async function verified(index: number, digest: Uint8Array): Promise<Uint8Array | undefined> {
    const plain = await readPart(index);
    if (plain && equalBytes(sha256(sealChunk(key, hash, positionIn(counts, 0, index), plain)), digest)) return plain;
    claimed.clear(index);
    return undefined;
  }

  async function obtain(index: number): Promise<Uint8Array | undefined> {
    if (good.has(index)) return readPart(index);
    const above = await page(1, Math.floor(index / PAGE_DIGESTS));
    if (!above) return undefined;
    const digest = digestAt(above.digests, index % PAGE_DIGESTS);
    const kept = claimed.has(index) ? await verified(index, digest) : undefined;
    if (kept) {
      noteGood(index);
      return kept;
    }
    const sealed = await sources.fetch({ content, position: positionIn(counts, 0, index), digest });
    if (!sealed || closed) return undefined;
    const plain = openChunk(key, hash, positionIn(counts, 0, index), sealed);
    if (!plain || plain.length !== lengthOf(index)) throw new ContentDamaged("a chunk of the content does not open");
    await writeAll(part, plain, index * CHUNK_BYTES);
    noteGood(index);
    return plain;
  }

  function noteGood(index: number): void {
    if (good.has(index)) return;
    good.set(index);
    present++;
    blobs.note(spaceId, rootCid, Math.min(size, present * CHUNK_BYTES), true);
    if (present === chunks) finishing ??= finish().then(whole.resolve, whole.reject);
    else if (!claimed.has(index)) {
      claimed.set(index);
      saveClaims();
    }
  }

  /** If this is not saved, the chunks are only fetched again. */
  const writeClaims = () => writeFile(base + HAVE, claimed.bytes(), { mode: OWN_MODE }).catch(() => undefined);
  let saving: ReturnType<typeof setTimeout> | undefined;
  function saveClaims(): void {
    saving ??= setTimeout(() => {
      saving = undefined;
      if (!isWhole && !closed) void writeClaims();
    }, 1_000);
    saving.unref?.();
  }

  async function finish(): Promise<void> {
    clearTimeout(saving);
    const digests = new Uint8Array(chunks * DIGEST_BYTES);
    for (let index = 0; index * PAGE_DIGESTS < chunks; index++)
      digests.set((await page(1, index))!.digests, index * PAGE_DIGESTS * DIGEST_BYTES);
    await part.sync();
    const hashes = await open(base + HASHES, "w", OWN_MODE);
    await hashes.writeFile(digests);
    await hashes.sync();
    await hashes.close();
    await rename(base + PART, base);
    await syncDir(base.slice(0, -rootCid.length));
    await rm(base + HAVE, { force: true });
    isWhole = true;
    blobs.note(spaceId, rootCid, size, false);
  }

  return {
    chunks,
    present: () => present,
    whole: whole.promise,
    isWhole: () => isWhole,
    chunk(index) {
      const known = running.get(index);
      if (known) return known;
      const made = obtain(index).finally(() => running.delete(index));
      running.set(index, made);
      return made;
    },
    async sealedHere(index) {
      if (closed || (!good.has(index) && !claimed.has(index))) return undefined;
      const plain = await readPart(index);
      return plain && sealChunk(key, hash, positionIn(counts, 0, index), plain);
    },
    async close() {
      if (closed) return;
      closed = true;
      clearTimeout(saving);
      if (!isWhole) await writeClaims();
      await Promise.allSettled(running.values());
      await finishing?.catch(() => undefined);
      await part.close();
    },
  };
}

/** The bytes that a row names do not make up its content: its author did not have it, or lied. */
export class ContentDamaged extends Error {}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await handle.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

/** A set of small numbers that grows as needed. */
function createBits(initial: Uint8Array = new Uint8Array(0)) {
  let bits = new Uint8Array(initial);
  const grow = (byte: number): void => {
    if (byte < bits.length) return;
    const next = new Uint8Array(Math.max(64, byte + 1, bits.length * 2));
    next.set(bits);
    bits = next;
  };
  return {
    has: (index: number): boolean => ((bits[index >>> 3] ?? 0) & (1 << (index & 7))) !== 0,
    set(index: number): void {
      grow(index >>> 3);
      bits[index >>> 3]! |= 1 << (index & 7);
    },
    clear(index: number): void {
      if (index >>> 3 < bits.length) bits[index >>> 3]! &= ~(1 << (index & 7));
    },
    bytes: (): Uint8Array => bits,
  };
}
