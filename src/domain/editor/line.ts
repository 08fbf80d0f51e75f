/** How one line of markdown begins: the line rules of EDIT-4, read from the text in place. Only `\n` ends a line. */

/** Offset of the line's end: its `\n`, or the end of the text. */
export function lineEnd(text: string, start: number): number {
  const newline = text.indexOf("\n", start);
  return newline === -1 ? text.length : newline;
}

/** Offset after the line's `\n`. */
export function nextLine(text: string, end: number): number {
  return end < text.length ? end + 1 : end;
}

const TAB = 0x09;
const SPACE = 0x20;

function isBlankChar(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** Whether a stretch holds spaces and tabs alone. No other white space makes a line blank. */
export function isBlank(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (!isBlankChar(text.charCodeAt(i))) return false;
  return true;
}

/** First offset in [start, end) that is neither space nor tab, else `end`. */
export function skipBlanks(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && isBlankChar(text.charCodeAt(i))) i++;
  return i;
}

/** Offset after the last character of [start, end) that is neither space nor tab. */
export function trimEnd(text: string, start: number, end: number): number {
  let i = end;
  while (i > start && isBlankChar(text.charCodeAt(i - 1))) i--;
  return i;
}

/** Column at `to` of a line that begins at `start` and is blank up to there; tab stops are 4 apart (CommonMark § 2.2). */
export function columnAt(text: string, start: number, to: number, from = 0): number {
  let column = from;
  for (let i = start; i < to; i++) column += text.charCodeAt(i) === TAB ? 4 - (column % 4) : 1;
  return column;
}

/** Indentation of a line in columns. */
export function indentOf(text: string, start: number, end: number): number {
  return columnAt(text, start, skipBlanks(text, start, end));
}

export type Opener =
  | { readonly kind: "heading"; readonly level: number; readonly content: number }
  | { readonly kind: "fence"; readonly char: number; readonly length: number; readonly info: number }
  | { readonly kind: "quote" }
  | { readonly kind: "divider" }
  | { readonly kind: "item"; readonly ordered: boolean; readonly markerEnd: number; readonly indent: number }
  | { readonly kind: "html" }
  | { readonly kind: "table" };

const HTML_START = /[A-Za-z/!?]/;

/** What the line opens, or undefined for text. Offsets are into `text`. Markers stand after at most 3 columns. */
export function openerOf(text: string, start: number, end: number): Opener | undefined {
  const at = skipBlanks(text, start, end);
  if (at === end) return undefined;
  const indent = columnAt(text, start, at);
  if (indent > 3) return undefined;
  switch (text[at]) {
    case "#":
      return headingAt(text, at, end);
    case "`":
    case "~":
      return fenceAt(text, at, end);
    case ">":
      return { kind: "quote" };
    case "<":
      return at + 1 < end && HTML_START.test(text[at + 1]!) ? { kind: "html" } : undefined;
    case "|":
      return { kind: "table" };
    case "_":
      return isDivider(text, at, end) ? { kind: "divider" } : undefined;
    case "-":
    case "*":
      // A divider wins over an item: `* * *` (CommonMark § 4.1).
      if (isDivider(text, at, end)) return { kind: "divider" };
      return itemAt(text, at + 1, end, false, indent);
    case "+":
      return itemAt(text, at + 1, end, false, indent);
    default:
      return orderedAt(text, at, end, indent);
  }
}

function headingAt(text: string, at: number, end: number): Opener | undefined {
  const after = runEnd(text, at, end);
  const level = after - at;
  if (level > 6 || (after < end && !isBlankChar(text.charCodeAt(after)))) return undefined;
  return { kind: "heading", level, content: after };
}

function fenceAt(text: string, at: number, end: number): Opener | undefined {
  const info = runEnd(text, at, end);
  if (info - at < 3) return undefined;
  // The info string of a backtick fence holds no backtick (CommonMark § 4.5): else it is inline code.
  if (text[at] === "`") {
    const tick = text.indexOf("`", info);
    if (tick !== -1 && tick < end) return undefined;
  }
  return { kind: "fence", char: text.charCodeAt(at), length: info - at, info };
}

/** Whether the line closes a fence of this character and length. */
export function closesFence(text: string, start: number, end: number, char: number, length: number): boolean {
  const at = skipBlanks(text, start, end);
  if (at === end || text.charCodeAt(at) !== char || columnAt(text, start, at) > 3) return false;
  const after = runEnd(text, at, end);
  return after - at >= length && isBlank(text, after, end);
}

/** `===` or `---` under a text line (CommonMark § 4.3, any length): the heading's level. */
export function setextLevel(text: string, start: number, end: number): 1 | 2 | undefined {
  const at = skipBlanks(text, start, end);
  if (at === end || columnAt(text, start, at) > 3) return undefined;
  const char = text[at];
  if (char !== "=" && char !== "-") return undefined;
  return isBlank(text, runEnd(text, at, end), end) ? (char === "=" ? 1 : 2) : undefined;
}

function isDivider(text: string, at: number, end: number): boolean {
  const char = text.charCodeAt(at);
  let count = 0;
  for (let i = at; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === char) count++;
    else if (!isBlankChar(code)) return false;
  }
  return count >= 3;
}

function orderedAt(text: string, at: number, end: number, indent: number): Opener | undefined {
  let i = at;
  while (i < end && i - at < 10 && isDigit(text.charCodeAt(i))) i++;
  if (i === at || i - at > 9 || i === end || (text[i] !== "." && text[i] !== ")")) return undefined;
  return itemAt(text, i + 1, end, true, indent);
}

function itemAt(text: string, markerEnd: number, end: number, ordered: boolean, indent: number): Opener | undefined {
  if (markerEnd < end && !isBlankChar(text.charCodeAt(markerEnd))) return undefined;
  return { kind: "item", ordered, markerEnd, indent };
}

/** End of the run of the character at `at`. */
function runEnd(text: string, at: number, end: number): number {
  const char = text.charCodeAt(at);
  let i = at;
  while (i < end && text.charCodeAt(i) === char) i++;
  return i;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
