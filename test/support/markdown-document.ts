import { compareKeys } from "../../src/base/position-key.ts";
import type { BlockRow, SourcedBlock } from "../../src/domain/editor/block.ts";
import { createBlockRenderer } from "../../src/domain/editor/block-render.ts";
import { type DocumentPlan, planAppend, planDocument } from "../../src/domain/editor/document-plan.ts";
import { atOnce } from "../../src/domain/editor/steps.ts";
import type { Rng } from "./rng.ts";

/** A document held in memory, written to only by plans: what the record store will do with them. */
export interface TestDocument {
  rows: BlockRow[];
  put(content: string): DocumentPlan;
  append(fragment: string): DocumentPlan;
  content(): string;
  write(plan: DocumentPlan): void;
}

export function createTestDocument(rng: Rng, blocks: readonly SourcedBlock[] = []): TestDocument {
  const renderer = createBlockRenderer();
  const deps = { renderer, random: rng.next };
  let ids = 0;
  const document: TestDocument = {
    rows: blocks.map((block, index) => ({ ...block, id: `b${ids++}`, pos: `a${"0123456789abcdefghij"[index]}V` })),
    put(content) {
      const plan = atOnce(planDocument(document.rows, content, deps));
      document.write(plan);
      return plan;
    },
    append(fragment) {
      const plan = atOnce(planAppend(document.rows.at(-1), fragment, deps));
      document.write(plan);
      return plan;
    },
    content: () => renderer.render(document.rows).content,
    write(plan) {
      const rows = new Map<string, BlockRow>(document.rows.map((row) => [row.id, row]));
      for (const id of plan.deletes) rows.delete(id);
      const patch = (id: string, fields: Partial<BlockRow>) => rows.set(id, { ...rows.get(id)!, ...fields });
      for (const { id, set, unsetStyle } of plan.updates) {
        patch(id, set);
        if (unsetStyle) {
          const { style: _, ...rest } = rows.get(id)!;
          rows.set(id, rest);
        }
      }
      for (const { id, source } of plan.touches) patch(id, { source });
      for (const { id, pos } of plan.moves) patch(id, { pos });
      for (const block of plan.inserts) {
        const id = `b${ids++}`;
        rows.set(id, { ...block, id });
      }
      document.rows = [...rows.values()].sort((a, b) => compareKeys(a.pos, b.pos) || (a.id < b.id ? -1 : 1));
    },
  };
  return document;
}

/** What a markdown mutation puts in: everything that opens, closes, separates or continues a block somewhere. */
const SNIPPETS = [
  ..."\n\n\n\n    #-*_>`~|<[]()!\\&=+1.\t",
  ...[
    "\n\n",
    "\n\n\n",
    "    ",
    "  ",
    "```",
    "~~~",
    "```js\n",
    "\n```\n",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "- [ ] ",
    "- [x] ",
  ],
  ...["> ", ">", "# ", "## ", "\n===\n", "\n---\n", "***", "---", "<div>", "</div>", "<!-- ", " -->", "| a | b |", "|"],
  ...[
    "\u00a0",
    "\u0000",
    "\r",
    "\f",
    "\ufeff",
    "é",
    "💡",
    "\n \n",
    "\n\t\n",
    "x",
    "foo bar",
    "[a]: /b",
    "<b>",
    "&amp;",
  ],
];

/** Changes a text at one to six random places. */
export function mutateMarkdown(text: string, rng: Rng): string {
  let result = text;
  for (let times = rng.int(1, 6); times > 0; times--) {
    const at = rng.int(0, result.length);
    switch (rng.int(0, 5)) {
      case 0:
        result = result.slice(0, at) + result.slice(at + rng.int(1, 6));
        break;
      case 1: {
        const lines = result.split("\n");
        const line = lines[rng.int(0, lines.length - 1)]!;
        lines.splice(rng.int(0, lines.length), 0, line);
        result = lines.join("\n");
        break;
      }
      case 2:
        result = rng.shuffle(result.split("\n")).join("\n");
        break;
      default:
        result = result.slice(0, at) + rng.pick(SNIPPETS) + result.slice(at);
    }
  }
  return result;
}

/** How many records a plan writes. */
export function writesOf(plan: DocumentPlan): number {
  const { inserts, updates, touches, moves, deletes } = plan;
  return inserts.length + updates.length + touches.length + moves.length + deletes.length;
}
