import { fillKeys, type Random } from "../../base/position-key.ts";
import type { LongText, Stretch } from "./block.ts";

/** What a record holds at most of a block's text, and of its source, as JSON: both fit into one change, with the rest. */
const STRETCH_BYTES = 192 << 10;
/** A UTF-16 unit takes at most so many bytes of JSON. */
const UNIT_BYTES = 6;

/** What becomes of the records of a block. */
interface StretchPlan {
  /** What the block's own record says from now on; undefined: what it says. */
  readonly own: LongText | undefined;
  readonly updates: readonly Stretch[];
  /** In their order. */
  readonly inserts: readonly Omit<Stretch, "id">[];
  readonly moves: readonly { readonly id: string; readonly pos: string }[];
  readonly deletes: readonly string[];
}

/** Whether one record has room for a block. */
export function fitsRecord({ text, source }: LongText): boolean {
  return fits(text) && fits(source);
}

function fits(value: string): boolean {
  return UNIT_BYTES * value.length <= STRETCH_BYTES || jsonBytes(value) <= STRETCH_BYTES;
}

/**
 * Shares out what a block says to its records, the block's own first in `old`. A record that lies wholly in what stayed the
 * same at either end is not written, so two devices that change different stretches of a long block lose nothing.
 */
export function planStretches(old: readonly Stretch[], next: LongText, random: Random): StretchPlan {
  const { from, to, ...changed } = fitsRecord(next) ? { from: 0, to: old.length, ...next } : changedPart(old, next);
  const room = cutBoth(changed, from === 0 ? 1 : 0);
  const kept = old.slice(from, Math.min(to, from + room.length));
  const [own, ...others] = [...old.slice(0, from), ...kept];
  const stretches: readonly (LongText & Partial<Stretch>)[] = [...others, ...room.slice(kept.length), ...old.slice(to)];
  const positions = fillKeys(
    stretches.map(({ pos }) => pos),
    random,
  );
  const isOwnWritten = from === 0 && own !== undefined && !says(own, room[0]!);
  return {
    own: isOwnWritten ? room[0] : undefined,
    updates: kept.flatMap((stretch, at) =>
      from + at === 0 || says(stretch, room[at]!) ? [] : [{ ...stretch, ...room[at]! }],
    ),
    inserts: room
      .slice(kept.length)
      .map(({ text, source }, at) => ({ text, source, pos: positions[others.length + at]! })),
    moves: stretches.flatMap(({ id, pos }, at) =>
      id === undefined || pos === positions[at] ? [] : [{ id, pos: positions[at]! }],
    ),
    deletes: old.slice(from + kept.length, to).map(({ id }) => id),
  };
}

function says(stretch: LongText, { text, source }: LongText): boolean {
  return stretch.text === text && stretch.source === source;
}

/** The records [from, to) whose share changes, and what they are to say together. */
function changedPart(old: readonly Stretch[], next: LongText): LongText & { from: number; to: number } {
  let from = 0;
  let start = { text: 0, source: 0 };
  for (; from < old.length; from++) {
    const { text, source } = old[from]!;
    if (!next.text.startsWith(text, start.text) || !next.source.startsWith(source, start.source)) break;
    start = { text: start.text + text.length, source: start.source + source.length };
  }
  let to = old.length;
  let end = { text: next.text.length, source: next.source.length };
  for (; to > from; to--) {
    const { text, source } = old[to - 1]!;
    const before = { text: end.text - text.length, source: end.source - source.length };
    if (before.text < start.text || before.source < start.source) break;
    if (!next.text.startsWith(text, before.text) || !next.source.startsWith(source, before.source)) break;
    end = before;
  }
  // What comes to stand between two records goes into the one before it, what comes before all of them into the first.
  if (from === to && from > 0 && (start.text < end.text || start.source < end.source)) {
    from--;
    const { text, source } = old[from]!;
    start = { text: start.text - text.length, source: start.source - source.length };
  } else if (to === 0) {
    const { text, source } = old[to++]!;
    end = { text: end.text + text.length, source: end.source + source.length };
  }
  return { from, to, text: next.text.slice(start.text, end.text), source: next.source.slice(start.source, end.source) };
}

/** Cuts text and source into the same number of pieces, each about as long as the others; at least so many. */
function cutBoth({ text, source }: LongText, atLeast: number): LongText[] {
  const texts = cut(text);
  const sources = cut(source);
  const count = Math.max(texts.length, sources.length, atLeast);
  return Array.from({ length: count }, (_, at) => ({ text: texts[at] ?? "", source: sources[at] ?? "" }));
}

/** Pieces that a record has room for. No character is cut in two. */
function cut(value: string): string[] {
  if (value === "") return [];
  if (fits(value)) return [value];
  const bytes = jsonBytes(value);
  const share = Math.ceil(bytes / Math.ceil(bytes / (STRETCH_BYTES - 2 * UNIT_BYTES)));
  const pieces: string[] = [];
  let from = 0;
  let held = 0;
  for (let at = 0; at < value.length; ) {
    const code = value.codePointAt(at)!;
    held += jsonBytesOf(code);
    at += code > 0xffff ? 2 : 1;
    if (held < share) continue;
    pieces.push(value.slice(from, at));
    from = at;
    held = 0;
  }
  if (from < value.length) pieces.push(value.slice(from));
  return pieces;
}

const jsonBytes = (value: string): number => Buffer.byteLength(JSON.stringify(value));

/** What a character takes as JSON: escaped where it has to be, else as UTF-8. */
function jsonBytesOf(code: number): number {
  if (code < 0x20) return code === 0x08 || code === 0x09 || code === 0x0a || code === 0x0c || code === 0x0d ? 2 : 6;
  if (code < 0x80) return code === 0x22 || code === 0x5c ? 2 : 1;
  if (code < 0x800) return 2;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return code > 0xffff ? 4 : 3;
}
