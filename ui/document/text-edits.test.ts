import { expect, test } from "bun:test";
import { textEdits } from "./text-edits.ts";

/** Applies edits as the server does: each matches once in the original text. */
function apply(text: string, edits: readonly { oldText: string; newText: string }[]): string {
  const spots = edits.map(({ oldText, newText }) => {
    const at = text.indexOf(oldText);
    expect([oldText, at >= 0, text.indexOf(oldText, at + 1)]).toEqual([oldText, true, -1]);
    return { at, end: at + oldText.length, newText };
  });
  let result = text;
  let before = Number.POSITIVE_INFINITY;
  for (const { at, end, newText } of spots.toSorted((a, b) => b.at - a.at)) {
    expect(end <= before).toBe(true);
    before = at;
    result = result.slice(0, at) + newText + result.slice(end);
  }
  return result;
}

test("equal texts need none, an empty one has nothing to match in", () => {
  expect(textEdits("a\nb", "a\nb")).toEqual([]);
  expect(textEdits("", "a")).toBeUndefined();
});

test("two places changed are two edits, which leave a third person's change between them alone", () => {
  const lines = ["# Title", "", "first", "", "second", "", "third", "", "fourth", "", "fifth"];
  const before = lines.join("\n");
  const after = before.replace("first", "FIRST").replace("fifth", "fifth\n\nsixth");
  const edits = textEdits(before, after);
  expect(edits?.length).toBe(2);
  expect(apply(before, edits!)).toBe(after);
  expect(apply(before.replace("third", "3rd"), edits!)).toBe(after.replace("third", "3rd"));
});

test("repeated lines get as many lines around them as tell them apart", () => {
  const before = "a\nx\nb\nx\nc\nx\nd";
  const after = "a\nx\nb\ny\nc\nx\nd";
  expect(apply(before, textEdits(before, after)!)).toBe(after);
});

test("random edits of repetitive texts come out exactly", () => {
  let seed = 20_261;
  const next = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  let exact = 0;
  for (let round = 0; round < 2_000; round++) {
    const lines = Array.from({ length: 1 + next(12) }, () => ["", "a", "b", "- x", "aa"][next(5)]!);
    const before = lines.join("\n");
    for (let edit = 1 + next(3); edit > 0; edit--) {
      lines.splice(next(lines.length + 1), next(3), ...["new", "a", ""].slice(0, next(3)));
    }
    const after = lines.join("\n");
    const edits = textEdits(before, after);
    if (edits === undefined) continue;
    expect(apply(before, edits)).toBe(after);
    exact++;
  }
  expect(exact).toBeGreaterThan(1_500);
});

test("a long text of equal lines, and one changed throughout, are done with a few searches", () => {
  const same = Array.from({ length: 30_000 }, () => "same").join("\n");
  const inserted = `${same.slice(0, 50_000)}new\n${same.slice(50_000)}`;
  expect(apply(same, textEdits(same, inserted)!)).toBe(inserted);
  const lines = Array.from({ length: 800 }, (_, index) => `line ${index}`);
  const changed = lines.map((line, index) => (index % 2 === 0 ? line : `${line}!`)).join("\n");
  const edits = textEdits(lines.join("\n"), changed)!;
  expect(edits.length).toBe(1);
  expect(apply(lines.join("\n"), edits)).toBe(changed);
});
