import { describe, expect, test } from "bun:test";
import { randomBytes } from "../base/random.ts";
import { digestOfCid } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { buildTree, levelCounts, openPage, PAGE_DIGESTS, positionIn } from "./chunk-tree.ts";
import { CHUNK_BYTES, openChunk, sealChunk } from "./content-seal.ts";

const identity = (chunks: number) => ({ hash: randomBytes(32), key: randomBytes(32), size: chunks * CHUNK_BYTES });

describe("the manifest of a content", () => {
  for (const chunks of [1, 2, PAGE_DIGESTS, PAGE_DIGESTS + 1, 3 * PAGE_DIGESTS - 5]) {
    test(`${chunks} chunks: the pages lead from the root to every digest`, () => {
      const content = identity(chunks);
      const digests = randomBytes(chunks * 32);
      const tree = buildTree(content, digests);
      const counts = levelCounts(content.size);
      expect(digestOfCid(tree.rootCid)).toEqual(tree.rootDigest);
      const sealedByDigest = new Map(tree.pages.map((page) => [Buffer.from(page.digest).toString("hex"), page.sealed]));
      let level = [tree.rootDigest];
      for (let at = counts.length - 1; at >= 1; at--) {
        const below: Uint8Array[] = [];
        for (const [index, digest] of level.entries()) {
          const sealed = sealedByDigest.get(Buffer.from(digest).toString("hex"))!;
          expect(sha256(sealed)).toEqual(digest);
          const list = openPage(content, positionIn(counts, at, index), sealed)!;
          for (let i = 0; i < list.length; i += 32) below.push(list.slice(i, i + 32));
        }
        level = below;
      }
      expect(Buffer.concat(level).equals(digests)).toBe(true);
    });
  }

  test("a page of another content, of another size, or for another place does not open", () => {
    const content = identity(3);
    const tree = buildTree(content, randomBytes(96));
    const counts = levelCounts(content.size);
    const root = tree.pages[0]!.sealed;
    expect(openPage(content, positionIn(counts, 1, 0), root)).toBeDefined();
    expect(openPage({ ...content, size: content.size - 1 }, positionIn(counts, 1, 0), root)).toBeUndefined();
    expect(openPage({ ...content, key: randomBytes(32) }, positionIn(counts, 1, 0), root)).toBeUndefined();
    expect(openPage({ ...content, hash: randomBytes(32) }, positionIn(counts, 1, 0), root)).toBeUndefined();
    expect(openPage(content, { level: 2, index: 0, last: true }, root)).toBeUndefined();
  });
});

describe("sealing", () => {
  const key = randomBytes(32);
  const hash = randomBytes(32);
  const position = { level: 0, index: 7, last: false };
  const plain = randomBytes(1000);

  test("the same chunk gives the same bytes, and opens in its place alone", () => {
    const sealed = sealChunk(key, hash, position, plain);
    expect(sealChunk(key, hash, position, plain)).toEqual(sealed);
    expect(openChunk(key, hash, position, sealed)).toEqual(plain);
    for (const other of [
      { ...position, index: 8 },
      { ...position, last: true },
      { ...position, level: 1 },
    ])
      expect(openChunk(key, hash, other, sealed)).toBeUndefined();
    for (const at of [0, 500, sealed.length - 1]) {
      const spoilt = sealed.slice();
      spoilt[at]! ^= 1;
      expect(openChunk(key, hash, position, spoilt)).toBeUndefined();
    }
    expect(openChunk(key, hash, position, sealed.subarray(0, 10))).toBeUndefined();
  });
});
