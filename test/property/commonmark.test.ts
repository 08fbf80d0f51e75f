import { describe, expect, test } from "bun:test";
import { keyBetween } from "../../src/base/position-key.ts";
import { equalBlocks, type SourcedBlock } from "../../src/domain/editor/block.ts";
import { createBlockRenderer } from "../../src/domain/editor/block-render.ts";
import { foldLineEnds, type SplitBlock, splitMarkdown } from "../../src/domain/editor/block-split.ts";
import { planRemoval } from "../../src/domain/editor/document-plan.ts";
import { createTestDocument, mutateMarkdown, type TestDocument, writesOf } from "../support/markdown-document.ts";
import { EXAMPLES, type HtmlUnit, htmlUnits } from "../support/oracle/commonmark-html.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";

/** Mutations of each example; docs/conformance.md holds the figures of a run with 300. */
const MUTATIONS = rounds(70);
const LONG_MS = 120_000;
const seed = runSeed("CommonMark");

/** Each example and its mutations, of which half build upon the one before. */
function eachText(
  rng: Rng,
  mutations: number,
  visit: (markdown: string, example: number, first: boolean) => void,
): void {
  for (const { markdown, number } of EXAMPLES) {
    visit(markdown, number, true);
    let previous = markdown;
    for (let i = 0; i < mutations; i++) {
      previous = mutateMarkdown(rng.chance(0.5) ? markdown : previous, rng);
      visit(previous, number, false);
    }
  }
}

describe(`the ${EXAMPLES.length} examples of CommonMark and ${MUTATIONS} mutations of each`, () => {
  test("are all of them", () => expect(EXAMPLES.length).toBe(652));

  test(
    "come back byte for byte, and put back write nothing",
    () => {
      const rng = createRng(seed).fork("bytes");
      let document = createTestDocument(rng);
      let documents = 0;
      eachText(rng, MUTATIONS, (markdown, example, first) => {
        if (first) document = createTestDocument(rng);
        const wanted = foldLineEnds(markdown);
        const blocks = splitMarkdown(wanted);
        const fail = (what: string): never => {
          throw new Error(
            `example ${example}: ${what}\n${JSON.stringify({ markdown, got: document.content(), blocks })}`,
          );
        };
        if (blocks.map((block) => block.source).join("") !== wanted) fail("the sources are not the text");
        for (const block of blocks) {
          const alone = splitMarkdown(block.source);
          if (alone.length !== 1 || !equalBlocks(alone[0]!, block)) fail("a block is another one when cut alone");
        }
        document.put(markdown);
        if (document.content() !== wanted) fail("other bytes came back");
        const same =
          document.rows.length === blocks.length && document.rows.every((row, i) => equalBlocks(row, blocks[i]!));
        if (!same) fail("the records are not the text's blocks");
        if (writesOf(document.put(document.content())) > 0) fail("put back it writes");
        documents++;
      });
      console.log(`CommonMark bytes: ${documents} documents, 0 differences, 0 writes when put back`);
    },
    LONG_MS,
  );

  test(
    "in canonical form are the same blocks again",
    () => {
      const rng = createRng(seed).fork("canonical");
      const { render } = createBlockRenderer();
      let documents = 0;
      let commented = 0;
      eachText(rng, Math.ceil(MUTATIONS / 4), (markdown, example) => {
        const blocks = splitMarkdown(foldLineEnds(markdown));
        const content = render(
          blocks.map(({ type, text, style }) => ({ type, text, ...(style ? { style } : {}) })),
        ).content;
        const again = splitMarkdown(content);
        documents++;
        const same =
          again.length === blocks.length && again.every((block, index) => equalBlocks(block, blocks[index]!));
        if (same) return;
        if (!content.includes("\n\n<!-- -->\n\n"))
          throw new Error(`example ${example}: ${JSON.stringify({ markdown, content })}`);
        commented++;
      });
      console.log(
        `CommonMark canonical: ${documents} documents, ${commented} of them with a comment between two blocks`,
      );
      expect(commented).toBeLessThan(documents / 20);
    },
    LONG_MS,
  );

  test(
    "keep the HTML of everything else when one block is edited, inserted, retyped or deleted",
    () => {
      const rng = createRng(seed).fork("structure");
      const counts = { agreeing: 0, agreeingChanged: 0, crossing: 0, crossingChanged: 0, skipped: 0 };
      eachText(rng, Math.ceil(MUTATIONS / 2), (markdown, example) => {
        // A lone CR or NUL means something else to the judge; a link definition acts on the whole document from anywhere.
        if (/[\r\0]|\]:/.test(markdown)) {
          counts.skipped++;
          return;
        }
        const document = createTestDocument(rng);
        document.put(markdown);
        if (document.rows.length === 0) return;
        const before = document.content();
        const edit = editOneBlock(document, rng);
        const after = document.content();
        const verdict = elsewhere(before, after, edit);
        if (verdict.agreeing) counts.agreeing++;
        else counts.crossing++;
        if (verdict.same) return;
        if (!verdict.agreeing) counts.crossingChanged++;
        else {
          counts.agreeingChanged++;
          throw new Error(`example ${example}: ${JSON.stringify({ edit, before, after })}`);
        }
      });
      console.log(`CommonMark structure: ${JSON.stringify(counts)}`);
      expect(counts.crossingChanged).toBeLessThan(counts.crossing / 50);
      expect(counts.agreeing).toBeGreaterThan(counts.crossing * 3);
    },
    LONG_MS,
  );
});

