/**
 * The difference between two texts as edits that can be applied to a third: each names the text it replaces, with as
 * many lines around it as it takes to be found exactly once.
 */
import type { TextEdit } from "./editor-api.ts";

/** With more line pairs than this, everything between the first and the last difference is one edit. */
const MAX_PAIRS = 1_000_000;
/** With more places than this, everything between the first and the last is one edit. */
const MAX_HUNKS = 50;

/** A run of lines `[from, to)` that is to be replaced, by `added` lines more than there are (or fewer). */
interface Hunk {
  from: number;
  to: number;
  added: number;
}

/**
 * Edits that make `after` of `before`, each matching once in `before` and none touching another; empty if the texts
 * are equal. Undefined if `before` has no line to hold on to.
 */
export function textEdits(before: string, after: string): TextEdit[] | undefined {
  if (before === after) return [];
  const oldLines = before.split("\n");
  const newLines = after.split("\n");
  let hunks = differingRuns(oldLines, newLines);
  for (let count = -1; count !== hunks.length; ) {
    count = hunks.length;
    hunks = mergeTouching(hunks.map((hunk) => grow(hunk, oldLines, before)));
  }
  let shift = 0;
  const edits = hunks.map(({ from, to, added }) => {
    const newText = newLines.slice(from + shift, to + shift + added).join("\n");
    shift += added;
    return { oldText: oldLines.slice(from, to).join("\n"), newText };
  });
  return edits.every(({ oldText }) => oldText !== "") ? edits : undefined;
}

/** Takes lines around a hunk in until what it replaces is found once, and a line is left on both sides. */
function grow({ from, to, added }: Hunk, oldLines: readonly string[], before: string): Hunk {
  const isEnough = () =>
    to > from && to - from + added > 0 && countOf(oldLines.slice(from, to).join("\n"), before) === 1;
  // Ever longer steps: in a text that repeats itself, single ones would search it once for every line.
  for (let step = 1; !isEnough() && to - from < oldLines.length; step *= 2) {
    from = Math.max(0, from - step);
    if (!isEnough()) to = Math.min(oldLines.length, to + step);
  }
  return { from, to, added };
}

/** Hunks in order that overlap become one, as do neighbours: they would share the line break between them. */
function mergeTouching(hunks: readonly Hunk[]): Hunk[] {
  const merged: Hunk[] = [];
  for (const hunk of hunks) {
    const last = merged.at(-1);
    if (last && hunk.from <= last.to) {
      last.from = Math.min(last.from, hunk.from);
      last.to = Math.max(last.to, hunk.to);
      last.added += hunk.added;
    } else merged.push({ ...hunk });
  }
  return merged;
}

function differingRuns(oldLines: readonly string[], newLines: readonly string[]): Hunk[] {
  let start = 0;
  while (start < Math.min(oldLines.length, newLines.length) && oldLines[start] === newLines[start]) start++;
  let oldEnd = oldLines.length;
  let newEnd = newLines.length;
  while (oldEnd > start && newEnd > start && oldLines[oldEnd - 1] === newLines[newEnd - 1]) {
    oldEnd--;
    newEnd--;
  }
  const whole = [{ from: start, to: oldEnd, added: newEnd - oldEnd }];
  if ((oldEnd - start) * (newEnd - start) > MAX_PAIRS) return whole;
  const common = commonLines(oldLines.slice(start, oldEnd), newLines.slice(start, newEnd));
  const runs = gaps(common, start, oldEnd, newEnd);
  return runs.length > MAX_HUNKS ? whole : runs;
}

/** What lies between the common lines. */
function gaps(common: readonly [number, number][], start: number, oldEnd: number, newEnd: number): Hunk[] {
  const runs: Hunk[] = [];
  let [from, newFrom] = [start, start];
  for (const [to, newTo] of [...common.map(([a, b]) => [a + start, b + start] as const), [oldEnd, newEnd] as const]) {
    if (to > from || newTo > newFrom) runs.push({ from, to, added: newTo - newFrom - (to - from) });
    [from, newFrom] = [to + 1, newTo + 1];
  }
  return runs;
}

/** A longest common subsequence, as pairs of indexes. */
function commonLines(a: readonly string[], b: readonly string[]): [number, number][] {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      lengths[here] =
        a[i] === b[j] ? lengths[here + width + 1]! + 1 : Math.max(lengths[here + width]!, lengths[here + 1]!);
    }
  }
  const pairs: [number, number][] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    const here = i * width + j;
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (lengths[here + width]! >= lengths[here + 1]!) i++;
    else j++;
  }
  return pairs;
}

function countOf(part: string, text: string): number {
  let count = 0;
  if (part === "") return 2;
  for (let at = text.indexOf(part); at !== -1 && count < 2; at = text.indexOf(part, at + 1)) count++;
  return count;
}
