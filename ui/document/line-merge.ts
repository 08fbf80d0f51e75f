/** Merges two people's versions of one text, line by line. */
import { differingRuns, type Hunk } from "./line-diff.ts";

export type Choice = "mine" | "theirs" | "both";

/** Lines that both changed to different texts. */
export interface LineConflict {
  readonly mine: string;
  readonly theirs: string;
}

export interface Merge {
  readonly conflicts: readonly LineConflict[];
  /**
   * The text with the changes that only one side made, and with each conflict decided. A conflict without a choice is
   * `mine`.
   */
  resolve(choices: readonly (Choice | undefined)[]): string;
}

interface Conflict {
  readonly mine: readonly string[];
  readonly theirs: readonly string[];
}

type Part = readonly string[] | Conflict;

/**
 * Changes that touch without overlapping are both applied; only changes that overlap, or insert at one place, conflict.
 */
export function mergeLines(base: string, mine: string, theirs: string): Merge {
  const baseLines = base.split("\n");
  const sides = { mine: sideOf(baseLines, mine), theirs: sideOf(baseLines, theirs) };
  const parts: Part[] = [];
  let at = 0;
  for (const region of regions(sides.mine.hunks, sides.theirs.hunks)) {
    parts.push(baseLines.slice(at, region.from));
    const [mineLines, theirLines] = [sides.mine.take(region, region.mine), sides.theirs.take(region, region.theirs)];
    if (!region.mine || sameLines(mineLines, theirLines)) parts.push(theirLines);
    else if (!region.theirs) parts.push(mineLines);
    else parts.push({ mine: mineLines, theirs: theirLines });
    at = region.to;
  }
  parts.push(baseLines.slice(at));
  return {
    conflicts: parts.filter(isConflict).map((one) => ({ mine: one.mine.join("\n"), theirs: one.theirs.join("\n") })),
    resolve(choices) {
      let nth = 0;
      return parts.flatMap((part) => (isConflict(part) ? decided(part, choices[nth++] ?? "mine") : part)).join("\n");
    },
  };
}

function isConflict(part: Part): part is Conflict {
  return "mine" in part;
}

function decided({ mine, theirs }: Conflict, choice: Choice): readonly string[] {
  return choice === "both" ? [...theirs, ...mine] : choice === "mine" ? mine : theirs;
}

function sameLines(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, index) => line === b[index]);
}

/** A run of the base's lines that at least one side changed, with the number of hunks of each side in it. */
interface Region {
  from: number;
  to: number;
  mine: number;
  theirs: number;
}

/** One side's text, read region by region, in order. */
function sideOf(baseLines: readonly string[], text: string) {
  const lines = text.split("\n");
  const hunks = differingRuns(baseLines, lines).flatMap(lineByLine);
  let next = 0;
  let shift = 0;
  return {
    hunks,
    /** Its lines of a region that contains its next `count` hunks. */
    take({ from, to }: Region, count: number): string[] {
      const start = from + shift;
      for (const { added } of hunks.slice(next, next + count)) shift += added;
      next += count;
      return lines.slice(start, to + shift);
    },
  };
}

/**
 * Where the number of lines stays the same, each line replaces one line, so that a change to its neighbour does not
 * conflict.
 */
function lineByLine(hunk: Hunk): Hunk[] {
  if (hunk.added !== 0) return [hunk];
  return Array.from({ length: hunk.to - hunk.from }, (_, nth) => ({
    from: hunk.from + nth,
    to: hunk.from + nth + 1,
    added: 0,
  }));
}

/** The hunks of both sides; those that overlap are joined. */
function regions(mine: readonly Hunk[], theirs: readonly Hunk[]): Region[] {
  const hunks = [
    ...mine.map(({ from, to }) => ({ from, to, mine: 1, theirs: 0 })),
    ...theirs.map(({ from, to }) => ({ from, to, mine: 0, theirs: 1 })),
  ].toSorted((a, b) => a.from - b.from || a.to - b.to);
  const joined: Region[] = [];
  for (const hunk of hunks) {
    const last = joined.at(-1);
    const overlaps = last && (hunk.from < last.to || (hunk.from === last.from && hunk.to === last.to));
    if (last && overlaps) {
      last.to = Math.max(last.to, hunk.to);
      last.mine += hunk.mine;
      last.theirs += hunk.theirs;
    } else joined.push({ ...hunk });
  }
  return joined;
}
