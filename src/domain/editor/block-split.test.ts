import { describe, expect, test } from "bun:test";
import type { BlockFields } from "./block.ts";
import { foldLineEnds, splitMarkdown } from "./block-split.ts";

const fieldsOf = (markdown: string): BlockFields[] =>
  splitMarkdown(markdown).map(({ type, text, style }) => (style ? { type, style, text } : { type, text }));
const paragraph = (text: string): BlockFields => ({ type: "paragraph", text });
const item = (text: string, ordered = false): BlockFields => ({ type: "list_item", style: { ordered }, text });
const check = (text: string, checked: boolean): BlockFields => ({ type: "check_list_item", style: { checked }, text });
const heading = (text: string, level: number): BlockFields => ({ type: "heading", style: { level }, text });
const code = (text: string, lang?: string): BlockFields =>
  lang === undefined ? { type: "code", text } : { type: "code", style: { lang }, text };

/** What a text is cut into; every case also goes through the checks at the end of the file. */
const CASES: [rule: string, markdown: string, blocks: BlockFields[]][] = [
  ["nothing is nothing", "", []],
  ["a paragraph goes on until a blank line", "one\ntwo\n\nthree", [paragraph("one\ntwo"), paragraph("three")]],
  [
    "a paragraph goes on until another opener",
    "one\n# two\nthree",
    [paragraph("one"), heading("two", 1), paragraph("three")],
  ],
  ["up to three spaces before a paragraph mean nothing", "   one\n  two", [paragraph("one\n  two")]],
  ["an indented paragraph keeps its indentation", "    one\n\n\tTwo", [paragraph("    one"), paragraph("\tTwo")]],
  ["headings of six levels", "# a\n###### b\n####### c", [heading("a", 1), heading("b", 6), paragraph("####### c")]],
  ["a heading needs a blank after its marks", "#a\n\n#\n\n#\tb", [paragraph("#a"), heading("", 1), heading("b", 1)]],
  [
    "a closing run of # is dropped after a blank",
    "## a ##  \n## b#\n## #",
    [heading("a", 2), heading("b#", 2), heading("", 2)],
  ],
  ["a line of === or --- makes one text line a heading", "a\n===\nb\n-", [heading("a", 1), heading("b", 2)]],
  [
    "under two text lines === is text and --- a divider",
    "a\nb\n===\n\na\nb\n---",
    [paragraph("a\nb\n==="), paragraph("a\nb"), { type: "divider", text: "" }],
  ],
  ["a fence goes to its close", "```js x\na\n\nb\n```\nc", [code("a\n\nb", "js x"), paragraph("c")]],
  ["a fence closes with its own character, as long or longer", "~~~~\n```\n~~~\n~~~~~", [code("```\n~~~")]],
  ["a backtick in the info string makes it no fence", "``` a`b\nc", [paragraph("``` a`b\nc")]],
  ["an empty fence", "```\n```\n\n```\n\n```", [code(""), code("")]],
  ["an unterminated fence goes to the end without trailing blank lines", "```\na\n\n\n", [code("a"), paragraph("")]],
  ["an unterminated fence of nothing", "```", [code("")]],
  ["four spaces make no fence", "    ```\na", [paragraph("    ```\na")]],
  ["a run of > lines is one quote", "> a\n>b\n>\n>  c\nd", [{ type: "quote", text: "a\nb\n\n c" }, paragraph("d")]],
  ["a quote in a quote keeps its marker", "> > a", [{ type: "quote", text: "> a" }]],
  ["one item a marker", "- a\n* b\n+ c", [item("a"), item("b"), item("c")]],
  [
    "numbers of up to nine digits with . or )",
    "1. a\n2) b\n123456789. c\n1234567890. d",
    [item("a", true), item("b", true), item("c", true), paragraph("1234567890. d")],
  ],
  ["a marker needs a blank or the line's end", "-a\n\n-\n\n1.b", [paragraph("-a"), item(""), paragraph("1.b")]],
  [
    "check boxes",
    "- [ ] a\n* [x] b\n1. [X] c\n- [ ]\n- [y] d\n- [x]e",
    [check("a", false), check("b", true), check("c", true), check("", false), item("[y] d"), item("[x]e")],
  ],
  ["lines indented to the content belong to the item", "- a\n  b\n\n  c\n d", [item("a\n  b\n\n  c"), paragraph("d")]],
  ["nested items are text", "1. a\n   - b\n     - c\n2. d", [item("a\n   - b\n     - c", true), item("d", true)]],
  [
    "blank lines count when an indented line follows",
    "- a\n\n\n  b\n\n\nc",
    [item("a\n\n\n  b"), paragraph(""), paragraph("c")],
  ],
  ["an empty item is ended by a blank line", "-\n\n  a\n\n-\n  b", [item(""), paragraph("a"), item("\n  b")]],
  ["five spaces after a marker are one and code", "-     a\n  b", [item("    a\n  b")]],
  ["tabs count to stops of four", "-\ta\n    b\n\n\tc\n   d", [item("a\n    b\n\n\tc"), paragraph("d")]],
  [
    "html from < to a blank line",
    "<div>\n# a\n\nb\n</p>",
    [{ type: "html", text: "<div>\n# a" }, paragraph("b"), { type: "html", text: "</p>" }],
  ],
  [
    "html starts with a letter, /, ! or ?",
    "<!-- a\n\n<?b\n\n<1",
    [{ type: "html", text: "<!-- a" }, { type: "html", text: "<?b" }, paragraph("<1")],
  ],
  [
    "a table from | to a blank line",
    "a\n| b | c |\n|---|---|\nd\n\ne",
    [paragraph("a"), { type: "table", text: "| b | c |\n|---|---|\nd" }, paragraph("e")],
  ],
  [
    "dividers of three or more",
    "---\n* * *\n_____\n\n--",
    [{ type: "divider", text: "" }, { type: "divider", text: "" }, { type: "divider", text: "" }, paragraph("--")],
  ],
  [
    "one blank line separates, each more is an empty paragraph",
    "a\n\n\n\nb",
    [paragraph("a"), paragraph(""), paragraph(""), paragraph("b")],
  ],
  ["leading blank lines are empty paragraphs", "\n \na", [paragraph(""), paragraph(""), paragraph("a")]],
  ["white space alone", " \t\n\n", [paragraph(""), paragraph("")]],
  ["no-break spaces are text", "\u00a0\n\u00a0# a", [paragraph("\u00a0\n\u00a0# a")]],
  ["a lone CR is text", "a\rb\r\n\nc", [paragraph("a\rb\r"), paragraph("c")]],
  ["NUL is text", "\u0000\n\n# \u0000", [paragraph("\u0000"), heading("\u0000", 1)]],
];

