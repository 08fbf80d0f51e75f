import { describe, expect, test } from "bun:test";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { type BlockFields, equalBlocks, markdownStyle, type SourcedBlock } from "./block.ts";
import { canonicalBody } from "./block-canonical.ts";
import { createBlockRenderer } from "./block-render.ts";
import { splitMarkdown } from "./block-split.ts";

const seed = runSeed("block rendering");
const paragraph = (text: string, source?: string): SourcedBlock => ({
  type: "paragraph",
  text,
  ...(source === undefined ? {} : { source }),
});
const render = (blocks: readonly SourcedBlock[]) => createBlockRenderer().render(blocks).content;

describe("canonical forms (EDIT-3)", () => {
  const FORMS: [fields: BlockFields, markdown: string][] = [
    [{ type: "paragraph", text: "a\nb" }, "a\nb"],
    [{ type: "paragraph" }, ""],
    [{ type: "heading", style: { level: 2 }, text: "a" }, "## a"],
    [{ type: "heading", text: "" }, "#"],
    [{ type: "heading", style: { level: 9 }, text: "a\nb" }, "###### a b"],
    [{ type: "heading", style: { level: "2" }, text: "a #" }, "# a # #"],
    [{ type: "list_item", text: "a\n  b" }, "- a\n  b"],
    [{ type: "list_item", style: { ordered: true }, text: "a\nb" }, "1. a\n   b"],
    [{ type: "list_item", text: "" }, "-"],
    [{ type: "list_item", text: "[ ] a" }, "- \\[ ] a"],
    [{ type: "list_item", text: "- -" }, "+ - -"],
    [{ type: "check_list_item", style: { checked: false }, text: "a" }, "- [ ] a"],
    [{ type: "check_list_item", style: { checked: true }, text: "a" }, "- [x] a"],
    [{ type: "code", style: { lang: "js" }, text: "a" }, "```js\na\n```"],
    [{ type: "code", text: "" }, "```\n```"],
    [{ type: "code", text: "```\na" }, "````\n```\na\n````"],
    [{ type: "code", style: { lang: "a`b" }, text: "~~~" }, "~~~~a`b\n~~~\n~~~~"],
    [{ type: "quote", text: "a\n\nb" }, "> a\n>\n> b"],
    [{ type: "divider" }, "---"],
    [{ type: "html", text: "<b>\nc" }, "<b>\nc"],
    [{ type: "table", text: "| a |" }, "| a |"],
    [{ type: "image", text: "![a](b)" }, "![a](b)"],
    [{ type: "callout", text: "a" }, "a"],
  ];
  for (const [fields, markdown] of FORMS) {
    test(`${fields.type} ${JSON.stringify(fields.text ?? null)}`, () => expect(canonicalBody(fields)).toBe(markdown));
  }

  test("what the block editor makes of markdown has a canonical form that says the same", () => {
    const texts = ["a", "a\nb", "é  x", "**b** `c`", "a\n===x", "1 a", "\\# a", "    code\n    more"];
    for (const type of [
      "paragraph",
      "heading",
      "list_item",
      "check_list_item",
      "code",
      "quote",
      "divider",
      "html",
      "table",
    ]) {
      for (const text of texts) {
        const first = splitMarkdown(canonicalBody({ type, text }))[0]!;
        const again = splitMarkdown(canonicalBody(first));
        expect(again.length).toBe(1);
        expect(equalBlocks(again[0]!, first)).toBe(true);
      }
    }
  });

  test("a paragraph that reads like a marker stays a paragraph", () => {
    for (const text of ["# a", "- a", "1. a", "> a", "```", "~~~ x", "---", "***", "a\n# b", "a\n---", "===\n- b"]) {
      const blocks = splitMarkdown(canonicalBody({ type: "paragraph", text }));
      expect(blocks.map((block) => block.type)).toEqual(["paragraph"]);
    }
  });

  test("no text draws in what follows it", () => {
    const rng = createRng(seed).fork("contained");
    const pieces = ["```", "~~~", "\n", "\n\n", "- ", "> ", "    ", "# ", "a", "<!--", "|", "---", "[ ]", "\t", "1."];
    for (let i = 0; i < 3000; i++) {
      const text = Array.from({ length: rng.int(0, 6) }, () => rng.pick(pieces)).join("");
      const type = rng.pick([
        "paragraph",
        "heading",
        "list_item",
        "check_list_item",
        "code",
        "quote",
        "html",
        "table",
        "x",
      ]);
      const content = render([{ type, text }, paragraph("the end")]);
      const last = splitMarkdown(content).at(-1)!;
      if (last.text !== "the end" || last.type !== "paragraph")
        throw new Error(JSON.stringify({ type, text, content }));
    }
  });

  test("foreign style values are read as their defaults", () => {
    expect(markdownStyle("heading", { level: Number.NaN })).toEqual({ level: 1 });
    expect(markdownStyle("heading", { level: -3 })).toEqual({ level: 1 });
    expect(markdownStyle("heading", { level: [2] })).toEqual({ level: 1 });
    expect(markdownStyle("list_item", { ordered: "yes" })).toEqual({ ordered: false });
    expect(markdownStyle("code", { lang: 5 })).toEqual({});
    expect(markdownStyle("paragraph", { level: 2, color: "red" })).toEqual({});
  });
});

