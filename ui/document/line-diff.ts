/** Where two texts differ, in runs of lines. */

/** With more line pairs than this, everything between the first and the last difference is one edit. */
const MAX_PAIRS = 1_000_000;
/** With more places than this, everything between the first and the last is one edit. */
const MAX_HUNKS = 50;

/** A run of lines `[from, to)` to be replaced; the replacement has `added` lines more than the run (or fewer). */
export interface Hunk {
  from: number;
  to: number;
  added: number;
}

/** The runs of `oldLines` that differ in `newLines`, in order; the lines between them are the same. */
export function differingRuns(oldLines: readonly string[], newLines: readonly string[]): Hunk[] {
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

/** The runs between the common lines. */
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