/** An edit through the block routes: which block, or before which one something was inserted. */
interface BlockEdit {
  readonly at: number;
  readonly inserted: boolean;
}

function editOneBlock(document: TestDocument, rng: Rng): BlockEdit {
  const { rows } = document;
  const at = rng.int(0, rows.length - 1);
  const change = (fields: Partial<SourcedBlock>) => {
    document.rows = rows.map((row, index) => (index === at ? { ...row, ...fields } : row));
  };
  switch (rng.pick(["text", "type", "insert", "delete"] as const)) {
    case "text":
      change({ text: rng.pick(["new words", "two\nlines", "x"]) });
      break;
    case "type":
      change({
        type: rng.pick(["paragraph", "heading", "list_item", "quote", "code", "divider"]),
        text: rng.pick(["new words", "x"]),
      });
      break;
    case "insert": {
      const pos = keyBetween(rows[at - 1]?.pos, rows[at]!.pos, rng.next)!;
      document.rows = [
        ...rows.slice(0, at),
        { id: "new", type: "paragraph", text: "inserted", pos },
        ...rows.slice(at),
      ];
      return { at, inserted: true };
    }
    case "delete":
      document.write(planRemoval(rows, at, { renderer: createBlockRenderer(), random: rng.next }));
  }
  return { at, inserted: false };
}

/** Whether everything but the edited block shows the same, and whether blocks and CommonMark's nodes agree at all. */
function elsewhere(before: string, after: string, edit: BlockEdit): { same: boolean; agreeing: boolean } {
  const blocks = splitMarkdown(before).map((block) => ({ block, ...linesOf(before, block) }));
  const old = htmlUnits(before);
  const changed = blocks[edit.at]!;
  const region = grow({ first: changed.first, last: edit.inserted ? changed.first - 1 : changed.last }, [
    ...old,
    ...blocks,
  ]);
  const head = old.filter((unit) => unit.last < region.first);
  const tail = old.filter((unit) => unit.first > region.last && unit.first >= region.first);
  const now = htmlUnits(after);
  const equal = (a: readonly HtmlUnit[], b: readonly HtmlUnit[]) =>
    a.every((unit, index) => unit.html === b[index]?.html);
  const same =
    head.length + tail.length <= now.length && equal(head, now) && equal(tail, now.slice(now.length - tail.length));

  const visible = blocks.filter(({ block }) => block.type !== "paragraph" || block.text !== "");
  const agreeing =
    old.every((unit) => visible.filter((block) => meets(block, unit)).length === 1) &&
    visible.every((block) => old.filter((unit) => meets(block, unit)).length <= 1);
  return { same, agreeing };
}

interface Lines {
  readonly first: number;
  readonly last: number;
}

const meets = (a: Lines, b: Lines): boolean => a.first <= b.last && b.first <= a.last;

/** The smallest stretch around the edit at whose ends both the line rules and CommonMark cut. */
function grow(region: Lines, spans: readonly Lines[]): Lines {
  let { first, last } = region;
  for (let grown = true; grown; ) {
    grown = false;
    for (const span of spans) {
      const touches = last < first ? span.first < first && span.last >= first : meets(span, { first, last });
      if (!touches || (span.first >= first && span.last <= last)) continue;
      first = Math.min(first, span.first);
      last = Math.max(last, span.last);
      grown = true;
    }
  }
  return { first, last };
}

function linesOf(text: string, { start, bodyEnd }: SplitBlock): Lines {
  const lineAt = (offset: number) => text.slice(0, offset).split("\n").length;
  return { first: lineAt(start), last: lineAt(Math.max(start, bodyEnd)) };
}
