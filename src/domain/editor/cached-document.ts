import { compareKeys } from "../../base/position-key.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type BlockRow, CONTINUATION, type Stretch } from "./block.ts";

/** A document's top-level blocks in their order, kept in step with its records. */
export interface CachedDocument {
  /** Takes note of a record as it now is, by its stored text; null: it is gone. Doing so twice is the same as once. */
  note(recordId: string, text: string | null): void;
  /** How many records were noted since the blocks were last asked for: what they say is read then. */
  noted(): number;
  blocks(): readonly BlockRow[];
}

export function createCachedDocument(texts: readonly string[]): CachedDocument {
  let blocks: readonly BlockRow[] = [];
  /** Top-level records, without what goes on in others. */
  const ownById = new Map<string, BlockRow>();
  const continuationsByBlock = new Map<string, Map<string, Stretch>>();
  const blockByContinuation = new Map<string, string>();
  const textById = new Map<string, string | null>();
  indexIds(texts.map((text) => take(JSON.parse(text) as JsonObject)));

  return {
    note: (recordId, text) => void textById.set(recordId, text),
    noted: () => textById.size,
    blocks() {
      if (textById.size === 0) return blocks;
      const changed: (string | undefined)[] = [];
      for (const [id, text] of textById) {
        changed.push(drop(id));
        if (text !== null) changed.push(take(JSON.parse(text) as JsonObject));
      }
      textById.clear();
      indexIds(changed);
      return blocks;
    },
  };

  /** Forgets a record; answers the block that it is, or that goes on in it. */
  function drop(id: string): string | undefined {
    if (ownById.delete(id)) return id;
    const block = blockByContinuation.get(id);
    if (block === undefined) return undefined;
    blockByContinuation.delete(id);
    continuationsByBlock.get(block)!.delete(id);
    return block;
  }

  /** Takes a record in; answers the block that it is, or that goes on in it. Other nested ones are no part of the document. */
  function take(record: JsonObject): string | undefined {
    const { id, type, style, text, source } = record as unknown as Omit<BlockRow, "pos">;
    const nav = record["nav"] as { parentId?: string; pos?: string } | undefined;
    const parentId = nav?.parentId ?? "";
    const pos = nav?.pos ?? "";
    if (parentId === "") {
      const own: { -readonly [K in keyof BlockRow]: BlockRow[K] } = { id, type, pos };
      if (style !== undefined) own.style = style;
      if (text !== undefined) own.text = text;
      if (source !== undefined) own.source = source;
      ownById.set(id, own);
      return id;
    }
    if (type !== CONTINUATION) return undefined;
    blockByContinuation.set(id, parentId);
    const continuations = continuationsByBlock.get(parentId) ?? new Map<string, Stretch>();
    continuationsByBlock.set(parentId, continuations);
    continuations.set(id, { id, pos, text: text ?? "", source: source ?? "" });
    return parentId;
  }

  /** Puts blocks, as their records now are, into their positions. */
  function indexIds(ids: readonly (string | undefined)[]): void {
    const changed = new Set(ids);
    const joinedAgain = [...changed].flatMap((id) => {
      const own = id === undefined ? undefined : ownById.get(id);
      return own ? [joined(own)] : [];
    });
    blocks = merged(
      blocks.filter(({ id }) => !changed.has(id)),
      joinedAgain.sort(compareBlocks),
    );
  }

  function joined(own: BlockRow): BlockRow {
    const continuations = continuationsByBlock.get(own.id);
    if (!continuations || continuations.size === 0) return own;
    const { id, pos, text = "", source = "" } = own;
    const stretches: Stretch[] = [{ id, pos, text, source }, ...[...continuations.values()].sort(compareBlocks)];
    return {
      ...own,
      text: stretches.map((stretch) => stretch.text).join(""),
      source: stretches.map((stretch) => stretch.source).join(""),
      stretches,
    };
  }
}

interface Positioned {
  readonly id: string;
  readonly pos: string;
}

/** By position, then by id, both bytewise: the same order on every device. */
function compareBlocks(a: Positioned, b: Positioned): number {
  return compareKeys(a.pos, b.pos) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Two lists in order as one. */
function merged(few: readonly BlockRow[], more: readonly BlockRow[]): readonly BlockRow[] {
  if (few.length === 0) return more;
  if (more.length === 0) return few;
  const all: BlockRow[] = [];
  let at = 0;
  for (const block of more) {
    const index = indexOf(few, block, at);
    while (at < index) all.push(few[at++]!);
    all.push(block);
  }
  while (at < few.length) all.push(few[at++]!);
  return all;
}

/** Where a block would stand, at `from` or behind it. */
function indexOf(blocks: readonly BlockRow[], block: BlockRow, from: number): number {
  let low = from;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareBlocks(blocks[middle]!, block) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
