import { expect, test } from "bun:test";
import { createRandom, randomDocument, randomFilter } from "../../../test/support/random-json.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { compileFilter } from "../../query/filter/filter-match.ts";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import { guardOptions } from "./filter-guard.ts";
import { WindowIndex } from "./window-index.ts";

function indexOf(...filters: JsonObject[]) {
  const index = new WindowIndex<number>();
  for (const [at, filter] of filters.entries()) index.add(at, parseFilter(filter));
  return index;
}

function found(index: WindowIndex<number>, after: JsonObject | undefined, before?: JsonObject): number[] {
  const windows: number[] = [];
  index.visitCandidates({ parsedBefore: before, parsed: after }, (window) => windows.push(window));
  return windows.sort((a, b) => a - b);
}

test("windows on other values are no candidates, before and after count", () => {
  const index = indexOf({ owner: "ann" }, { owner: "bob" }, { owner: { $in: ["bob", "cy"] } }, { n: { $ne: 1 } }, {});
  expect(found(index, { owner: "ann" })).toEqual([0, 3, 4]);
  expect(found(index, { owner: "bob" })).toEqual([1, 2, 3, 4]);
  expect(found(index, { owner: "cy" }, { owner: "ann" })).toEqual([0, 2, 3, 4]);
  expect(found(index, undefined, { owner: ["x", "ann"] })).toEqual([0, 3, 4]);
  expect(found(index, { other: 1 })).toEqual([3, 4]);
});

test("null is missing too, dates are one however they are written, and texts are no dates", () => {
  const index = indexOf({ a: null }, { a: { $date: "2026-01-31T09:30:00.000Z" } }, { a: "\0date 1769851800000" });
  expect(found(index, {})).toEqual([0]);
  expect(found(index, { a: { $date: 1769851800000 } })).toContain(1);
  expect(found(index, { a: 1769851800000 })).toEqual([]);
});

test("an $or is filed under all its branches, or under none", () => {
  const index = indexOf({ $or: [{ a: 1 }, { b: 2 }] }, { $or: [{ a: 1 }, { b: { $ne: 2 } }] }, { a: { $in: [] } });
  expect(found(index, { a: 1 })).toEqual([0, 1]);
  expect(found(index, { b: 2 })).toEqual([0, 1]);
  expect(found(index, { c: 2 })).toEqual([1]);
});

test("windows on other texts are no candidates", () => {
  const index = new WindowIndex<number>();
  for (let n = 0; n < 500; n++) index.add(n, parseFilter({ a: { $regex: `^user${n}$` } }));
  for (let n = 500; n < 1_000; n++) index.add(n, parseFilter({ a: { $regex: `NR-${n}x`, $options: "i" } }));
  index.add(1_000, parseFilter({ a: { $regex: "an?y" } }));
  index.add(1_001, parseFilter({ a: { $regex: "one|other" } }));
  expect(found(index, { a: "own1" })).toEqual([]);
  expect(found(index, { a: "any ay" }, { a: "one" })).toEqual([1_000, 1_001]);
  expect(found(index, { a: "user77" })).toContain(77);
  expect(found(index, { a: "user77" }).length).toBeLessThan(50);
  expect(found(index, { a: "see nr-777X" })).toContain(777);
  expect(found(index, { a: "see nr-777X" }).length).toBeLessThan(50);
  expect(found(index, { a: [1, "nr-5\u017f", "user5"] }, { a: "x" })).toContain(5);
  expect(found(index, { a: 5, b: "user5 one" })).toEqual([]);
  for (let n = 0; n < 1_002; n++) index.remove(n);
  expect(found(index, { a: "user77 nr-777x ay one" })).toEqual([]);
});

test("windows on other ranges are no candidates", () => {
  const index = new WindowIndex<number>();
  for (let n = 0; n < 500; n++) index.add(n, parseFilter({ n: { $gte: n * 10, $lt: n * 10 + 10 } }));
  index.add(1000, parseFilter({ n: { $gt: 4_000 } }));
  index.add(1001, parseFilter({ n: { $lte: "b" } }));
  index.add(1002, parseFilter({ n: { $lt: { $date: 100 } } }));
  index.add(1003, parseFilter({ $or: [{ n: { $lt: -5 } }, { n: { $gt: 1e6 } }] }));
  expect(found(index, { n: 25 })).toEqual([2]);
  expect(found(index, { n: 4_005 }, { n: -9 })).toEqual([400, 1000, 1003]);
  expect(found(index, { n: "a" })).toEqual([1001]);
  expect(found(index, { n: { $date: 99 } })).toEqual([1002]);
  expect(found(index, { n: [25, { $date: 99 }, 2e6] })).toContain(1003);
  expect(found(index, {})).toEqual([]);
  for (let n = 0; n < 1_100; n++) index.remove(n);
  expect(found(index, { n: 25 })).toEqual([]);
});

test("of two equalities the one that fewer windows share is used", () => {
  const index = new WindowIndex<number>();
  for (let n = 0; n < 100; n++) index.add(n, parseFilter({ state: "open", owner: `u${n}` }));
  expect(found(index, { state: "open", owner: "u42" }).length).toBeLessThan(3);
});

test("removed windows are found no more", () => {
  const index = indexOf({ a: 1 }, { a: { $in: [1, 2] } }, {});
  index.remove(1);
  index.remove(2);
  expect(found(index, { a: 1 })).toEqual([0]);
  index.remove(0);
  expect(found(index, { a: 1 }, { a: 2 })).toEqual([]);
});

for (const seed of [1, 2, Date.now() % 1_000_000]) {
  test(`whatever matches is a candidate, seed ${seed}`, () => {
    const random = createRandom(seed);
    let guarded = 0;
    let spared = 0;
    for (let round = 0; round < 60; round++) {
      const filters = Array.from({ length: 40 }, () => parseFilter(randomFilter(random)));
      const index = new WindowIndex<number>();
      for (const [at, filter] of filters.entries()) {
        index.add(at, filter);
        if (guardOptions(filter).length > 0) guarded++;
      }
      for (let n = 0; n < 40; n++) {
        const doc = randomDocument(random, `r${n}`);
        const candidates = new Set(n % 2 === 0 ? found(index, doc) : found(index, undefined, doc));
        spared += filters.length - candidates.size;
        for (const [at, filter] of filters.entries()) {
          if (!compileFilter(filter)(doc) || candidates.has(at)) continue;
          throw new Error(`seed ${seed}: ${JSON.stringify(filter)} matches ${JSON.stringify(doc)} unseen`);
        }
      }
    }
    // The index must have something to do, and do it.
    expect(guarded).toBeGreaterThan(400);
    expect(spared).toBeGreaterThan(10_000);
  });
}
