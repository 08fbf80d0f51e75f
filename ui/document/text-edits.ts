/**
 * The difference between two texts as edits that can be applied to a third. Each edit names the text it replaces, with
 * enough lines around it to occur exactly once.
 */
import type { TextEdit } from "../api/editor-api.ts";
import { differingRuns, type Hunk } from "./line-diff.ts";

/**
 * Edits that turn `before` into `after`; each matches once in `before`, and no two touch. Empty if the texts are equal.
 * Undefined if `before` has no line that could identify a place.
 */
export function textEdits(before: string, after: string): TextEdit[] | undefined {
  if (before === after) return [];
  const oldLines = before.split("\n");
  const newLines = after.split("\n");
  let hunks = differingRuns(oldLines, newLines);
  for (let count = -1; count !== hunks.length; ) {
    count = hunks.length;
    hunks = mergeAdjacent(hunks.map((hunk) => grow(hunk, oldLines, before)));
  }
  let shift = 0;
  const edits = hunks.map(({ from, to, added }) => {
    const newText = newLines.slice(from + shift, to + shift + added).join("\n");
    shift += added;
    return { oldText: oldLines.slice(from, to).join("\n"), newText };
  });
  return edits.every(({ oldText }) => oldText !== "") ? edits : undefined;
}

/**
 * Adds lines around a hunk until the text it replaces occurs exactly once, and both that text and its replacement have a
 * line.
 */
function grow({ from, to, added }: Hunk, oldLines: readonly string[], before: string): Hunk {
  const isEnough = () =>
    to > from && to - from + added > 0 && countOf(oldLines.slice(from, to).join("\n"), before) === 1;
  // The steps grow, because in a repetitive text single steps would search it once for every line.
  for (let step = 1; !isEnough() && to - from < oldLines.length; step *= 2) {
    from = Math.max(0, from - step);
    if (!isEnough()) to = Math.min(oldLines.length, to + step);
  }
  return { from, to, added };
}

/** Joins overlapping hunks, and also neighbours, because they would share the line break between them. */
function mergeAdjacent(hunks: readonly Hunk[]): Hunk[] {
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

function countOf(part: string, text: string): number {
  let count = 0;
  if (part === "") return 2;
  for (let at = text.indexOf(part); at !== -1 && count < 2; at = text.indexOf(part, at + 1)) count++;
  return count;
}
