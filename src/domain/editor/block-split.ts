import type { JsonObject } from "../../protocol/json.ts";
import type { BlockFields } from "./block.ts";
import {
  closesFence,
  columnAt,
  indentOf,
  isBlank,
  lineEnd,
  nextLine,
  type Opener,
  openerOf,
  setextLevel,
  skipBlanks,
  trimEnd,
} from "./line.ts";

/**
 * What may still be drawn into a block when text follows its source:
 * - `nothing`: a blank line ended it, or it is a blank line;
 * - `line`: no blank line ended it, so the next line decides;
 * - `indented`: a blank line ended it, but it is an item that a line at its content's column goes on;
 * - `everything`: an unterminated fence.
 */
type OpenTo = "nothing" | "line" | "indented" | "everything";

/** How much of an info string is a block's language; the rest is in its source alone. */
const MAX_LANG_CHARS = 1024;

export interface SplitBlock extends BlockFields {
  readonly text: string;
  /** The block's lines and the blank line that follows them, if any. */
  readonly source: string;
  /** Where `source` lies in the text. */
  readonly start: number;
  readonly end: number;
  /** End of the last line of the block itself, without its `\n`. */
  readonly bodyEnd: number;
  readonly openTo: OpenTo;
  /** Items: the column that continuation lines reach. */
  readonly contentColumn?: number;
}

/** Markdown with its line ends as the splitter knows them: CRLF becomes LF, a lone CR is a character like any other. */
export function foldLineEnds(markdown: string): string {
  return markdown.includes("\r\n") ? markdown.replaceAll("\r\n", "\n") : markdown;
}

/**
 * Cuts markdown into blocks by the line rules of EDIT-4. Lossless: the sources, joined, are the text. Where a block
 * ends depends only on the text from its start on, so cutting may begin at any block's start. Linear time.
 */
export function splitMarkdown(text: string): SplitBlock[] {
  const blocks: SplitBlock[] = [];
  for (let at = 0; at < text.length; ) {
    const block = splitBlockAt(text, at);
    blocks.push(block);
    at = block.end;
  }
  return blocks;
}

/** The block that begins at `start`, the start of a line before the end of the text. */
export function splitBlockAt(text: string, start: number): SplitBlock {
  const end = lineEnd(text, start);
  // One blank line separates and belongs to the block before it; a blank line at a block's start is an extra one.
  if (isBlank(text, start, end)) {
    const next = nextLine(text, end);
    const openTo = next > end ? "nothing" : "line";
    return { type: "paragraph", text: "", source: text.slice(start, next), start, end: next, bodyEnd: start, openTo };
  }
  const opener = openerOf(text, start, end);
  switch (opener?.kind) {
    case "heading":
      return finish(text, start, end, headingFields(text, opener, end));
    case "fence":
      return fencedCode(text, start, end, opener);
    case "quote":
      return quote(text, start, end);
    case "divider":
      return finish(text, start, end, { type: "divider", text: "" });
    case "item":
      return listItem(text, start, end, opener);
    case "html":
    case "table":
      return untilBlank(text, start, end, opener.kind);
    case undefined:
      return paragraph(text, start, end);
  }
}

/** Closes a block whose last line ends at `bodyEnd`, taking the one blank line that separates it from what follows. */
function finish(
  text: string,
  start: number,
  bodyEnd: number,
  fields: { type: string; text: string; style?: JsonObject },
  item?: { contentColumn: number; takesIndented: boolean },
): SplitBlock {
  let end = nextLine(text, bodyEnd);
  let openTo: OpenTo = "line";
  if (end < text.length) {
    const blankEnd = lineEnd(text, end);
    if (isBlank(text, end, blankEnd)) {
      end = nextLine(text, blankEnd);
      openTo = end === blankEnd ? "line" : item?.takesIndented ? "indented" : "nothing";
    }
  }
  const source = text.slice(start, end);
  return { ...fields, source, start, end, bodyEnd, openTo, ...(item ? { contentColumn: item.contentColumn } : {}) };
}

function headingFields(text: string, opener: Opener & { kind: "heading" }, end: number) {
  const from = skipBlanks(text, opener.content, end);
  let to = trimEnd(text, from, end);
  // A closing run of # counts only after a blank (CommonMark § 4.2).
  let run = to;
  while (run > from && text[run - 1] === "#") run--;
  if (run < to && (run === from || text[run - 1] === " " || text[run - 1] === "\t")) to = trimEnd(text, from, run);
  return { type: "heading", style: { level: opener.level }, text: text.slice(from, to) };
}

