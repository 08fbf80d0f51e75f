import { type BlockFields, markdownStyle } from "./block.ts";

/** Edits beyond which the exact search gives up: its cost is their square. */
const MAX_EDITS = 400;
/** Cells of a gap's pairing table; a larger gap is paired in order. */
const MAX_PAIRING_CELLS = 40_000;
/** Levels of anchors within anchors. */
const MAX_DEPTH = 8;
/** Characters of two texts that are compared from either end. */
const SIMILARITY_CHARS = 2000;

/** What becomes of each new block, and which old ones have no successor. Indexes into the two lists. */
export interface Alignment {
  /** For each new block: the old one it is, or that it replaces in place; undefined for a new one. */
  readonly from: readonly (number | undefined)[];
  /** Old blocks that are gone, ascending. */
  readonly deleted: readonly number[];
}

/**
 * Aligns two versions of a document by a longest common subsequence over (type, style, text); position is no part of a
 * block's identity. Between the common blocks old and new ones are paired for an update in place: blocks of one type, or
 * of alike texts. Common ends cost their length; a document changed everywhere is anchored on its unique blocks.
 */
export function alignBlocks(before: readonly BlockFields[], after: readonly BlockFields[]): Alignment {
  if (before.length === 0 || after.length === 0)
    return { from: after.map(() => undefined), deleted: [...before.keys()] };
  const ids = createInterner();
  const matches = commonSubsequence(before.map(ids), after.map(ids));
  const from = new Array<number | undefined>(after.length).fill(undefined);
  const survives = new Array<boolean>(before.length).fill(false);
  const pair = (old: number, next: number) => {
    from[next] = old;
    survives[old] = true;
  };

  let old = 0;
  let next = 0;
  for (const [matchOld, matchNew] of [...matches, [before.length, after.length] as const]) {
    for (const [a, b] of pairGap(before.slice(old, matchOld), after.slice(next, matchNew))) pair(old + a, next + b);
    if (matchOld < before.length) pair(matchOld, matchNew);
    old = matchOld + 1;
    next = matchNew + 1;
  }
  const deleted = [...before.keys()].filter((index) => !survives[index]);
  return { from, deleted };
}

/** Gives equal blocks equal numbers. */
function createInterner(): (block: BlockFields) => number {
  const numbers = new Map<string, number>();
  return (block) => {
    const { level, ordered, checked, lang = "" } = markdownStyle(block.type, block.style);
    const key = `${block.type}\0${level ?? ordered ?? checked}\0${lang}\0${block.text ?? ""}`;
    const known = numbers.get(key);
    if (known !== undefined) return known;
    numbers.set(key, numbers.size);
    return numbers.size - 1;
  };
}

type Match = readonly [before: number, after: number];

/** Matched index pairs, ascending in both: a longest common subsequence, or a long one where that would cost too much. */
export function commonSubsequence(before: readonly number[], after: readonly number[], depth = 0): Match[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let beforeEnd = before.length;
  let afterEnd = after.length;
  while (beforeEnd > start && afterEnd > start && before[beforeEnd - 1] === after[afterEnd - 1]) {
    beforeEnd--;
    afterEnd--;
  }
  const matches: Match[] = [];
  for (let i = 0; i < start; i++) matches.push([i, i]);
  const middle = middleMatches(before.slice(start, beforeEnd), after.slice(start, afterEnd), depth);
  for (const [a, b] of middle) matches.push([start + a, start + b]);
  for (let a = beforeEnd, b = afterEnd; a < before.length; a++, b++) matches.push([a, b]);
  return matches;
}

function middleMatches(before: readonly number[], after: readonly number[], depth: number): Match[] {
  if (before.length === 0 || after.length === 0) return [];
  return shortestEdit(before, after) ?? anchored(before, after, depth);
}

/** Myers' greedy search for the shortest edit script; undefined when it takes more than `MAX_EDITS`. */
function shortestEdit(before: readonly number[], after: readonly number[]): Match[] | undefined {
  const n = before.length;
  const m = after.length;
  const limit = Math.min(n + m, MAX_EDITS);
  /** Furthest `x` on each diagonal `k = x - y`, one row an edit count, for the way back. */
  const rows: Int32Array[] = [];
  let row = new Int32Array(2 * limit + 3);
  const at = limit + 1;
  for (let edits = 0; edits <= limit; edits++) {
    const next = row.slice();
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && row[at + k - 1]! < row[at + k + 1]!);
      let x = down ? row[at + k + 1]! : row[at + k - 1]! + 1;
      let y = x - k;
      while (x < n && y < m && before[x] === after[y]) {
        x++;
        y++;
      }
      next[at + k] = x;
      if (x >= n && y >= m) return walkBack(rows, n, m);
    }
    // Only the diagonals of this round are ever read again.
    rows.push(next.slice(at - edits, at + edits + 1));
    row = next;
  }
  return undefined;
}

/** Follows the rows of the search from the end to the start. Row `d` holds diagonals -d to d. */
function walkBack(rows: readonly Int32Array[], n: number, m: number): Match[] {
  const matches: Match[] = [];
  let x = n;
  let y = m;
  for (let edits = rows.length; edits > 0; edits--) {
    const row = rows[edits - 1]!;
    const reach = edits - 1;
    const furthest = (k: number): number => (Math.abs(k) <= reach ? row[k + reach]! : -1);
    const k = x - y;
    const down = k === -edits || (k !== edits && furthest(k - 1) < furthest(k + 1));
    const previousK = down ? k + 1 : k - 1;
    const startX = furthest(previousK);
    const startY = startX - previousK;
    while (x > startX && y > startY) {
      x--;
      y--;
      matches.push([x, y]);
    }
    x = startX;
    y = startY;
  }
  while (x > 0 && y > 0) {
    x--;
    y--;
    matches.push([x, y]);
  }
  return matches.reverse();
}

