/**
 * Manifests of contents made by somebody who has the space's keys and knows the tree: pages and chunks that are sealed well and
 * say what they should not, at any level, under a root that names them. A reader gets the very bytes that the tree commits to,
 * or none; nothing else throws, nothing is asked for without end, and what a restart finds says no more. `FUZZ_CASES` says how
 * many, `SEED` repeats a run.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { bytesToHex, concatBytes, equalBytes, utf8ToBytes, writeUint64 } from "../../src/base/bytes.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { SpaceId } from "../../src/base/ids.ts";
import { cidFromDigest, cidOf } from "../../src/crypto/cid.ts";
import { sha256 } from "../../src/crypto/hash.ts";
import { type BlobStore, openBlobStore } from "../../src/files/blob-store.ts";
import { createChunkSources } from "../../src/files/chunk-sources.ts";
import { buildTree, levelCounts, openPage, PAGE_DIGESTS, positionIn } from "../../src/files/chunk-tree.ts";
import type { Content } from "../../src/files/content.ts";
import { CHUNK_BYTES, type ChunkPosition, sealChunk } from "../../src/files/content-seal.ts";
import { ContentDamaged, openDownload } from "../../src/files/download.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { proveWithoutBytes } from "../../src/sync/file/proof-of-backup.ts";
import type { ChunkStore, StoredChunk } from "../../src/sync/network/chunk-store.ts";
import { fuzzCases } from "../support/hostile/fuzz-cases.ts";
import { bytesFrom, mutateBytes } from "../support/hostile/mutate.ts";
import { createRng, freshSeed, type Rng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { type ScratchDir, scratchDir } from "../support/scratch.ts";

const CASES = fuzzCases(0.0002);
const firstSeed = freshSeed("manifest-fuzz");
const SPACE = cidOf(new Uint8Array(8)) as SpaceId;
const ROOT_TAG = utf8ToBytes("svc/file-root/v1\0");
const FILLER = bytesFrom(createRng(firstSeed).fork("filler"), 65_536);
const DIGEST_BYTES = 32;

/** How many chunks: about one page, about two levels of them, and as many as there can be. */
const CHUNK_COUNTS = [
  ...[1, 2, 3, PAGE_DIGESTS - 1, PAGE_DIGESTS, PAGE_DIGESTS + 1, 3 * PAGE_DIGESTS - 5],
  ...[LIMITS.fileBytes / CHUNK_BYTES - 1, LIMITS.fileBytes / CHUNK_BYTES],
];

interface Sealed {
  readonly plain: Uint8Array;
  readonly sealed: Uint8Array;
}

/** A content of which there is one chunk and the pages that lead to it. */
interface Path {
  readonly content: Content;
  readonly counts: readonly number[];
  readonly index: number;
  /** By level, the chunk first. */
  readonly steps: readonly Sealed[];
  /** The level at which it is no tree; -1 when it is one. */
  readonly spoiltAt: number;
}

const filler = (length: number): Uint8Array => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += FILLER.length) bytes.set(FILLER.subarray(0, length - at), at);
  return bytes;
};

const rootHead = (size: number): Uint8Array => {
  const bytes = new Uint8Array(ROOT_TAG.length + 8);
  bytes.set(ROOT_TAG);
  writeUint64(bytes, ROOT_TAG.length, BigInt(size));
  return bytes;
};

interface Step {
  readonly plain: Uint8Array;
  readonly position: ChunkPosition;
  readonly key: Uint8Array;
  readonly hash: Uint8Array;
}

/** One thing in what is sealed is another, so that it may not be taken. */
function spoiltStep(rng: Rng, step: Step, size: number): Step {
  const { plain, position } = step;
  const longer = rng.pick([1, 31, DIGEST_BYTES, 2 * DIGEST_BYTES]);
  return rng.pick<() => Step>([
    () => ({ ...step, plain: plain.subarray(0, plain.length - Math.min(plain.length, longer)) }),
    () => ({ ...step, plain: concatBytes(plain, bytesFrom(rng, longer)) }),
    () => ({ ...step, plain: new Uint8Array(0) }),
    () => ({ ...step, position: { ...position, level: position.level + rng.pick([1, 2]) } }),
    () => ({ ...step, position: { ...position, index: position.index + rng.pick([1, PAGE_DIGESTS, 2 ** 32]) } }),
    () => ({ ...step, position: { ...position, last: !position.last } }),
    () => ({ ...step, key: bytesFrom(rng, 32) }),
    () => ({ ...step, hash: bytesFrom(rng, 32) }),
    () => ({ ...step, plain: concatBytes(rootHead(size + rng.pick([1, -1, CHUNK_BYTES])), plain) }),
  ])();
}

