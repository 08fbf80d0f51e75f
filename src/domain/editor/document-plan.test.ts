import { describe, expect, test } from "bun:test";
import { createTestDocument, mutateMarkdown, writesOf } from "../../../test/support/markdown-document.ts";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { BLOCK_TYPES, type SourcedBlock } from "./block.ts";
import { createBlockRenderer } from "./block-render.ts";
import { foldLineEnds } from "./block-split.ts";
import { planRemoval } from "./document-plan.ts";

const seed = runSeed("document plans");
const rng = createRng(seed);
const opened = (content: string) => {
  const document = createTestDocument(rng);
  document.put(content);
  return document;
};

describe("PUT writes what differs and nothing else (EDIT-5)", () => {
  test("into an empty document everything is inserted, in order, with its source", () => {
    const document = createTestDocument(rng);
    const plan = document.put("# a\n\nb\n");
    expect(plan.inserts.map(({ type, text, source, style }) => ({ type, text, source, style }))).toEqual([
      { type: "heading", text: "a", source: "# a\n\n", style: { level: 1 } },
      { type: "paragraph", text: "b", source: "b\n", style: undefined },
    ]);
    expect(plan.unchanged).toBe(0);
    expect(plan.inserts[0]!.pos < plan.inserts[1]!.pos).toBe(true);
  });

  test("what was read is put back without a write", () => {
    const document = opened("a\n\n\n- b\n- c\r\n");
    expect(writesOf(document.put(document.content()))).toBe(0);
    expect(writesOf(document.put("a\r\n\r\n\r\n- b\r\n- c\r\n"))).toBe(0);
    expect(document.put(document.content()).unchanged).toBe(4);
  });

  test("a block added at the end writes no other", () => {
    const document = opened("a\n\nb");
    const plan = document.put("a\n\nb\n\nc");
    expect(plan.inserts.map((block) => block.text)).toEqual(["c"]);
    expect(plan.unchanged).toBe(2);
    expect(writesOf(plan)).toBe(1);
  });

  test("a block added, changed or removed in the middle writes no other", () => {
    const document = opened("a\n\nb\n\nc\n");
    const [a, b, c] = document.rows.map((row) => row.id);
    expect(document.put("a\n\nnew\n\nb\n\nc\n")).toMatchObject({ updates: [], touches: [], deletes: [], unchanged: 3 });
    expect(document.put("a\n\nnew\n\nb!\n\nc\n")).toMatchObject({
      inserts: [],
      updates: [{ id: b, set: { text: "b!", source: "b!\n\n" } }],
      touches: [],
      unchanged: 3,
    });
    const plan = document.put("a\n\nb!\n\nc\n");
    expect(plan).toMatchObject({ inserts: [], updates: [], touches: [], unchanged: 3 });
    expect(plan.deletes.length).toBe(1);
    expect(document.rows.map((row) => row.id)).toEqual([a!, b!, c!]);
  });

  test("the last block's removal rewrites the line breaks of the one before, which stays unchanged", () => {
    const document = opened("a\n\nb");
    const id = document.rows[0]!.id;
    expect(document.put("a")).toMatchObject({ updates: [], touches: [{ id, source: "a" }], unchanged: 1 });
    expect(document.content()).toBe("a");
  });

  test("the same block in other markdown is an update of its source alone", () => {
    const document = opened("* a\n");
    const plan = document.put("- a\n");
    expect(plan.updates).toEqual([{ id: document.rows[0]!.id, set: { source: "- a\n" }, unsetStyle: false }]);
    expect(plan.unchanged).toBe(0);
  });

  test("a change of type keeps the client's own style and drops the old type's", () => {
    const document = createTestDocument(rng, [{ type: "heading", style: { level: 2, color: "red" }, text: "title" }]);
    expect(document.put("title").updates).toEqual([
      { id: "b0", set: { type: "paragraph", style: { color: "red" }, source: "title" }, unsetStyle: false },
    ]);
    const plain = createTestDocument(rng, [{ type: "heading", style: { level: 2 }, text: "title" }]);
    expect(plain.put("title").updates[0]!.unsetStyle).toBe(true);
    expect(plain.rows[0]).not.toHaveProperty("style");
  });

  test("clearing deletes every block", () => {
    const document = opened("a\n\nb\n\n- c");
    const ids = document.rows.map((row) => row.id);
    expect(document.put("")).toMatchObject({ inserts: [], updates: [], deletes: ids, unchanged: 0 });
    expect(document.content()).toBe("");
  });

  test("text drawn into an item from below takes the item along", () => {
    const document = opened("- a\n\n\nb\n");
    const id = document.rows[0]!.id;
    document.put("- a\n\n\n  b\n");
    expect(document.rows.map(({ id, text }) => ({ id, text }))).toEqual([{ id, text: "a\n\n\n  b" }]);
    document.put("- a\n\n\nb\n");
    expect(document.content()).toBe("- a\n\n\nb\n");
  });

  test("blocks that did not come from markdown are written when another separator is wanted", () => {
    const document = createTestDocument(rng, [
      { type: "heading", text: "a" },
      { type: "paragraph", text: "b" },
      { type: "paragraph", text: "c" },
    ]);
    expect(document.content()).toBe("# a\n\nb\n\nc");
    expect(document.put("# a\nb\n\nc!").unchanged).toBe(2);
    expect(document.content()).toBe("# a\nb\n\nc!");
  });

  test("a block between two equal positions moves a neighbour", () => {
    const document = opened("a\n\nb\n");
    document.rows = document.rows.map((row) => ({ ...row, pos: "m" }));
    const plan = document.put("a\n\nnew\n\nb\n");
    expect(plan.moves.length).toBeGreaterThan(0);
    expect(document.content()).toBe("a\n\nnew\n\nb\n");
  });
});

