import type { Term, TokenRun } from "./query-terms.ts";
import { type TokenRow, tokenise } from "./tokens.ts";

/** UTF-16 offsets [start, end) into a text. */
export type Range = readonly [start: number, end: number];

/** Returns the ranges of a text that match the terms, in order, with touching ranges joined. */
export function highlightsOf(text: string, terms: readonly Term[]): Range[] {
  const tokens = tokenise(text);
  const ranges: [number, number][] = [];
  for (const run of terms.flat()) findRun(run, tokens[run.row], ranges);
  ranges.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const joined: [number, number][] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last && range[0] <= last[1]) last[1] = Math.max(last[1], range[1]);
    else joined.push([...range]);
  }
  return joined;
}

function findRun({ tokens, prefix }: TokenRun, row: TokenRow, ranges: [number, number][]): void {
  const [first] = tokens;
  if (first === undefined) return;
  const meets = (at: number, index: number): boolean => {
    const text = row.texts[at];
    const wanted = tokens[index]!;
    return text === wanted || (prefix && index === tokens.length - 1 && text?.startsWith(wanted) === true);
  };
  for (let at = 0; at < row.texts.length; at++) {
    if (!tokens.every((_, index) => meets(at + index, index))) continue;
    const end = at + tokens.length;
    ranges.push([Math.min(...row.starts.slice(at, end)), Math.max(...row.ends.slice(at, end))]);
  }
}

/** A stretch of a text that is shown to people, with the ranges that matched; all positions in code points. */
export interface Excerpt {
  readonly data: string;
  readonly dataOffset: number;
  readonly dataTotal: number;
  readonly highlights: readonly Range[];
}

/** At most one part in this many of the excerpt stands before the first match. */
const LEAD_SHARE = 4;

/** Returns up to `most` code points of a text around the first range; all of it where `most` is -1. */
export function excerptOf(text: string, ranges: readonly Range[], most: number): Excerpt {
  const points = [...text];
  const total = points.length;
  /** UTF-16 offset → code points before it. */
  const at = pointOffsets(points);
  const found = ranges.map(([start, end]): [number, number] => [at(start), at(end)]);
  const from = most < 0 || total <= most ? 0 : startOf(points, found[0]?.[0] ?? 0, most);
  const to = most < 0 ? total : Math.min(total, from + most);
  return {
    data: points.slice(from, to).join(""),
    dataOffset: from,
    dataTotal: total,
    highlights: found.flatMap(([start, end]): Range[] =>
      end <= from || start >= to ? [] : [[Math.max(start, from) - from, Math.min(end, to) - from]],
    ),
  };
}

function startOf(points: readonly string[], found: number, most: number): number {
  const lead = Math.floor(most / LEAD_SHARE);
  if (found <= lead) return 0;
  const earliest = Math.min(found - lead, points.length - most);
  // Does not begin within a word, if another word begins soon.
  for (let at = Math.max(1, earliest); at < found && at < earliest + lead; at++)
    if (/\s/.test(points[at - 1]!)) return at;
  return Math.max(0, earliest);
}

function pointOffsets(points: readonly string[]): (offset: number) => number {
  const starts: number[] = [];
  let length = 0;
  for (const point of points) {
    starts.push(length);
    length += point.length;
  }
  if (length === points.length) return (offset) => offset;
  starts.push(length);
  const byOffset = new Map(starts.map((start, index) => [start, index]));
  return (offset) => byOffset.get(offset) ?? byOffset.get(offset - 1) ?? points.length;
}
