import { expect, test } from "bun:test";
import { mergeLines } from "./line-merge.ts";

const text = (...lines: string[]) => lines.join("\n");
const BASE = text("one", "two", "three", "four", "five");

test("[PAGE-2] what either changed alone is taken, also side by side", () => {
  const merge = mergeLines(
    BASE,
    text("one", "TWO", "three", "four", "five", "six"),
    text("zero", "one", "two", "THREE", "four", "5"),
  );
  expect(merge.conflicts).toEqual([]);
  expect(merge.resolve([])).toBe(text("zero", "one", "TWO", "THREE", "four", "5", "six"));
});

test("[PAGE-2] the same lines changed otherwise are a conflict, and nothing else is", () => {
  const merge = mergeLines(
    BASE,
    text("ONE", "two", "mine", "four", "five"),
    text("one", "two", "theirs", "more", "four", "FIVE"),
  );
  expect(merge.conflicts).toEqual([{ mine: "mine", theirs: text("theirs", "more") }]);
  expect(merge.resolve(["mine"])).toBe(text("ONE", "two", "mine", "four", "FIVE"));
  expect(merge.resolve(["theirs"])).toBe(text("ONE", "two", "theirs", "more", "four", "FIVE"));
  expect(merge.resolve(["both"])).toBe(text("ONE", "two", "theirs", "more", "mine", "four", "FIVE"));
});

test("[PAGE-2] lines next to each other that one changed are told apart", () => {
  const merge = mergeLines(
    BASE,
    text("one", "mine", "three", "four", "five"),
    text("ONE", "theirs", "THREE", "four", "five"),
  );
  expect(merge.conflicts).toEqual([{ mine: "mine", theirs: "theirs" }]);
  expect(merge.resolve(["mine"])).toBe(text("ONE", "mine", "THREE", "four", "five"));
});

test("[PAGE-2] the same change of both, and a line inserted at one place by both", () => {
  const both = text("one", "two", "new", "three", "four", "five");
  expect(mergeLines(BASE, both, both).conflicts).toEqual([]);
  expect(mergeLines(BASE, both, both).resolve([])).toBe(both);
  const other = text("one", "two", "other", "three", "four", "five");
  expect(mergeLines(BASE, both, other).conflicts).toEqual([{ mine: "new", theirs: "other" }]);
});

test("[PAGE-2] deleted by one and changed by the other is a conflict; several are decided one by one", () => {
  const merge = mergeLines(BASE, text("one", "three", "four", "mine"), text("one", "2", "three", "four", "theirs"));
  expect(merge.conflicts).toEqual([
    { mine: "", theirs: "2" },
    { mine: "mine", theirs: "theirs" },
  ]);
  expect(merge.resolve(["theirs", "mine"])).toBe(text("one", "2", "three", "four", "mine"));
  expect(merge.resolve(["mine", "theirs"])).toBe(text("one", "three", "four", "theirs"));
});

test("[PAGE-2] random changes: with theirs unchanged the result is mine, and the other way round", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed % below;
  };
  const edited = (lines: readonly string[]): string[] =>
    lines.flatMap((line) => [[line], [line], [line], [], [`${line}!`], [line, `new ${random(5)}`]][random(6)]!);
  for (let round = 0; round < 500; round++) {
    const base = Array.from({ length: random(12) }, () => `line ${random(6)}`);
    const [mine, theirs] = [edited(base), edited(base)];
    const [b, m, t] = [base.join("\n"), mine.join("\n"), theirs.join("\n")];
    expect(mergeLines(b, m, b).resolve([])).toBe(m);
    expect(mergeLines(b, b, t).resolve([])).toBe(t);
    const merge = mergeLines(b, m, t);
    if (merge.conflicts.length > 0) continue;
    // Without conflicts it does not matter which side is mine.
    expect(mergeLines(b, t, m).resolve([])).toBe(merge.resolve([]));
  }
});
