import { fillKeys, keysBetween, type Random } from "../../base/position-key.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type BlockFields, type BlockRow, equalBlocks, isListType, markdownStyle, type SourcedBlock } from "./block.ts";
import { type BlockRenderer, CLOSED_TYPES, type RenderedDocument, withBlankLine } from "./block-render.ts";
import { foldLineEnds, splitMarkdown } from "./block-split.ts";
import { type ChangedWindow, findWindow, type NewBlock } from "./document-window.ts";
import { indentOf, isBlank, lineEnd, nextLine } from "./line.ts";
import { applyMarkdownEdits, type MarkdownEdit } from "./markdown-edit.ts";
import type { Steps } from "./steps.ts";

/** A block to create; its id is made when the change is. */
interface BlockInsert extends BlockFields {
  readonly text: string;
  readonly source: string;
  readonly pos: string;
}

/** Top-level fields to set on a block; an absent key stays as it is. */
interface BlockUpdate {
  readonly id: string;
  readonly set: { type?: string; style?: JsonObject; text?: string; source: string };
  readonly unsetStyle: boolean;
}

/** What a new text makes of a document: the fewest writes after which it renders to exactly that text. */
export interface DocumentPlan {
  /** In document order. */
  readonly inserts: readonly BlockInsert[];
  readonly updates: readonly BlockUpdate[];
  /** Unchanged blocks of which only the line breaks after them changed: their `source` is rewritten, and no more. */
  readonly touches: readonly { readonly id: string; readonly source: string }[];
  /** Blocks that get a new `nav.pos` because nothing fitted beside them; hardly ever any. */
  readonly moves: readonly { readonly id: string; readonly pos: string }[];
  readonly deletes: readonly string[];
  /** Blocks of the same type, style and text as before, touched and moved ones included. */
  readonly unchanged: number;
}

export interface PlanDeps {
  readonly renderer: BlockRenderer;
  readonly random: Random;
}

/**
 * Plans `PUT markdown` (EDIT-5): the text is cut into blocks, these are aligned with the old ones, and what differs is
 * written. `blocks` are the top-level ones in their order. Only the stretch that changed is parsed and aligned, so an
 * edit in a long document costs little more than a comparison of its bytes.
 */
export function* planDocument(blocks: readonly BlockRow[], content: string, deps: PlanDeps): Steps<DocumentPlan> {
  const rendered = yield* deps.renderer.renderSteps(blocks);
  // What GET gave may hold a CR before a line end, which is no line end of the caller's.
  if (content === rendered.content) return emptyPlan(blocks.length);
  return yield* planChange(blocks, rendered, foldLineEnds(content), deps);
}

/** Plans `PATCH markdown` (EDIT-6): what no edit touches keeps its bytes. Errors: those of `applyMarkdownEdits`. */
export function* planEdits(
  blocks: readonly BlockRow[],
  edits: readonly MarkdownEdit[],
  deps: PlanDeps,
): Steps<DocumentPlan> {
  const rendered = yield* deps.renderer.renderSteps(blocks);
  return yield* planChange(blocks, rendered, applyMarkdownEdits(rendered.content, edits), deps);
}

function* planChange(
  blocks: readonly BlockRow[],
  rendered: RenderedDocument,
  text: string,
  deps: PlanDeps,
): Steps<DocumentPlan> {
  if (text === rendered.content) return emptyPlan(blocks.length);
  yield;
  const window = yield* findWindow(blocks, rendered, text, deps.renderer);
  yield;
  const changes = window.entries.map((entry) => entryChange(entry));
  const positions = fillKeys(
    [
      ...blocks.slice(0, window.from).map((block) => block.pos),
      ...window.entries.map((entry) => entry.old?.pos),
      ...blocks.slice(window.to).map((block) => block.pos),
    ],
    deps.random,
  );
  yield;
  return {
    inserts: window.entries.flatMap(({ old, next }, index) =>
      old ? [] : [{ ...fieldsOf(next), source: next.source, pos: positions[window.from + index]! }],
    ),
    updates: changes.flatMap((change) => (change.update ? [change.update] : [])),
    touches: [...window.touches, ...changes.flatMap((change) => (change.touch ? [change.touch] : []))],
    moves: movesOf(blocks, window, positions),
    deletes: window.deletes,
    unchanged: blocks.length - window.deletes.length - changes.filter((change) => change.update).length,
  };
}

/**
 * Plans `POST markdown/append`: blank lines around the fragment are dropped, and it follows the last top-level block
 * after a blank line. Needs that block alone.
 */
export function* planAppend(last: BlockRow | undefined, fragment: string, deps: PlanDeps): Steps<DocumentPlan> {
  const added = splitMarkdown(trimBlankLines(foldLineEnds(fragment)));
  if (added.length === 0) return emptyPlan(0);
  yield;
  const keys = keysBetween(last?.pos, undefined, added.length, deps.random);
  // Only a hostile key leaves no room after it; then it gives way.
  const positions = keys ? [last?.pos, ...keys] : fillKeys([undefined, ...added.map(() => undefined)], deps.random);
  const source = last && sourceBefore(last, deps.renderer);
  return {
    ...emptyPlan(0),
    inserts: added.map((block, index) => ({ ...fieldsOf(block), source: block.source, pos: positions[index + 1]! })),
    touches: last && source !== undefined ? [{ id: last.id, source }] : [],
    moves: last && !keys ? [{ id: last.id, pos: positions[0]! }] : [],
  };
}

