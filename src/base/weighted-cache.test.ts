import { expect, test } from "bun:test";
import { createWeightedCache } from "./weighted-cache.ts";

test("what was used longest ago gives way first", () => {
  const cache = createWeightedCache<number>(10);
  cache.keep("a", 1, 4);
  cache.keep("b", 2, 4);
  expect(cache.get("a")).toBe(1);
  cache.keep("c", 3, 4);
  expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([1, undefined, 3]);
});

test("a value heavier than the limit stays until the next", () => {
  const cache = createWeightedCache<number>(10);
  cache.keep("a", 1, 4);
  cache.keep("heavy", 2, 100);
  expect([cache.get("a"), cache.get("heavy")]).toEqual([undefined, 2]);
  cache.keep("b", 3, 4);
  expect([cache.get("heavy"), cache.get("b")]).toEqual([undefined, 3]);
});

test("a key kept again weighs what it weighs now", () => {
  const cache = createWeightedCache<number>(10);
  cache.keep("a", 1, 9);
  cache.keep("a", 2, 1);
  cache.keep("b", 3, 9);
  expect([cache.get("a"), cache.get("b")]).toEqual([2, 3]);
});

test("a prefix is dropped with its weight", () => {
  const cache = createWeightedCache<number>(10);
  cache.keep("1/a", 1, 5);
  cache.keep("2/a", 2, 5);
  cache.dropPrefix("1/");
  cache.keep("2/b", 3, 5);
  expect([cache.get("1/a"), cache.get("2/a"), cache.get("2/b")]).toEqual([undefined, 2, 3]);
});