function paragraph(text: string, start: number, firstEnd: number): SplitBlock {
  const at = skipBlanks(text, start, firstEnd);
  const indented = columnAt(text, start, at) > 3;
  let end = firstEnd;
  for (let line = nextLine(text, end); line < text.length; line = nextLine(text, end)) {
    const stop = lineEnd(text, line);
    if (isBlank(text, line, stop)) break;
    const level = end === firstEnd && !indented ? setextLevel(text, line, stop) : undefined;
    if (level !== undefined) {
      const heading = text.slice(at, trimEnd(text, at, firstEnd));
      return finish(text, start, stop, { type: "heading", style: { level }, text: heading });
    }
    if (openerOf(text, line, stop)) break;
    end = stop;
  }
  // Up to 3 columns before the first word mean nothing; more are an indented code block's and stay.
  return finish(text, start, end, { type: "paragraph", text: text.slice(indented ? start : at, end) });
}

function fencedCode(text: string, start: number, openEnd: number, opener: Opener & { kind: "fence" }): SplitBlock {
  const info = skipBlanks(text, opener.info, openEnd);
  const lang = cutAtCharacter(text.slice(info, trimEnd(text, info, openEnd)), MAX_LANG_CHARS);
  const fields = { type: "code", ...(lang === "" ? {} : { style: { lang } }) };
  const bodyStart = nextLine(text, openEnd);
  let lastEnd = openEnd;
  for (let line = bodyStart; line < text.length; ) {
    const end = lineEnd(text, line);
    if (closesFence(text, line, end, opener.char, opener.length)) {
      return finish(text, start, end, { ...fields, text: text.slice(bodyStart, Math.max(bodyStart, line - 1)) });
    }
    if (!isBlank(text, line, end)) lastEnd = end;
    line = nextLine(text, end);
  }
  // Unterminated: everything to the end, except the blank lines there.
  const block = finish(text, start, lastEnd, { ...fields, text: text.slice(bodyStart, Math.max(bodyStart, lastEnd)) });
  return { ...block, openTo: "everything" };
}

/** The beginning of a text, without half a character at its end. */
function cutAtCharacter(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}

function quote(text: string, start: number, firstEnd: number): SplitBlock {
  const lines: string[] = [];
  let end = firstEnd;
  for (let line = start, stop = firstEnd; ; ) {
    const mark = skipBlanks(text, line, stop) + 1;
    lines.push(text.slice(text[mark] === " " ? mark + 1 : mark, stop));
    end = stop;
    line = nextLine(text, stop);
    if (line >= text.length) break;
    stop = lineEnd(text, line);
    const at = skipBlanks(text, line, stop);
    if (text[at] !== ">" || at === stop || columnAt(text, line, at) > 3) break;
  }
  return finish(text, start, end, { type: "quote", text: lines.join("\n") });
}

const CHECK_BOX = /^\[([ xX])\](?=[ \t]|$)[ \t]*/;

function listItem(text: string, start: number, firstEnd: number, opener: Opener & { kind: "item" }): SplitBlock {
  const { markerEnd, indent, ordered } = opener;
  const markerStart = skipBlanks(text, start, firstEnd);
  const markerColumn = indent + (markerEnd - markerStart);
  const contentStart = skipBlanks(text, markerEnd, firstEnd);
  const empty = contentStart === firstEnd;
  const gap = columnAt(text, markerEnd, contentStart, markerColumn) - markerColumn;
  // Five or more columns after the marker are one of separation and an indented code block (CommonMark § 5.2).
  const wide = gap > 4;
  const contentColumn = markerColumn + (empty || wide ? 1 : gap);
  const bodyEnd = itemBodyEnd(text, firstEnd, contentColumn, empty);

  // In spaces, because what a tab is worth depends on the marker before it.
  const first = (wide && !empty ? " ".repeat(gap - 1) : "") + text.slice(contentStart, firstEnd);
  const box = CHECK_BOX.exec(first);
  const rest = text.slice(firstEnd, bodyEnd);
  const fields = box
    ? { type: "check_list_item", style: { checked: box[1] !== " " }, text: first.slice(box[0].length) + rest }
    : { type: "list_item", style: { ordered }, text: first + rest };
  // An item may begin with one blank line at most, so an empty one is ended by the blank line after it.
  return finish(text, start, bodyEnd, fields, { contentColumn, takesIndented: !(empty && bodyEnd === firstEnd) });
}

/** Takes the lines that reach the content's column; blank lines count when such a line follows them. */
function itemBodyEnd(text: string, firstEnd: number, contentColumn: number, empty: boolean): number {
  let end = firstEnd;
  for (let line = nextLine(text, firstEnd); line < text.length; ) {
    const stop = lineEnd(text, line);
    if (isBlank(text, line, stop)) {
      if (empty && end === firstEnd) break;
    } else {
      if (indentOf(text, line, stop) < contentColumn) break;
      end = stop;
    }
    line = nextLine(text, stop);
  }
  return end;
}

function untilBlank(text: string, start: number, firstEnd: number, type: "html" | "table"): SplitBlock {
  let end = firstEnd;
  for (let line = nextLine(text, end); line < text.length; line = nextLine(text, end)) {
    const stop = lineEnd(text, line);
    if (isBlank(text, line, stop)) break;
    end = stop;
  }
  return finish(text, start, end, { type, text: text.slice(start, end) });
}
