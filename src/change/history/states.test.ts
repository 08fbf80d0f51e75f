import { expect, test } from "bun:test";
import { createWeightedCache } from "../../base/weighted-cache.ts";
import { ABSENT, type RecordState } from "../fold/record-fold.ts";
import { bytesAtMostOf } from "../fold/record-size.ts";
import { createFoldedStates } from "./states.ts";

const live = (n: number): RecordState => {
  const doc = { id: "r", n };
  return { kind: "live", doc, bytesAtMost: bytesAtMostOf(`+${JSON.stringify(doc)}`) };
};
const open = () => createFoldedStates(createWeightedCache<string>(1 << 20), "0/");
const numbers = (count: number, first = 1): number[] => Array.from({ length: count }, (_, i) => first + i);

test("a state is found by all that it is the fold of", () => {
  const states = open();
  states.chain(1, "base", [1, 2, 3]).note(3, live(3));
  expect(states.chain(1, "base", [1, 2, 3]).longestKnown()).toEqual({ count: 3, state: live(3) });
  for (const [row, base, changes] of [
    [2, "base", [1, 2, 3]],
    [1, "other", [1, 2, 3]],
    [1, "base", [1, 2]],
    [1, "base", [1, 3, 2]],
    [1, "base", [2, 3]],
    [1, "base", []],
  ] as const) {
    expect(states.chain(row, base, changes).longestKnown()).toBeUndefined();
  }
});

test("a longer chain goes on from the longest that is known", () => {
  const states = open();
  states.chain(1, "", [1]).note(1, live(1));
  states.chain(1, "", [1, 2]).note(2, live(2));
  expect(states.chain(1, "", [1, 2, 3, 4]).longestKnown()).toEqual({ count: 2, state: live(2) });
  expect(states.chain(1, "", [1, 5, 6]).longestKnown()).toEqual({ count: 1, state: live(1) });
});

test("states on the way are kept where another version is likely to end", () => {
  const states = open();
  const chain = states.chain(1, "", numbers(5_000));
  for (const count of numbers(5_000)) chain.note(count, live(count));
  const longest = (count: number) => states.chain(1, "", [...numbers(count), 99_999]).longestKnown()?.count;
  expect(longest(5_000)).toBe(5_000);
  expect(longest(4_999)).toBe(4_992); // near the end: every 32nd
  expect(longest(3_000)).toBe(2_048); // further down: every 1024th
  expect(longest(1_000)).toBeUndefined();
});

test("absent records and tombstones are states too, and nobody shares a document", () => {
  const states = open();
  const tombstone: RecordState = { kind: "tombstone", doc: { id: "r", _deletedAt: { $date: "x" } } };
  states.chain(1, "", [1]).note(1, ABSENT);
  states.chain(1, "", [2]).note(1, tombstone);
  expect(states.chain(1, "", [1]).longestKnown()).toEqual({ count: 1, state: ABSENT });
  const first = states.chain(1, "", [2]).longestKnown()!;
  expect(first.state).toEqual(tombstone);
  if (first.state.kind === "tombstone") first.state.doc["id"] = "changed";
  expect(states.chain(1, "", [2]).longestKnown()!.state).toEqual(tombstone);
});
