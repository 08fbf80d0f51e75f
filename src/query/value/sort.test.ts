import { expect, test } from "bun:test";
import { SvcError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { makeComparator, parseSort } from "./sort.ts";
import { createTopK } from "./top-k.ts";

const order = (values: Json[], sort: string[]) =>
  values
    .map((a, i) => (a === "(missing)" ? { id: `r${i}` } : { id: `r${i}`, a }))
    .sort(makeComparator(parseSort(sort)))
    .map((doc) => ("a" in doc ? doc.a : "(missing)"));

test("[QUERY-3] mixed types ascend: null, numbers, strings, objects, arrays, booleans, dates", () => {
  const date = { $date: "2026-01-31T09:30:00.000Z" };
  const shuffled = [date, true, "a", { x: 1 }, 5, false, null, [[1]], -1, "B", { x: 0 }, { $date: 0 }];
  const sorted = [null, -1, 5, "B", "a", { x: 0 }, { x: 1 }, [[1]], false, true, { $date: 0 }, date];
  expect(order(shuffled, ["a"])).toEqual(sorted);
  expect(order(shuffled, ["-a"])).toEqual(sorted.toReversed());
});

test("[QUERY-3] an array sorts by its least element ascending, its greatest descending, empty before null", () => {
  const values = [[3, 9], 5, [], null, [1, 4]];
  expect(order(values, ["a"])).toEqual([[], null, [1, 4], [3, 9], 5]);
  expect(order(values, ["-a"])).toEqual([[3, 9], 5, [1, 4], null, []]);
});

test("[QUERY-3] null and missing tie, and ties break by id ascending in either direction", () => {
  expect(order([null, "(missing)", null], ["a"])).toEqual([null, "(missing)", null]);
  expect(order([null, "(missing)", null], ["-a"])).toEqual([null, "(missing)", null]);
});

test("[QUERY-3] strings sort by code point, not by UTF-16 unit", () => {
  expect(order(["😀", "\uffff", "\ud800", "\ue000", "a😀", "a\uffff"], ["a"])).toEqual([
    ..."a\uffff a😀 \ud800 \ue000 \uffff 😀".split(" "),
  ]);
});

test("[QUERY-3] an order by several paths goes on where the first ties", () => {
  const docs = [
    { id: "1", a: 1, b: 1 },
    { id: "2", a: 1, b: 2 },
    { id: "3", a: 0, b: 3 },
  ];
  expect(docs.sort(makeComparator(parseSort(["a", "-b"]))).map(({ id }) => id)).toEqual(["3", "2", "1"]);
});

test("[API-1] a sort of the wrong type is request.schema, a refused value request.invalid_field", () => {
  const faults: [unknown, string, object][] = [
    ["a", "request.schema", { path: "sort", expected: "string[]" }],
    [{ a: 1 }, "request.schema", { path: "sort", expected: "string[]" }],
    [null, "request.schema", { path: "sort", expected: "string[]" }],
    [["a", 1], "request.schema", { path: "sort[1]", expected: "string" }],
    [[""], "request.invalid_field", { field: "sort", reason: "sort[0] names no path" }],
    [["a", "-"], "request.invalid_field", { field: "sort", reason: "sort[1] names no path" }],
    [Array(33).fill("a"), "request.invalid_field", { field: "sort", reason: "sort takes at most 32 paths" }],
  ];
  for (const [input, code, details] of faults) {
    let fault: unknown;
    try {
      parseSort(input);
    } catch (error) {
      fault = error;
    }
    expect(fault instanceof SvcError && [fault.code as string, fault.details as object]).toEqual([code, details]);
  }
  expect(parseSort(undefined)).toEqual([]);
});

test("topK keeps the first k of any stream, in order", () => {
  const numbers = Array.from({ length: 500 }, (_, i) => (i * 7919) % 503);
  for (const k of [0, 1, 7, 500, 600, Number.POSITIVE_INFINITY]) {
    const top = createTopK<number>(k, (a: number, b: number) => a - b);
    for (const n of numbers) top.offer(n);
    expect(top.drain()).toEqual([...numbers].sort((a, b) => a - b).slice(0, k));
  }
});