describe("append (EDIT-9)", () => {
  const appended = (content: string, fragment: string) => {
    const document = opened(content);
    const count = document.rows.length;
    const plan = document.append(fragment);
    expect(plan.updates.length + plan.deletes.length).toBe(0);
    expect(document.rows.length).toBe(count + plan.inserts.length);
    return document.content();
  };

  test("comes after a blank line", () => {
    expect(appended("", "a")).toBe("a");
    expect(appended("a", "b")).toBe("a\n\nb");
    expect(appended("# a\n", "b")).toBe("# a\n\nb");
    expect(appended("a\n\n", "b")).toBe("a\n\nb");
    expect(appended("a\n\n\n", "b")).toBe("a\n\n\nb");
    expect(appended("- a\n", "- b")).toBe("- a\n\n- b");
    expect(appended("```\na", "b")).toBe("```\na\n```\n\nb");
  });

  test("drops blank lines around the fragment and keeps those inside", () => {
    expect(appended("a", "\n \n  b\n\n\nc\n\n\t\n")).toBe("a\n\n  b\n\n\nc");
  });

  test("of nothing is nothing", () => {
    for (const fragment of ["", "\n", " \n\t\n\r\n"]) {
      const document = opened("a");
      expect(writesOf(document.append(fragment))).toBe(0);
    }
  });

  test("needs and writes nothing but the last block, however long the document", () => {
    const document = createTestDocument(rng);
    for (let i = 0; i < 500; i++) expect(writesOf(document.append(`line ${i}`))).toBe(1);
    expect(document.content().split("\n\n").length).toBe(500);
  });

  test("after a hostile position still comes last", () => {
    const document = opened("a");
    document.rows = [{ ...document.rows[0]!, pos: "~".repeat(500) }];
    document.append("b");
    expect(document.content()).toBe("a\n\nb");
  });
});

describe("removal keeps the neighbours apart (EDIT-3)", () => {
  const without = (content: string, index: number) => {
    const document = opened(content);
    document.write(planRemoval(document.rows, index, { renderer: createBlockRenderer(), random: rng.next }));
    return document.content();
  };
  test("cases", () => {
    expect(without("a\n\nb\n\nc", 1)).toBe("a\n\nc");
    expect(without("> a\n***\nb", 1)).toBe("> a\n\nb");
    expect(without("- a\n- b\n- c", 1)).toBe("- a\n- c");
    expect(without("- a\n- b\n\n- c", 1)).toBe("- a\n\n- c");
    expect(without("# a\n# b\nc", 1)).toBe("# a\nc");
    expect(without("    a\n\nb\n\n    c\n", 1)).toBe("    a\n\n<!-- -->\n\n    c\n");
    expect(without("a\n\nb", 1)).toBe("a\n\n");
    expect(without("a\n\nb", 0)).toBe("b");
  });
});

describe("any sequence of edits (EDIT-2)", () => {
  /** What clients do to blocks behind the text's back. */
  const TEXTS = [
    "x",
    "# a",
    "- b",
    "a\n\nb",
    "```",
    "    code",
    "> q",
    "",
    "---",
    "x\n===",
    "[ ] z",
    "<div>\nfoo",
    "t #",
    "| t",
    "\n\nfoo\n",
  ];

  test("renders what was put, byte for byte, and what is read and put back writes nothing", () => {
    const fork = rng.fork("histories");
    for (let run = 0; run < 150; run++) {
      const document = createTestDocument(fork);
      const log: string[] = [];
      for (let step = 0; step < 20; step++) {
        const { rows } = document;
        const at = fork.int(0, Math.max(0, rows.length - 1));
        const change = (fields: Partial<SourcedBlock>) => {
          log.push(`change ${at} ${JSON.stringify(fields)}`);
          document.rows = rows.map((row, index) => (index === at ? { ...row, ...fields } : row));
        };
        const action = rows.length === 0 ? 0 : fork.int(0, 5);
        if (action <= 1) {
          const content = mutateMarkdown(document.content() || "# a\n\n- b\n- c\n\n> d\n\n```\ne\n```\n", fork);
          log.push(`put ${JSON.stringify(content)}`);
          document.put(content);
          if (document.content() !== foldLineEnds(content)) throw new Error(`lost bytes\n${log.join("\n")}`);
        } else if (action === 2) document.append(mutateMarkdown("a\n- b\n", fork));
        else if (action === 3) change({ text: fork.pick(TEXTS) });
        else if (action === 4) change({ type: fork.pick(BLOCK_TYPES) });
        else {
          log.push(`remove ${at}`);
          document.write(planRemoval(rows, at, { renderer: createBlockRenderer(), random: fork.next }));
        }
        const content = document.content();
        if (writesOf(document.put(content)) > 0) throw new Error(`a second put writes\n${log.join("\n")}`);
      }
    }
  });

  test("a change inside a long document leaves every other block alone", () => {
    const fork = rng.fork("long");
    const lines = Array.from({ length: 3000 }, (_, index) => `${fork.pick(["", "# ", "- ", "> "])}line ${index}`);
    const document = opened(`${lines.join("\n\n")}\n`);
    for (let i = 0; i < 50; i++) {
      const at = fork.int(0, lines.length - 1);
      const ids = document.rows.map((row) => row.id);
      lines[at] = `${fork.pick(["", "# ", "- "])}changed ${i}`;
      const plan = document.put(`${lines.join("\n\n")}\n`);
      expect(writesOf(plan)).toBeLessThanOrEqual(2);
      expect(plan.unchanged).toBeGreaterThanOrEqual(ids.length - 1);
      expect(document.rows.filter((row) => !ids.includes(row.id)).length).toBeLessThanOrEqual(1);
    }
  });
});
