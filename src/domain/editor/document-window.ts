import { type BlockFields, type BlockRow, equalBlocks, type SourcedBlock } from "./block.ts";
import { alignBlocks } from "./block-diff.ts";
import { type BlockRenderer, DOCUMENT_END, type Following, type RenderedDocument } from "./block-render.ts";
import { type SplitBlock, splitBlockAt } from "./block-split.ts";
import { endsStep, type Steps } from "./steps.ts";

export type NewBlock = SplitBlock;

/** One block of the new document inside the window. */
interface WindowEntry {
  readonly next: NewBlock;
  /** The old block that it is or replaces in place. */
  readonly old: BlockRow | undefined;
  /** What the old block rendered to, without the line breaks after it. */
  readonly oldBody: string | undefined;
  /** Whether the old block has to be written: its fields differ, or its source would not give the wanted bytes. */
  readonly written: boolean;
}

/** The stretch of a document that a new text changes: old blocks [from, to) become the entries. */
export interface ChangedWindow {
  readonly from: number;
  readonly to: number;
  readonly entries: readonly WindowEntry[];
  readonly deletes: readonly string[];
  /** Blocks outside the stretch that would otherwise be rendered to other bytes than before. */
  readonly touches: readonly { readonly id: string; readonly source: string }[];
}

/**
 * Finds what a new text changes of a rendered document. The blocks before and after the window keep their bytes, and
 * written as the entries say, the document renders to exactly the text.
 */
export function* findWindow(
  blocks: readonly BlockRow[],
  rendered: RenderedDocument,
  text: string,
  renderer: BlockRenderer,
): Steps<ChangedWindow> {
  const document = { blocks, rendered, text, renderer, ...commonEnds(rendered, text) };
  let { from, to } = document;
  for (;;) {
    const window = yield* fitWindow(document, from, to);
    if ("deletes" in window) return window;
    // A block at the edge cannot be kept as it stands: it goes through the window too.
    if (window.fault < from) from = lastVisible(rendered.chunks, window.fault + 1);
    else if (window.to < blocks.length) to = window.to + 1;
    else if (from > 0) from = 0;
    else throw new Error("a document's own blocks do not render to its text");
  }
}

interface ChangedDocument {
  readonly blocks: readonly BlockRow[];
  readonly rendered: RenderedDocument;
  /** Start of each chunk in the old content, and its length. */
  readonly starts: readonly number[];
  readonly text: string;
  /** How far the common end has moved. */
  readonly shift: number;
  readonly renderer: BlockRenderer;
}

function commonEnds(rendered: RenderedDocument, text: string) {
  const { chunks, content } = rendered;
  const starts = [0];
  for (const chunk of chunks) starts.push(starts.at(-1)! + chunk.length);
  const shift = text.length - content.length;
  let from = 0;
  while (from < chunks.length && text.startsWith(chunks[from]!, starts[from])) from++;
  const changed = starts[from]!;
  let to = chunks.length;
  while (to > from && starts[to - 1]! + shift >= changed && text.startsWith(chunks[to - 1]!, starts[to - 1]! + shift))
    to--;
  // The last block with something to see before a change may take part in it: a list item takes the indented lines that
  // now come after it.
  return { starts, shift, from: lastVisible(chunks, from), to };
}

/** Index of the last chunk before `end` that is more than a blank line, else 0. */
function lastVisible(chunks: readonly string[], end: number): number {
  let index = end - 1;
  while (index > 0 && !/[^ \t\n]/.test(chunks[index]!)) index--;
  return Math.max(0, index);
}

/** Cuts the new text from the window's start until a cut meets one of the common end. */
function* splitUntilCommon(
  { blocks, starts, text, shift }: ChangedDocument,
  from: number,
  atLeast: number,
): Steps<{ next: NewBlock[]; to: number }> {
  const next: NewBlock[] = [];
  let at = starts[from]!;
  let to = atLeast;
  for (;;) {
    while (to < blocks.length && starts[to]! + shift < at) to++;
    if (starts[to]! + shift === at) return { next, to };
    const block = splitBlockAt(text, at);
    next.push(block);
    if (endsStep(next.length)) yield;
    at = block.end;
  }
}

/** A position in the new document while its rendering is checked. */
interface Slot {
  readonly want: string;
  block: SourcedBlock;
  written: boolean;
}