/**
 * Plans `DELETE block` for one of the top-level blocks, given in their order. No line may run on from the block before
 * into the one after, so the former gets a blank line where it needs one; two indented code blocks, which no blank line
 * keeps apart, get a comment between them.
 */
export function planRemoval(blocks: readonly BlockRow[], index: number, deps: PlanDeps): DocumentPlan {
  const removed = blocks[index]!;
  const plan = { ...emptyPlan(blocks.length - 1), deletes: [removed.id] };
  const before = blocks[index - 1];
  const after = blocks[index + 1];
  if (!before || !after) return plan;
  const source = CLOSED_TYPES.has(before.type) ? undefined : sourceAfterRemoval(before, removed, after, deps.renderer);
  const comment = { type: "html", text: "<!-- -->", source: "<!-- -->\n\n", pos: removed.pos };
  const left = blocks.findLast((block, at) => at < index && !isBlankLine(block));
  const right = blocks.find((block, at) => at > index && !isBlankLine(block));
  return {
    ...plan,
    touches: source === undefined ? [] : [{ id: before.id, source }],
    inserts: left && right && isIndentedCode(left) && isIndentedCode(right) ? [comment] : [],
  };
}

function isBlankLine({ type, text = "" }: BlockFields): boolean {
  return type === "paragraph" && text === "";
}

function sourceAfterRemoval(block: BlockRow, removed: BlockRow, next: BlockRow, renderer: BlockRenderer) {
  // A list stays as tight as it was.
  const tight = renderer.fresh(removed)?.openTo === "line";
  if (tight && isListType(block.type) && isListType(removed.type) && isListType(next.type)) return undefined;
  return sourceBefore(block, renderer);
}

function isIndentedCode({ type, text = "" }: BlockFields): boolean {
  return type === "paragraph" && indentOf(text, 0, lineEnd(text, 0)) > 3;
}

/** The source of a block with a blank line at its end, where it has a line break alone. */
function sourceBefore(block: SourcedBlock, renderer: BlockRenderer): string | undefined {
  const parsed = renderer.fresh(block);
  // A source without any line break gets its blank line when rendered, and an open fence is closed there.
  if (parsed?.openTo !== "line" || !parsed.source.endsWith("\n")) return undefined;
  return withBlankLine(parsed);
}

function emptyPlan(unchanged: number): DocumentPlan {
  return { inserts: [], updates: [], touches: [], moves: [], deletes: [], unchanged };
}

function fieldsOf({ type, style, text }: NewBlock): { type: string; text: string; style?: JsonObject } {
  return style ? { type, style, text } : { type, text };
}

function entryChange(entry: ChangedWindow["entries"][number]): {
  update?: BlockUpdate;
  touch?: { id: string; source: string };
} {
  const { old, next, oldBody, written } = entry;
  if (!old || !written) return {};
  const { id } = old;
  if (!equalBlocks(old, next)) return { update: fieldUpdate(old, next) };
  // The same block in other words: `*` for `-`, say. Or only other line breaks after it.
  if (oldBody === next.source.slice(0, next.bodyEnd - next.start)) return { touch: { id, source: next.source } };
  return { update: { id, set: { source: next.source }, unsetStyle: false } };
}

function fieldUpdate(old: BlockRow, next: NewBlock): BlockUpdate {
  const style: JsonObject = { ...old.style };
  // What markdown says about a block replaces what it said; the client's own keys stay.
  for (const key of ["level", "ordered", "checked", "lang"]) delete style[key];
  Object.assign(style, next.style);
  const hasStyle = Object.keys(style).length > 0;
  const sameStyle = old.type === next.type && sameMarkdownStyle(old, next);
  return {
    id: old.id,
    set: {
      ...(old.type === next.type ? {} : { type: next.type }),
      ...(sameStyle || !hasStyle ? {} : { style }),
      ...((old.text ?? "") === next.text ? {} : { text: next.text }),
      source: next.source,
    },
    unsetStyle: !sameStyle && !hasStyle && old.style !== undefined,
  };
}

function sameMarkdownStyle(a: BlockFields, b: BlockFields): boolean {
  return JSON.stringify(markdownStyle(a.type, a.style)) === JSON.stringify(markdownStyle(b.type, b.style));
}

function movesOf(blocks: readonly BlockRow[], window: ChangedWindow, positions: readonly string[]) {
  const moves: { id: string; pos: string }[] = [];
  const check = (block: BlockRow | undefined, pos: string) => {
    if (block && block.pos !== pos) moves.push({ id: block.id, pos });
  };
  const after = window.from + window.entries.length;
  positions.forEach((pos, index) => {
    if (index < window.from) check(blocks[index], pos);
    else if (index < after) check(window.entries[index - window.from]!.old, pos);
    else check(blocks[window.to + index - after], pos);
  });
  return moves;
}

/** Drops blank lines at both ends, and the last line break. */
function trimBlankLines(text: string): string {
  let start = 0;
  while (start < text.length) {
    const end = lineEnd(text, start);
    if (!isBlank(text, start, end)) break;
    start = nextLine(text, end);
  }
  let end = text.length;
  while (end > start) {
    const lineStart = Math.max(start, text.lastIndexOf("\n", end - 1) + 1);
    if (!isBlank(text, lineStart, end)) break;
    end = Math.max(start, lineStart - 1);
  }
  return text.slice(start, end);
}
