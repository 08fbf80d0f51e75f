import { expect, test } from "bun:test";
import { RE2JS } from "re2js";
import { createRng } from "../../../test/support/rng.ts";
import { PatternShelf } from "./pattern-shelf.ts";

/** A pattern that counts how often it is tried. */
function counted(text: string, tries: string[]): RE2JS {
  const pattern = RE2JS.compile(text);
  const real = pattern.test.bind(pattern);
  pattern.test = (value) => {
    tries.push(`${text} ${String(value)}`);
    return real(value);
  };
  return pattern;
}

function found<W>(shelf: PatternShelf<W>, value: string): W[] {
  const windows = new Set<W>();
  shelf.find(value, windows);
  return [...windows];
}

test("a value is tried once by each pattern, however many windows share it", () => {
  const tries: string[] = [];
  const shelf = new PatternShelf<number>();
  for (const window of [1, 2]) shelf.add(counted("[a]b?", tries), window);
  shelf.add(counted("[c]", tries), 3);
  for (let n = 0; n < 3; n++) expect(found(shelf, "xa")).toEqual([1, 2]);
  expect(tries).toEqual(["[a]b? xa", "[c] xa"]);
  shelf.add(counted("x|y", tries), 4);
  expect(found(shelf, "xa")).toEqual([1, 2, 4]);
  expect(tries.slice(2)).toEqual(["x|y xa"]);
  expect(found(shelf, "c")).toEqual([3]);
});

test("the same text with other options is another pattern", () => {
  const shelf = new PatternShelf<number>();
  shelf.add(RE2JS.compile("[a]"), 1);
  shelf.add(RE2JS.compile("[a]", RE2JS.CASE_INSENSITIVE), 2);
  expect(found(shelf, "A")).toEqual([2]);
  expect(shelf.size).toBe(2);
});

test("whatever is added and removed, those windows are found whose pattern matches", () => {
  const rng = createRng(7);
  const shelf = new PatternShelf<number>();
  const patterns = ["[ab]", "a|b", "c+", "[c]d?", "^.$", "e", "[x]"].map((text) => RE2JS.compile(text));
  const patternByWindow = new Map<number, RE2JS>();
  for (let round = 0; round < 2_000; round++) {
    const window = rng.int(0, 30);
    const held = patternByWindow.get(window);
    if (held) {
      shelf.remove(held, window);
      patternByWindow.delete(window);
    } else {
      const pattern = patterns[rng.int(0, patterns.length - 1)]!;
      shelf.add(pattern, window);
      patternByWindow.set(window, pattern);
    }
    const value = ["a", "cc", "bcd", "", "zz"][rng.int(0, 4)]!;
    const expected = [...patternByWindow].filter(([, pattern]) => pattern.test(value)).map(([key]) => key);
    expect(found(shelf, value).sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
  }
  for (const [window, pattern] of patternByWindow) shelf.remove(pattern, window);
  expect(shelf.size).toBe(0);
  expect(found(shelf, "a")).toEqual([]);
});
