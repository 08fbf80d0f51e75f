import { expect, test } from "bun:test";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import { parseSort } from "../../query/value/sort.ts";
import { windowKey } from "./window-key.ts";

const keyOf = (filter: unknown, sort: string[] = [], limit = Number.POSITIVE_INFINITY, offset = 0) =>
  windowKey({ filter: parseFilter(filter), sort: parseSort(sort), limit, offset });

test("the same query has one key, parsed twice", () => {
  const filter = { a: { $regex: "^x", $options: "i" }, b: { $in: [1, "1", null] } };
  expect(keyOf(filter, ["-n"], 5, 2)).toBe(keyOf(structuredClone(filter), ["-n"], 5, 2));
});

test("different queries have different keys", () => {
  const keys = [
    keyOf({}),
    keyOf({}, ["n"]),
    keyOf({}, ["-n"]),
    keyOf({}, ["n"], 5),
    keyOf({}, ["n"], 5, 1),
    keyOf({ a: 1 }),
    keyOf({ a: "1" }),
    keyOf({ a: null }),
    keyOf({ a: JSON.parse("1e999") }),
    keyOf({ a: JSON.parse("-1e999") }),
    keyOf({ a: { $regex: "x" } }),
    keyOf({ a: { $regex: "x", $options: "i" } }),
    keyOf({ a: { $regex: "y" } }),
    keyOf({ $or: [{ a: 1 }] }),
    keyOf({ $nor: [{ a: 1 }] }),
  ];
  expect(new Set(keys).size).toBe(keys.length);
});