/** A root that says another size, or is none. */
function spoiltHead(rng: Rng, plain: Uint8Array, size: number): Uint8Array {
  const list = plain.subarray(ROOT_TAG.length + 8);
  return rng.pick<() => Uint8Array>([
    () => concatBytes(rootHead(size + rng.pick([1, -1, CHUNK_BYTES, -size])), list),
    () => concatBytes(Uint8Array.of(plain[0]! ^ rng.int(1, 255)), plain.subarray(1)),
    () => plain.subarray(rng.int(1, ROOT_TAG.length + 8)),
    () => list,
  ])();
}

/** A tree of which at most one step is spoilt; what names it names it as it is. */
function anyPath(rng: Rng): Path {
  const chunks = rng.pick(CHUNK_COUNTS);
  const tail = rng.pick([1, 1_000, CHUNK_BYTES]);
  const size = (chunks - 1) * CHUNK_BYTES + tail;
  const counts = levelCounts(size);
  const index = rng.pick([
    0,
    chunks - 1,
    Math.floor(chunks / 2),
    Math.min(chunks - 1, PAGE_DIGESTS),
    rng.int(0, chunks - 1),
  ]);
  const identity = { key: bytesFrom(rng, 32), hash: bytesFrom(rng, 32), size };
  const spoiltAt = rng.chance(0.7) ? rng.int(0, counts.length - 1) : -1;
  const steps: Sealed[] = [];
  let digest: Uint8Array | undefined;
  for (let level = 0, at = index; level < counts.length; level++) {
    const isRoot = level === counts.length - 1;
    let plain: Uint8Array;
    if (level === 0) plain = filler(index === chunks - 1 ? tail : CHUNK_BYTES);
    else {
      const slot = at % PAGE_DIGESTS;
      at = Math.floor(at / PAGE_DIGESTS);
      plain = filler(Math.min(PAGE_DIGESTS, counts[level - 1]! - at * PAGE_DIGESTS) * DIGEST_BYTES);
      plain.set(digest!, slot * DIGEST_BYTES);
      if (isRoot) plain = concatBytes(rootHead(size), plain);
    }
    let step: Step = { plain, position: positionIn(counts, level, at), ...identity };
    let isTorn = false;
    if (level === spoiltAt) {
      if (isRoot && rng.chance(0.3)) step = { ...step, plain: spoiltHead(rng, plain, size) };
      else if (rng.chance(0.2)) isTorn = true;
      else step = spoiltStep(rng, step, size);
    }
    const whole = sealChunk(step.key, step.hash, step.position, step.plain);
    const sealed = isTorn ? torn(rng, whole) : whole;
    steps.push({ plain, sealed });
    digest = sha256(sealed);
  }
  const content = {
    ...{ ...identity, spaceId: SPACE, rootCid: cidFromDigest(digest!) },
    ...{ keyId: new Uint8Array(16), channelSecret: identity.key },
  };
  return { content, counts, index, steps, spoiltAt };
}

/** Sealed bytes of which the tag does not hold. */
function torn(rng: Rng, sealed: Uint8Array): Uint8Array {
  const other = mutateBytes(rng, sealed);
  return equalBytes(other, sealed) ? new Uint8Array(0) : other;
}

let directory: ScratchDir;
let blobs: BlobStore;
beforeAll(async () => {
  directory = scratchDir("manifest-fuzz");
  blobs = await openBlobStore(join(directory.path, "blobs"), systemClock);
});
afterAll(() => directory[Symbol.dispose]());

/** Reads the chunk through a download that asks a peer which gives whatever the author made. */
async function read({ content, index, steps }: Path, isGiven: boolean): Promise<{ plain?: Uint8Array; asked: number }> {
  let asked = 0;
  const sources = createChunkSources(() => undefined);
  sources.add({
    name: "a peer",
    mayHave: () => isGiven,
    async get({ position }) {
      asked++;
      return steps[position.level]?.sealed;
    },
  });
  const download = await openDownload(content, blobs, sources);
  try {
    const plain = await download.chunk(index);
    return { ...(plain ? { plain } : {}), asked };
  } catch (error) {
    if (!(error instanceof ContentDamaged)) throw error;
    return { asked };
  } finally {
    await download.close();
  }
}

/** The network's store with these, and with every chunk besides or none. */
function countedStore(sealedByDigest: ReadonlyMap<string, Uint8Array>, hasOthers: boolean) {
  let looks = 0;
  let pages = 0;
  const there: StoredChunk = { created: "now", seq: 1, subject: "chunk" };
  const chunks: ChunkStore = {
    connection: () => 1,
    put: () => Promise.reject(new Error("nothing is put")),
    async get(_keys, digest) {
      pages++;
      return sealedByDigest.get(bytesToHex(digest));
    },
    locate: async (_keys, digest) => (sealedByDigest.has(bytesToHex(digest)) ? there : undefined),
    async has(_keys, digest) {
      looks++;
      return hasOthers || sealedByDigest.has(bytesToHex(digest));
    },
    isSame: async () => true,
  };
  return { chunks, pages: () => pages, looks: () => looks };
}