describe("line rules", () => {
  for (const [rule, markdown, blocks] of CASES) {
    test(`[EDIT-4] ${rule}`, () => expect(fieldsOf(markdown)).toEqual(blocks));
  }

  test("[EDIT-4] a block's source ends with its one separating blank line", () => {
    const sources = splitMarkdown("# a\nb\n\n\n- c\n   \n").map((block) => block.source);
    expect(sources).toEqual(["# a\n", "b\n\n", "\n", "- c\n   \n"]);
  });
});

describe("every text is given back (EDIT-2)", () => {
  const lossless = (text: string) => {
    const blocks = splitMarkdown(text);
    expect(blocks.map((block) => block.source).join("")).toBe(text);
    let at = 0;
    for (const block of blocks) {
      expect(block.start).toBe(at);
      expect(text.slice(block.start, block.end)).toBe(block.source);
      expect(block.bodyEnd).toBeLessThanOrEqual(block.end);
      at = block.end;
    }
  };

  test("by the sources of its blocks", () => {
    for (const [, markdown] of CASES) {
      lossless(markdown);
      lossless(`${markdown}\n`);
      lossless(`\n\n${markdown}\n\n\n`);
    }
  });

  test("a block is the same when cut alone", () => {
    for (const [, markdown] of CASES) {
      for (const { source, type, text, style } of splitMarkdown(markdown)) {
        const [alone, ...more] = splitMarkdown(source);
        expect(more).toEqual([]);
        expect({ type: alone!.type, text: alone!.text, style: alone!.style }).toEqual({ type, text, style });
      }
    }
  });

  test("CRLF becomes LF and nothing else changes", () => {
    expect(foldLineEnds("a\r\nb\rc\n\r\n")).toBe("a\nb\rc\n\n");
  });

  // Shapes on which a careless scanner is quadratic: a megabyte of each would then take minutes.
  const hostile: Record<string, string> = {
    "one line": "x".repeat(1 << 20),
    "blank lines": "\n".repeat(1 << 20),
    spaces: " ".repeat(1 << 20),
    "blank lines after an item": `- a${"\n".repeat(1 << 20)}`,
    "open fences": "```\n".repeat(1 << 17) + "~~~~\n".repeat(1 << 17),
    "marks in a heading": `# ${"# ".repeat(1 << 19)}`,
    "spaces in a heading": `# a${" ".repeat(1 << 20)}b`,
    quotes: "> ".repeat(1 << 19),
    "quote lines": ">\n".repeat(1 << 19),
    "empty items": "-\n".repeat(1 << 19),
    "items and blank lines": "- a\n\n\n".repeat(1 << 17),
    dashes: "- ".repeat(1 << 19),
    digits: "1".repeat(1 << 20),
    underlines: "a\n=\n".repeat(1 << 18),
    "check boxes": `- [ ]${" ".repeat(1 << 20)}x`,
    backticks: "`".repeat(1 << 20),
    paragraphs: "ab\n\n".repeat(1 << 18),
    lines: "a\n".repeat(1 << 19),
  };
  for (const [shape, text] of Object.entries(hostile)) {
    test(`a megabyte of ${shape}`, () => {
      expect(
        splitMarkdown(text)
          .map((block) => block.source)
          .join("") === text,
      ).toBe(true);
    });
  }
});