/** Matches what occurs exactly once on both sides (patience), then what lies between; else first come, first served. */
function anchored(before: readonly number[], after: readonly number[], depth: number): Match[] {
  const anchors = depth < MAX_DEPTH ? longestAscending(uniqueMatches(before, after)) : [];
  if (anchors.length === 0) return firstFit(before, after);
  const matches: Match[] = [];
  let a = 0;
  let b = 0;
  for (const [anchorA, anchorB] of [...anchors, [before.length, after.length] as const]) {
    const between = commonSubsequence(before.slice(a, anchorA), after.slice(b, anchorB), depth + 1);
    for (const [i, j] of between) matches.push([a + i, b + j]);
    if (anchorA < before.length) matches.push([anchorA, anchorB]);
    a = anchorA + 1;
    b = anchorB + 1;
  }
  return matches;
}

function uniqueMatches(before: readonly number[], after: readonly number[]): Match[] {
  const indexesOf = (list: readonly number[]) => {
    const indexes = new Map<number, number>();
    list.forEach((id, index) => {
      indexes.set(id, indexes.has(id) ? -1 : index);
    });
    return indexes;
  };
  const indexesAfter = indexesOf(after);
  const matches: Match[] = [];
  for (const [id, index] of indexesOf(before)) {
    const other = indexesAfter.get(id) ?? -1;
    if (index !== -1 && other !== -1) matches.push([index, other]);
  }
  return matches.sort((x, y) => x[0] - y[0]);
}

/** The longest run of pairs that ascends on both sides. */
function longestAscending(pairs: readonly Match[]): Match[] {
  const tails: number[] = [];
  const previous = new Array<number>(pairs.length).fill(-1);
  pairs.forEach(([, value], index) => {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tails[middle]!]![1] < value) low = middle + 1;
      else high = middle;
    }
    previous[index] = low > 0 ? tails[low - 1]! : -1;
    tails[low] = index;
  });
  const run: Match[] = [];
  for (let index = tails.at(-1) ?? -1; index !== -1; index = previous[index]!) run.push(pairs[index]!);
  return run.reverse();
}

function firstFit(before: readonly number[], after: readonly number[]): Match[] {
  const indexesById = new Map<number, number[]>();
  before.forEach((id, index) => {
    const indexes = indexesById.get(id);
    if (indexes) indexes.push(index);
    else indexesById.set(id, [index]);
  });
  const usedById = new Map<number, number>();
  const matches: Match[] = [];
  let from = 0;
  after.forEach((id, index) => {
    const indexes = indexesById.get(id);
    if (!indexes) return;
    let used = usedById.get(id) ?? 0;
    while (used < indexes.length && indexes[used]! < from) used++;
    if (used < indexes.length) {
      matches.push([indexes[used]!, index]);
      from = indexes[used]! + 1;
      used++;
    }
    usedById.set(id, used);
  });
  return matches;
}

/** Pairs old and new blocks of a gap in order: as many as can be, the most alike first. */
function pairGap(before: readonly BlockFields[], after: readonly BlockFields[]): Match[] {
  if (before.length === 0 || after.length === 0) return [];
  if (before.length * after.length > MAX_PAIRING_CELLS) return pairInOrder(before, after);
  const width = after.length + 1;
  /** Best score of the rests that begin at (a, b). */
  const best = new Float64Array((before.length + 1) * width);
  for (let a = before.length - 1; a >= 0; a--) {
    for (let b = after.length - 1; b >= 0; b--) {
      const paired = pairScore(before[a]!, after[b]!);
      const together = paired === 0 ? 0 : paired + best[(a + 1) * width + b + 1]!;
      best[a * width + b] = Math.max(together, best[(a + 1) * width + b]!, best[a * width + b + 1]!);
    }
  }
  const pairs: Match[] = [];
  for (let a = 0, b = 0; a < before.length && b < after.length; ) {
    const here = best[a * width + b]!;
    if (here === best[(a + 1) * width + b]!) a++;
    else if (here === best[a * width + b + 1]!) b++;
    else pairs.push([a++, b++]);
  }
  return pairs;
}

function pairInOrder(before: readonly BlockFields[], after: readonly BlockFields[]): Match[] {
  const pairs: Match[] = [];
  for (let a = 0, b = 0; a < before.length && b < after.length; ) {
    if (before[a]!.type === after[b]!.type) pairs.push([a++, b++]);
    else if (before.length - a > after.length - b) a++;
    else b++;
  }
  return pairs;
}

/** How well a new block replaces an old one in place: 0 not at all, else 1 and more. */
function pairScore(before: BlockFields, after: BlockFields): number {
  const alike = similarity(before.text ?? "", after.text ?? "");
  if (before.type === after.type) return 1.5 + alike;
  return alike >= 0.5 ? 1 + alike : 0;
}

/** Share of the longer text that both have at their beginning and end, 0 to 1. */
function similarity(a: string, b: string): number {
  if (a === b) return a === "" ? 0 : 1;
  const shorter = Math.min(a.length, b.length, SIMILARITY_CHARS);
  let head = 0;
  while (head < shorter && a.charCodeAt(head) === b.charCodeAt(head)) head++;
  let tail = 0;
  while (tail < shorter - head && a.charCodeAt(a.length - 1 - tail) === b.charCodeAt(b.length - 1 - tail)) tail++;
  return (head + tail) / Math.min(Math.max(a.length, b.length), SIMILARITY_CHARS * 2);
}
