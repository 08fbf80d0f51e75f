import { refusedAs, refusedPart } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { foldLineEnds, splitMarkdown } from "./block-split.ts";
import { lineEnd, nextLine, trimEnd } from "./line.ts";
import { findAll, findLineRuns } from "./text-search.ts";

/** One edit of `PATCH markdown`. */
export interface MarkdownEdit {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll?: boolean;
}

/** A stretch of the original text and what comes in its place. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly newText: string;
  readonly edit: number;
}

/**
 * Applies edits to a document's current rendering, all or none (EDIT-6). Every `oldText` is looked for in the original
 * text: exactly, and if that occurs nowhere, as whole lines whose quotes, dashes, spaces and trailing blanks may differ.
 * Deleting whole blocks takes one separator with them.
 * Errors: request.invalid_field {field, reason}; markdown.no_match {editIndex}; markdown.ambiguous_match {editIndex,
 * occurrences}; markdown.overlapping_edits {editIndices}.
 */
export function applyMarkdownEdits(content: string, edits: readonly MarkdownEdit[]): string {
  checkEdits(edits);
  const fuzzyLines = lazily(() => comparableLines(content));
  const replacements = edits.flatMap((edit, index) => replacementsOf(content, edit, index, fuzzyLines));
  replacements.sort((a, b) => a.start - b.start || a.end - b.end);
  refuseOverlaps(replacements);
  return replaceAll(content, withSeparators(content, replacements));
}

function checkEdits(edits: readonly MarkdownEdit[]): void {
  const refuse = (field: string, why: Refusal) => refusedPart("request.invalid_field", { field }, why, "field");
  if (edits.length === 0) throw refuse("edits", refusal("edits.none"));
  if (edits.length > LIMITS.markdownEdits) {
    throw refuse("edits", refusal("edits.count"));
  }
  edits.forEach(({ oldText }, index) => {
    if (oldText === "") throw refuse(`edits[${index}].oldText`, refusal("edits.old_text"));
  });
}

function replacementsOf(
  content: string,
  edit: MarkdownEdit,
  index: number,
  fuzzyLines: () => readonly ComparableLine[],
): Replacement[] {
  const oldText = foldLineEnds(edit.oldText);
  const newText = foldLineEnds(edit.newText);
  const exact = findAll(content, oldText).map((start) => ({ start, end: start + oldText.length }));
  const found = exact.length > 0 ? exact : findFuzzily(oldText, fuzzyLines());
  if (found.length === 0) {
    throw refusedAs("markdown.no_match", { editIndex: index }, refusal("edits.no_match", { index }));
  }
  if (found.length > 1 && !edit.replaceAll) {
    throw refusedAs(
      "markdown.ambiguous_match",
      { editIndex: index, occurrences: found.length },
      refusal("edits.ambiguous", { index, times: found.length }),
    );
  }
  return found.map(({ start, end }) => ({ start, end, newText, edit: index }));
}

/** A line of the document in the form in which lines are compared loosely. */
interface ComparableLine {
  readonly text: string;
  readonly start: number;
  /** Without the `\n`. */
  readonly end: number;
}

function comparableLines(content: string): ComparableLine[] {
  const lines: ComparableLine[] = [];
  for (let start = 0; start < content.length; ) {
    const end = lineEnd(content, start);
    lines.push({ text: comparable(content.slice(start, end)), start, end });
    start = nextLine(content, end);
  }
  return lines;
}

/** NFKC (which makes every space a plain one), ASCII quotes and dashes, no spaces or tabs at the end. */
function comparable(line: string): string {
  const plain = line
    .normalize("NFKC")
    .replace(/[\u2018-\u201B\u2032\u2035]/g, "'")
    .replace(/[\u201C-\u201F\u2033\u2036]/g, '"')
    .replace(/[\u2010-\u2015\u2212]/g, "-");
  return plain.slice(0, trimEnd(plain, 0, plain.length));
}

function findFuzzily(oldText: string, lines: readonly ComparableLine[]): { start: number; end: number }[] {
  // A line break at either end of the wanted text belongs to it; between them stand whole lines.
  const leads = oldText.startsWith("\n");
  const trails = oldText.endsWith("\n") && oldText !== "\n";
  const wanted = oldText
    .slice(leads ? 1 : 0, trails ? -1 : undefined)
    .split("\n")
    .map(comparable);
  if (wanted.every((line) => line === "")) return [];
  const found = findLineRuns(
    lines.map((line) => line.text),
    wanted,
  );
  return found.flatMap((index) => {
    if (leads && index === 0) return [];
    const last = lines[index + wanted.length - 1]!;
    const after = lines[index + wanted.length];
    // The document's last line may lack its line break.
    return [{ start: lines[index]!.start - (leads ? 1 : 0), end: trails && after ? after.start : last.end }];
  });
}

function refuseOverlaps(sorted: readonly Replacement[]): void {
  let furthest: Replacement | undefined;
  for (const replacement of sorted) {
    if (furthest && replacement.start < furthest.end) {
      const first = Math.min(furthest.edit, replacement.edit);
      const second = Math.max(furthest.edit, replacement.edit);
      throw refusedAs(
        "markdown.overlapping_edits",
        { editIndices: [first, second] },
        refusal("edits.overlap", { first, second }),
      );
    }
    if (!furthest || replacement.end > furthest.end) furthest = replacement;
  }
}

/** Lets the deletion of whole blocks take one separator too, as far as no other edit touches it. */
function withSeparators(content: string, sorted: readonly Replacement[]): Replacement[] {
  const blocks = lazily(() => blockEdges(content));
  return sorted.map((replacement, index) => {
    if (replacement.newText !== "") return replacement;
    const { starts, endsByBodyEnd } = blocks();
    const blockEnd = endsByBodyEnd.get(replacement.end);
    if (!starts.has(replacement.start) || blockEnd === undefined) return replacement;
    const end = Math.min(blockEnd, sorted[index + 1]?.start ?? content.length);
    return { ...replacement, start: deletionStart(content, replacement, blockEnd, sorted[index - 1]), end };
  });
}

/** At the document's end there is no separator to go but the one before. */
function deletionStart(
  content: string,
  { start, end }: Replacement,
  blockEnd: number,
  previous: Replacement | undefined,
): number {
  if (blockEnd < content.length || content[start - 1] !== "\n" || (previous && previous.end >= start)) return start;
  const terminated = blockEnd > end;
  return terminated && content[start - 2] !== "\n" ? start : start - 1;
}

function blockEdges(content: string) {
  const starts = new Set<number>();
  const endsByBodyEnd = new Map<number, number>();
  for (const block of splitMarkdown(content)) {
    starts.add(block.start);
    endsByBodyEnd.set(block.bodyEnd, block.end);
  }
  return { starts, endsByBodyEnd };
}

function replaceAll(content: string, sorted: readonly Replacement[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, newText } of sorted) {
    parts.push(content.slice(at, Math.max(at, start)), newText);
    at = Math.max(at, end);
  }
  parts.push(content.slice(at));
  return parts.join("");
}

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