describe("a document is its blocks' sources, or their canonical forms joined by blank lines (EDIT-2, EDIT-3)", () => {
  test("blocks without a source", () => {
    expect(render([{ type: "heading", text: "a" }, paragraph("b"), { type: "list_item", text: "c" }])).toBe(
      "# a\n\nb\n\n- c",
    );
    expect(render([])).toBe("");
  });

  test("an empty paragraph is one more blank line", () => {
    expect(render([paragraph("a"), paragraph(""), paragraph("b")])).toBe("a\n\n\nb");
    expect(render([paragraph(""), paragraph("a"), paragraph("")])).toBe("\na\n\n\n");
  });

  test("a source is used while it says what the block says", () => {
    expect(
      render([{ type: "heading", style: { level: 1 }, text: "a", source: "a\n==\n" }, paragraph("b", "  b")]),
    ).toBe("a\n==\n  b");
    expect(
      render([{ type: "heading", style: { level: 2 }, text: "a", source: "a\n==\n" }, paragraph("b", "  b")]),
    ).toBe("## a\n  b");
    expect(render([paragraph("a", "a\n\nb\n"), paragraph("c")])).toBe("a\n\nc");
  });

  test("a style of the client's own does not make a block canonical", () => {
    expect(render([{ type: "paragraph", style: { color: "red" }, text: "a", source: "  a\n" }])).toBe("  a\n");
  });

  test("neighbours that would merge are separated", () => {
    expect(render([paragraph("b", "b"), paragraph("a", "a\n\n")])).toBe("b\n\na\n\n");
    expect(render([paragraph("a", "a\n"), { type: "divider", text: "", source: "---\n" }])).toBe("a\n\n---\n");
    expect(render([paragraph("a", "a\n"), paragraph("", "\n"), paragraph("b", "b")])).toBe("a\n\n\nb");
    expect(
      render([
        { type: "quote", text: "a", source: "> a\n" },
        { type: "quote", text: "b", source: "> b" },
      ]),
    ).toBe("> a\n\n> b");
  });

  test("an open fence is closed when something comes to stand after it", () => {
    const open: SourcedBlock = { type: "code", text: "a", source: "```\na\n" };
    expect(render([open])).toBe("```\na\n");
    expect(render([open, paragraph("b", "b")])).toBe("```\na\n```\n\nb");
  });

  test("a comment keeps an indented block out of the item before it", () => {
    const item: SourcedBlock = { type: "list_item", style: { ordered: false }, text: "a", source: "- a\n" };
    const content = render([item, paragraph("    b", "    b")]);
    expect(content).toBe("- a\n\n<!-- -->\n\n    b");
    expect(splitMarkdown(content).map((block) => block.type)).toEqual(["list_item", "html", "paragraph"]);
  });

  test("a tight list stays tight around an edited item", () => {
    const [a, b, c] = splitMarkdown("- a\n- b\n- c\n");
    expect(render([a!, { ...b!, text: "B" }, c!])).toBe("- a\n- B\n- c\n");
  });

  test("nothing stands tight against a block that did not come from markdown", () => {
    const [quote, text] = splitMarkdown("> a\nb\n");
    expect(render([quote!, text!])).toBe("> a\nb\n");
    expect(render([quote!, paragraph("new"), text!])).toBe("> a\n\nnew\n\nb\n");
    expect(render([quote!, { ...text!, text: "B" }])).toBe("> a\n\nB\n");
  });

  test("hostile sources are ignored", () => {
    for (const source of ["", "\n\n", "# x", "a\n\nb", "```", "\u0000", "- a"]) {
      expect(render([paragraph("a", source), paragraph("b")])).toBe("a\n\nb");
    }
  });
});

describe("what is rendered is read again as the same blocks (EDIT-3)", () => {
  test("for random blocks that markdown can say at all", () => {
    const rng = createRng(seed).fork("round trip");
    const parts = [
      "a",
      "b c",
      "\n",
      "\n\n",
      "- x",
      "> q",
      "# h",
      "```",
      "    i",
      "  j",
      "|",
      "<b>",
      "===",
      "---",
      "1. n",
      "",
    ];
    const types = ["paragraph", "heading", "list_item", "check_list_item", "code", "quote", "divider", "html", "table"];
    let documents = 0;
    let commented = 0;
    while (documents < 4000) {
      const blocks = Array.from({ length: rng.int(1, 6) }, (): SourcedBlock => {
        const text = Array.from({ length: rng.int(0, 4) }, () => rng.pick(parts)).join("");
        // Half of them come from markdown, and of these half were edited since.
        const made = splitMarkdown(`${text}${rng.pick(["", "\n", "\n\n", "\n \n"])}`)[0];
        const type = rng.pick(types);
        if (!made || rng.chance(0.5)) return { type, text };
        return rng.chance(0.5) ? made : { ...made, type, text };
      }).filter((block) => {
        const alone = splitMarkdown(canonicalBody(block) || "\n");
        return alone.length === 1 && equalBlocks(alone[0]!, block);
      });
      if (blocks.length === 0) continue;
      documents++;
      const content = render(blocks);
      const again = splitMarkdown(content);
      if (content.includes("\n\n<!-- -->\n\n")) {
        commented++;
        continue;
      }
      const same = again.length === blocks.length && again.every((block, index) => equalBlocks(block, blocks[index]!));
      if (!same) throw new Error(JSON.stringify({ blocks, content, again }, undefined, 1));
    }
    expect(commented).toBeLessThan(documents / 5);
  });
});
