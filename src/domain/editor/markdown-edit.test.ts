import { describe, expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { applyMarkdownEdits, type MarkdownEdit } from "./markdown-edit.ts";
import { findAll, findLineRuns } from "./text-search.ts";

const seed = runSeed("markdown edits");
const edit = (content: string, oldText: string, newText: string, replaceAll?: boolean) =>
  applyMarkdownEdits(content, [{ oldText, newText, ...(replaceAll === undefined ? {} : { replaceAll }) }]);

const refusal = (content: string, edits: readonly MarkdownEdit[]) =>
  refusalOf(() => applyMarkdownEdits(content, edits));

describe("exact matches (EDIT-6)", () => {
  test("replace the one occurrence", () => {
    expect(edit("one two three", "two", "2")).toBe("one 2 three");
    expect(edit("a\n\nb\n", "a\n\nb", "a b")).toBe("a b\n");
  });

  test("replaceAll replaces every one, without overlap", () => {
    expect(edit("aaaa a", "aa", "b", true)).toBe("bb a");
    expect(edit("x", "x", "y", true)).toBe("y");
  });

  test("line ends are folded on both sides", () => {
    expect(edit("a\nb", "a\r\nb", "c\r\nd")).toBe("c\nd");
  });

  test("all edits look at the original text", () => {
    const edits = [
      { oldText: "a", newText: "b" },
      { oldText: "b", newText: "a" },
    ];
    expect(applyMarkdownEdits("a b", edits)).toBe("b a");
  });

  test("an edit to the same text changes nothing", () => {
    expect(edit("a\n\nb", "b", "b")).toBe("a\n\nb");
  });

  test("regular expression characters and $ patterns are plain text", () => {
    expect(edit("a.*b", ".*", "$&$1")).toBe("a$&$1b");
  });
});

describe("faults (EDIT-6)", () => {
  const fine = { oldText: "a", newText: "b" };

  test("no edits, too many, an empty oldText: request.invalid_field", () => {
    expect(refusal("a", [])).toMatchObject({ code: "request.invalid_field", details: { field: "edits" } });
    const many = new Array<MarkdownEdit>(LIMITS.markdownEdits + 1).fill(fine);
    expect(refusal("a", many)).toMatchObject({ code: "request.invalid_field", details: { field: "edits" } });
    expect(refusal("a", [fine, { oldText: "", newText: "c" }])).toMatchObject({
      code: "request.invalid_field",
      details: { field: "edits[1].oldText" },
    });
  });

  test("text that is not there: markdown.no_match", () => {
    expect(refusal("a", [fine, { oldText: "c", newText: "" }])).toEqual({
      code: "markdown.no_match",
      details: { editIndex: 1 },
    });
    expect(refusal("", [fine])).toEqual({ code: "markdown.no_match", details: { editIndex: 0 } });
  });

  test("text that is there more than once without replaceAll: markdown.ambiguous_match", () => {
    expect(refusal("x a a a", [{ oldText: "a", newText: "" }])).toEqual({
      code: "markdown.ambiguous_match",
      details: { editIndex: 0, occurrences: 3 },
    });
  });

  test("two edits of intersecting text: markdown.overlapping_edits", () => {
    const overlapping = [
      { oldText: "z", newText: "" },
      { oldText: "bc", newText: "" },
      { oldText: "ab", newText: "" },
    ];
    expect(refusal("abc z", overlapping)).toEqual({
      code: "markdown.overlapping_edits",
      details: { editIndices: [1, 2] },
    });
    const inside = [
      { oldText: "abc", newText: "" },
      { oldText: "b", newText: "" },
    ];
    expect(refusal("abc", inside).details).toEqual({ editIndices: [0, 1] });
    expect(
      applyMarkdownEdits("abcd", [
        { oldText: "ab", newText: "1" },
        { oldText: "cd", newText: "2" },
      ]),
    ).toBe("12");
  });

  test("one fault refuses all edits, the first in their order", () => {
    const edits = [fine, { oldText: "nowhere", newText: "" }, { oldText: "", newText: "" }];
    expect(refusal("a", edits).code).toBe("request.invalid_field");
    expect(refusal("a", edits.slice(0, 2)).code).toBe("markdown.no_match");
  });
});

describe("whole lines are matched loosely when nothing matches exactly (EDIT-6)", () => {
  test("quotes, dashes, spaces and trailing blanks", () => {
    expect(edit("He said “no” – twice…  \nend", 'He said "no" - twice...', "x")).toBe("x\nend");
    expect(edit("a\u00a0b\t\nc", "a b\nc", "x")).toBe("x");
    expect(edit("it's -1", "it’s −1", "x")).toBe("x");
    expect(edit("ﬁne Ⅳ", "fine IV", "x")).toBe("x");
  });

  test("never inside a line", () => {
    expect(refusal("say “no” now", [{ oldText: '"no"', newText: "" }]).code).toBe("markdown.no_match");
    expect(refusal("a  \nb", [{ oldText: "a\nb c", newText: "" }]).code).toBe("markdown.no_match");
  });

  test("never when the text is there exactly", () => {
    expect(edit('“a”\n"a"', '"a"', "x")).toBe("“a”\nx");
  });

  test("ambiguity and replaceAll count as for exact matches", () => {
    const content = "“a”\nb\n‘’\n„a‟\nb\n";
    expect(refusal("“a”\nb\n”a“", [{ oldText: '"a"', newText: "" }])).toMatchObject({
      code: "markdown.ambiguous_match",
      details: { occurrences: 2 },
    });
    expect(edit("“a”\nb\n”a“", '"a"', "x", true)).toBe("x\nb\nx");
    expect(edit(content, "''", "x")).toBe("“a”\nb\nx\n„a‟\nb\n");
  });

  test("a line break at either end of the wanted text belongs to it", () => {
    expect(edit("x\n“a”\ny\n", '"a"\n', "z\n")).toBe("x\nz\ny\n");
    expect(edit("x\n“a”\ny\n", '\n"a"', " z")).toBe("x z\ny\n");
    expect(refusal("“a”\ny\n", [{ oldText: '\n"a"', newText: "" }]).code).toBe("markdown.no_match");
    expect(edit("x\n“a”", '"a"\n', "z")).toBe("x\nz");
  });

  test("blank lines alone are not looked for loosely", () => {
    expect(refusal("a\n \nb", [{ oldText: "  ", newText: "" }]).code).toBe("markdown.no_match");
  });
});

describe("deleting whole blocks takes one separator with them (EDIT-6)", () => {
  const CASES: [content: string, oldText: string, left: string][] = [
    ["a\n\nb\n\nc", "b", "a\n\nc"],
    ["a\n\nb\n\nc", "a", "b\n\nc"],
    ["a\n\nb\n\nc", "c", "a\n\nb\n"],
    ["a\n\nb\n\nc\n", "c", "a\n\nb\n"],
    ["a\n\nb\n\nc", "a\n\nb", "c"],
    ["- a\n- b\n- c\n", "- b", "- a\n- c\n"],
    ["- a\n- b\n- c\n", "- c", "- a\n- b\n"],
    ["- a\n- b", "- b", "- a"],
    ["a\n\n```\nb\n```\n\nc", "```\nb\n```", "a\n\nc"],
    ["a", "a", ""],
    ["a\n", "a", ""],
    ["a\n\nb c\n\nd", "b", "a\n\n c\n\nd"],
    ["a\n\nb\n\nc", "b\n\n", "a\n\nc"],
    ["a\n\n\n\nb", "a", "\n\nb"],
  ];
  for (const [content, oldText, left] of CASES) {
    test(JSON.stringify([content, oldText]), () => expect(edit(content, oldText, "")).toBe(left));
  }

  test("several at once", () => {
    expect(edit("x\n\na\n\nx\n\nb\n\nx", "x", "", true)).toBe("a\n\nb\n");
    expect(
      applyMarkdownEdits("a\n\nb\n\nc", [
        { oldText: "a", newText: "" },
        { oldText: "\n\nb", newText: "!" },
      ]),
    ).toBe("!\n\nc");
  });
});

describe("searching is linear and right", () => {
  test("long patterns are found as short ones are", () => {
    const rng = createRng(seed).fork("search");
    for (let i = 0; i < 300; i++) {
      const text = Array.from({ length: rng.int(0, 3000) }, () => rng.pick(["a", "b"])).join("");
      const from = rng.int(0, Math.max(0, text.length - 1));
      const pattern = `${text.slice(from, from + rng.int(1, 600))}${rng.pick(["", "a", "c"])}`;
      if (pattern === "") continue;
      const expected: number[] = [];
      for (let at = text.indexOf(pattern); at !== -1; at = text.indexOf(pattern, at + pattern.length))
        expected.push(at);
      expect(findAll(text, pattern)).toEqual(expected);
    }
  });

  test("runs of lines do not overlap", () => {
    expect(findLineRuns(["a", "a", "a", "b", "a", "a"], ["a", "a"])).toEqual([0, 4]);
    expect(findLineRuns(["a", "a", "b"], ["a", "b"])).toEqual([1]);
    expect(findLineRuns([], ["a"])).toEqual([]);
  });

  test("a megabyte of near misses is searched through", () => {
    const text = `${"a".repeat(5000)}b`.repeat(200);
    expect(findAll(text, `${"a".repeat(2500)}b${"a".repeat(2400)}c`)).toEqual([]);
    expect(refusal("“\n".repeat(1 << 18), [{ oldText: `${'"\n'.repeat(1 << 17)}x`, newText: "" }]).code).toBe(
      "markdown.no_match",
    );
  });
});
