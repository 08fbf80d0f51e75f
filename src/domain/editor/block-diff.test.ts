import { describe, expect, test } from "bun:test";
import { createRng, type Rng, runSeed } from "../../../test/support/rng.ts";
import type { BlockFields } from "./block.ts";
import { alignBlocks, commonSubsequence } from "./block-diff.ts";

const seed = runSeed("block diff");
const texts = (...list: string[]): BlockFields[] => list.map((text) => ({ type: "paragraph", text }));

/** The length of a longest common subsequence by the textbook's table. */
function slowLength(a: readonly number[], b: readonly number[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const x of a) {
    const next = [0];
    for (const [j, y] of b.entries()) next.push(x === y ? row[j]! + 1 : Math.max(row[j + 1]!, next[j]!));
    row = next;
  }
  return row[b.length]!;
}

function expectCommon(
  a: readonly number[],
  b: readonly number[],
  matches: readonly (readonly [number, number])[],
): void {
  let last: readonly [number, number] = [-1, -1];
  for (const match of matches) {
    expect(match[0]).toBeGreaterThan(last[0]);
    expect(match[1]).toBeGreaterThan(last[1]);
    expect(a[match[0]]).toBe(b[match[1]]!);
    last = match;
  }
}

const list = (rng: Rng, length: number, alphabet: number) => Array.from({ length }, () => rng.int(0, alphabet));

describe("the common blocks are a longest common subsequence", () => {
  test("of random lists", () => {
    const rng = createRng(seed).fork("lcs");
    for (let i = 0; i < 3000; i++) {
      const alphabet = rng.pick([1, 2, 5, 50]);
      const [a, b] = [list(rng, rng.int(0, 30), alphabet), list(rng, rng.int(0, 30), alphabet)];
      const matches = commonSubsequence(a, b);
      expectCommon(a, b, matches);
      expect(matches.length).toBe(slowLength(a, b));
    }
  });

  test("of a long list with scattered edits", () => {
    const rng = createRng(seed).fork("long");
    const a = Array.from({ length: 10_000 }, (_, index) => index);
    const b = a.filter(() => !rng.chance(0.01));
    for (let i = 0; i < 100; i++) b.splice(rng.int(0, b.length), 0, 20_000 + i);
    const matches = commonSubsequence(a, b);
    expectCommon(a, b, matches);
    expect(matches.length).toBe(b.length - 100);
  });

  test("or a common one through the unique blocks, where everything around them changed", () => {
    const a = Array.from({ length: 6000 }, (_, index) => (index % 3 === 0 ? index : -1 - index));
    const b = Array.from({ length: 6000 }, (_, index) => (index % 3 === 0 ? index : 100_000 + index));
    const matches = commonSubsequence(a, b);
    expectCommon(a, b, matches);
    expect(matches.length).toBe(2000);
  });

  test("or a common one of repeated blocks, within bounded work", () => {
    const rng = createRng(seed).fork("repeated");
    const [a, b] = [list(rng, 50_000, 40), list(rng, 50_000, 40)];
    const matches = commonSubsequence(a, b);
    expectCommon(a, b, matches);
    expect(matches.length).toBeGreaterThan(500);
    // Anchors that show only one level further down each time.
    const nested = Array.from({ length: 5000 }, (_, index) => index >> 1);
    expectCommon(nested, [...nested].reverse(), commonSubsequence(nested, [...nested].reverse()));
  });
});

describe("what is not common is updated in place, inserted or deleted (EDIT-5)", () => {
  test("a changed block between unchanged ones keeps its place", () => {
    expect(alignBlocks(texts("a", "b", "c"), texts("a", "B", "c"))).toEqual({ from: [0, 1, 2], deleted: [] });
  });

  test("the new block most like an old one replaces it", () => {
    const before = texts("a", "the quick brown fox", "z");
    const after = texts("a", "something else", "the quick red fox", "z");
    expect(alignBlocks(before, after)).toEqual({ from: [0, undefined, 1, 2], deleted: [] });
    expect(alignBlocks(after, before)).toEqual({ from: [0, 2, 3], deleted: [1] });
  });

  test("a block may change its type when its text stays alike", () => {
    const heading: BlockFields = { type: "heading", style: { level: 1 }, text: "title" };
    expect(alignBlocks(texts("title"), [heading])).toEqual({ from: [0], deleted: [] });
    expect(alignBlocks(texts("title"), [{ ...heading, text: "other" }])).toEqual({ from: [undefined], deleted: [0] });
    expect(alignBlocks(texts("title"), [{ type: "divider", text: "" }])).toEqual({ from: [undefined], deleted: [0] });
  });

  test("position is no part of identity, so a block that was moved is deleted and inserted", () => {
    expect(alignBlocks(texts("a", "b", "c"), texts("c", "a", "b"))).toEqual({ from: [undefined, 0, 1], deleted: [2] });
  });

  test("style counts as far as markdown shows it", () => {
    const code = (style: BlockFields["style"]): BlockFields => ({
      type: "code",
      text: "x",
      ...(style ? { style } : {}),
    });
    const ids = alignBlocks(
      [code({ lang: "js", color: "red" }), code(undefined)],
      [code({ lang: "js" }), code({ lang: "ts" })],
    );
    expect(ids).toEqual({ from: [0, 1], deleted: [] });
  });

  test("old and new blocks stay in order, each used once", () => {
    const rng = createRng(seed).fork("alignment");
    const block = (): BlockFields => ({
      type: rng.pick(["paragraph", "heading", "divider"]),
      text: rng.pick(["", "a", "ab", "abc", "x"]),
    });
    for (let i = 0; i < 1500; i++) {
      const size = rng.chance(0.02) ? 250 : 12;
      const before = Array.from({ length: rng.int(0, size) }, block);
      const after = Array.from({ length: rng.int(0, size) }, block);
      const { from, deleted } = alignBlocks(before, after);
      const used = from.filter((index) => index !== undefined);
      expect(from.length).toBe(after.length);
      expect(used).toEqual([...used].sort((x, y) => x - y));
      expect([...used, ...deleted].sort((x, y) => x - y)).toEqual([...before.keys()]);
    }
  });
});