/** The position that cannot be rendered as wanted, and the window's end when that showed. */
interface Fault {
  readonly fault: number;
  readonly to: number;
}

function* fitWindow(document: ChangedDocument, from: number, atLeast: number): Steps<ChangedWindow | Fault> {
  const { blocks, rendered, renderer } = document;
  const { next, to } = yield* splitUntilCommon(document, from, atLeast);
  const old = blocks.slice(from, to);
  const alignment = alignBlocks(old, next);
  yield;
  const slots = next.map((block, index): Slot => {
    const source = old[alignment.from[index] ?? -1];
    const same = source !== undefined && equalBlocks(source, block);
    return { want: block.source, block: same ? source : block, written: !same };
  });

  const touched = new Map<number, Slot>();
  const outside = (index: number): Slot => {
    const known = touched.get(index);
    if (known) return known;
    const slot = { want: rendered.chunks[index]!, block: blocks[index]!, written: false };
    touched.set(index, slot);
    return slot;
  };
  /** Slots by their position in the new document. */
  const slotAt = (index: number): Slot | undefined => {
    if (index < from) return outside(index);
    const inside = slots[index - from];
    const after = to + index - from - slots.length;
    return inside ?? (after < blocks.length ? outside(after) : undefined);
  };

  /** What each checked position is to the one before it. */
  const followings = new Map<number, Following>();
  const end = from + slots.length;
  followings.set(end, rendered.followings[to] ?? DOCUMENT_END);
  followings.set(end + 1, rendered.followings[to + 1] ?? DOCUMENT_END);
  for (let index = end - 1; index >= 0; index--) {
    if (endsStep(end - index)) yield;
    const following = fitSlot(index, slotAt, followings, renderer);
    if (!following) return { fault: index, to };
    if (index < from && sameFollowing(following, rendered.followings[index]!)) break;
    followings.set(index, following);
  }

  return {
    from,
    to,
    entries: next.map((block, index) => {
      const source = alignment.from[index];
      return {
        next: block,
        old: source === undefined ? undefined : old[source],
        oldBody: source === undefined ? undefined : bodyOf(rendered.chunks[from + source]!),
        written: slots[index]!.written,
      };
    }),
    deletes: alignment.deleted.map((index) => old[index]!.id),
    touches: [...touched].flatMap(([index, slot]) =>
      slot.written ? [{ id: blocks[index]!.id, source: slot.want }] : [],
    ),
  };
}

/**
 * Makes the block at a position render to the bytes wanted there: as it is, else with those bytes as its source, else with
 * the block after it rendered from source too (nothing stands tight against a block in canonical form). Undefined when
 * none of that helps.
 */
function fitSlot(
  index: number,
  slotAt: (index: number) => Slot | undefined,
  followings: Map<number, Following>,
  renderer: BlockRenderer,
): Following | undefined {
  const slot = slotAt(index)!;
  const attempt = (): Following | undefined => {
    const { chunk, following } = renderer.renderBlock(slot.block, followings.get(index + 1)!);
    return chunk === slot.want ? following : undefined;
  };
  const asIs = attempt();
  if (asIs) return asIs;
  const sourced = freshen(slot, renderer) ? attempt() : undefined;
  if (sourced) return sourced;
  const next = slotAt(index + 1);
  if (!next || followings.get(index + 1)!.from === "source" || !freshen(next, renderer)) return undefined;
  followings.set(index + 1, renderer.renderBlock(next.block, followings.get(index + 2)!).following);
  return attempt();
}

/** Gives the block the wanted bytes as its source, if it has another one and they say what it says. */
function freshen(slot: Slot, renderer: BlockRenderer): boolean {
  if (slot.block.source === slot.want) return false;
  const { type, style, text } = slot.block;
  const fields: BlockFields = { type, ...(style ? { style } : {}), ...(text === undefined ? {} : { text }) };
  const block: SourcedBlock = { ...fields, source: slot.want };
  if (!renderer.fresh(block)) return false;
  slot.block = block;
  slot.written = true;
  return true;
}

function sameFollowing(a: Following, b: Following): boolean {
  return a.first === b.first && a.nonBlank === b.nonBlank && a.type === b.type && a.from === b.from;
}

/** A chunk without the line breaks after its first block. */
function bodyOf(chunk: string): string {
  return chunk.slice(0, splitBlockAt(chunk, 0).bodyEnd);
}