describe("manifests of hostile authors", () => {
  rule(
    `[FILE-7] ${CASES} trees, most of them spoilt, give the chunk that they commit to or nothing, before and after a restart`,
    async () => {
      const rng = createRng(firstSeed).fork("downloads");
      let given = 0;
      for (let i = 0; i < CASES; i++) {
        const path = anyPath(rng.fork(`${i}`));
        const first = await read(path, true);
        expect(first.asked, `case ${i}`).toBeLessThanOrEqual(path.counts.length);
        expect(first.plain !== undefined, `case ${i}`).toBe(path.spoiltAt < 0);
        if (first.plain) expect(equalBytes(first.plain, path.steps[0]!.plain), `case ${i}`).toBe(true);
        if (first.plain) given++;
        const again = await read(path, rng.chance(0.5));
        if (again.plain)
          expect(path.spoiltAt < 0 && equalBytes(again.plain, path.steps[0]!.plain), `case ${i}`).toBe(true);
        await blobs.remove(SPACE, path.content.rootCid);
      }
      expect(given).toBeGreaterThan(CASES / 10);
      expect(given).toBeLessThan(CASES / 2);
    },
  );

  rule("[FILE-7] a page opens in its own place of its own content alone", () => {
    const rng = createRng(firstSeed).fork("pages");
    let opened = 0;
    for (let i = 0; i < CASES * 2; i++) {
      const { content, counts, index, steps, spoiltAt } = anyPath(rng.fork(`${i}`));
      const level = rng.int(1, counts.length - 1);
      const at = Math.floor(index / PAGE_DIGESTS ** level);
      const isOwn = rng.chance(0.5);
      const position = isOwn
        ? positionIn(counts, level, at)
        : rng.pick([
            { level: level + 1, index: 0, last: true },
            { level, index: at + 1, last: rng.chance(0.5) },
            { level: 1, index: 2 ** 40, last: false },
          ]);
      const size = isOwn ? content.size : content.size + rng.pick([1, CHUNK_BYTES, CHUNK_BYTES * PAGE_DIGESTS]);
      const list = openPage({ ...content, size }, position, steps[level]!.sealed);
      // What was spoilt may be sealed for just the other place.
      if (!isOwn && spoiltAt !== level) expect(list, `case ${i}`).toBeUndefined();
      else if (isOwn && spoiltAt !== level) expect(list, `case ${i}`).toBeDefined();
      if (list) {
        opened++;
        expect(list.length % DIGEST_BYTES, `case ${i}`).toBe(0);
      }
    }
    expect(opened).toBeGreaterThan(CASES / 2);
  });

  rule(
    "[FILE-8] the store is proved to have a content when it has all of it, page by page, and no longer looked at than that",
    async () => {
      const rng = createRng(firstSeed).fork("proofs");
      let proved = 0;
      for (let i = 0; i < CASES; i++) {
        const { content, counts, steps, spoiltAt } = anyPath(rng.fork(`${i}`));
        const sealedByDigest = new Map(steps.map(({ sealed }) => [bytesToHex(sha256(sealed)), sealed]));
        const hasOthers = rng.chance(0.5);
        const { chunks, pages, looks } = countedStore(sealedByDigest, hasOthers);
        const position = await proveWithoutBytes(chunks, content);
        // Of a content of more pages than one path has, one is always missing.
        const isWhole = spoiltAt <= 0 && counts.length === 2 && (hasOthers || counts[0] === 1);
        expect(position !== undefined, `case ${i}`).toBe(isWhole);
        expect(pages(), `case ${i}`).toBeLessThanOrEqual(counts.length);
        expect(looks(), `case ${i}`).toBeLessThanOrEqual(hasOthers ? PAGE_DIGESTS : 16);
        if (isWhole) proved++;
      }
      expect(proved).toBeGreaterThan(0);
    },
  );

  rule("[FILE-8] of a content whose chunks are missing one page is read, however many it has", async () => {
    const identity = {
      key: new Uint8Array(32).fill(1),
      hash: new Uint8Array(32),
      size: 3 * PAGE_DIGESTS * CHUNK_BYTES,
    };
    const { pages, rootCid } = buildTree(identity, filler(3 * PAGE_DIGESTS * DIGEST_BYTES));
    const store = countedStore(new Map(pages.map(({ digest, sealed }) => [bytesToHex(digest), sealed])), false);
    const content = { ...identity, spaceId: SPACE, rootCid, keyId: new Uint8Array(16), channelSecret: identity.key };
    expect(await proveWithoutBytes(store.chunks, content)).toBeUndefined();
    expect(store.pages()).toBe(2);
    expect(store.looks()).toBeLessThanOrEqual(16);
  });
});
