import { type BlockFields, markdownStyle } from "./block.ts";
import { splitBlockAt, splitMarkdown } from "./block-split.ts";
import { indentOf, isBlank, lineEnd, nextLine, openerOf, setextLevel, skipBlanks, trimEnd } from "./line.ts";

/**
 * The canonical markdown of a block (EDIT-3), without the separator that follows it; `""` for a blank one. Where the
 * fields allow it the result parses to them again; where they do not (a paragraph whose text begins with `# `, say)
 * markers are escaped, so that the block stays one of its kind and draws in nothing that follows.
 */
export function canonicalBody(block: BlockFields): string {
  const text = block.text ?? "";
  switch (block.type) {
    case "heading":
      return heading(text, markdownStyle(block.type, block.style).level ?? 1);
    case "list_item":
      return item(block.type, markdownStyle(block.type, block.style).ordered ? "1." : "-", text);
    case "check_list_item":
      return item(block.type, markdownStyle(block.type, block.style).checked ? "- [x]" : "- [ ]", text);
    case "code":
      return code(text, markdownStyle(block.type, block.style).lang ?? "");
    case "quote":
      return text
        .split("\n")
        .map((line) => (line === "" ? ">" : `> ${line}`))
        .join("\n");
    case "divider":
      return "---";
    case "html":
    case "table":
      return trimLines(swallowsWhatFollows(text) ? escapeMarkers(text) : text);
    default:
      return paragraph(text);
  }
}

function heading(text: string, level: number): string {
  const marks = "#".repeat(level);
  const line = oneLine(text);
  if (line === "") return marks;
  // A text that ends in a run of # keeps it behind a closing run of the line's own.
  return /(^|[ \t])#+$/.test(line) ? `${marks} ${line} #` : `${marks} ${line}`;
}

/** Line breaks become spaces; spaces and tabs at both ends go. */
function oneLine(text: string): string {
  const line = text.replaceAll("\n", " ");
  const from = skipBlanks(line, 0, line.length);
  return line.slice(from, trimEnd(line, from, line.length));
}

function code(text: string, lang: string): string {
  const info = oneLine(lang);
  const char = info.includes("`") ? "~" : "`";
  let longest = 0;
  for (const run of text.match(char === "`" ? /`+/g : /~+/g) ?? []) longest = Math.max(longest, run.length);
  const fence = char.repeat(Math.max(3, longest + 1));
  // An info string that begins with the fence's own character would lengthen the fence.
  const opening = info.startsWith(char) ? `${fence} ${info}` : `${fence}${info}`;
  return text === "" ? `${opening}\n${fence}` : `${opening}\n${text}\n${fence}`;
}

function item(type: string, marker: string, text: string): string {
  const column = type === "check_list_item" ? 2 : marker.length + 1;
  // A plain item may begin with one blank line, not with two.
  const sunken = type === "list_item" && /^[ \t]*\n[ \t]*\n/.test(text);
  const visible = sunken ? trimLines(text) : trimTrailingLines(text);
  const body = indentContinuation(visible, column);
  const bare = body.slice(skipBlanks(body, 0, body.length));
  // A text may begin with blanks, which would move the content's column, or read as a marker (`[ ] `, `- -`) here;
  // a plus begins no divider.
  const bullet = marker === "-" ? "+" : marker;
  const forms = [mark(marker, body), mark(bullet, body), mark(marker, bare), mark(marker, escapeFirst(bare))];
  return forms.find((form) => isOne(form, type)) ?? forms[3]!;
}

function mark(marker: string, body: string): string {
  return body === "" || body.startsWith("\n") ? marker + body : `${marker} ${body}`;
}

/** Whether markdown is one block, of this type. */
function isOne(markdown: string, type: string): boolean {
  const block = splitBlockAt(markdown, 0);
  return block.type === type && block.end === markdown.length;
}

/** Moves lines that would fall out of the item to its content's column. */
function indentContinuation(text: string, column: number): string {
  const lines = text.split("\n");
  const pad = " ".repeat(column);
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    if (isBlank(line, 0, line.length) || indentOf(line, 0, line.length) >= column) continue;
    lines[i] = pad + line.slice(skipBlanks(line, 0, line.length));
  }
  return lines.join("\n");
}

function paragraph(text: string): string {
  const body = trimLines(text);
  if (body === "") return "";
  return isOne(body, "paragraph") ? body : escapeMarkers(body);
}

/** Whether markdown ends inside a fence. */
function swallowsWhatFollows(text: string): boolean {
  return splitMarkdown(text).some((block) => block.openTo === "everything");
}

/** Puts a backslash before every marker that begins a line, except those of raw HTML and tables. */
function escapeMarkers(text: string): string {
  const out: string[] = [];
  let paragraphLines = 0;
  for (let at = 0; at < text.length; ) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    const opener = openerOf(text, at, end)?.kind;
    const underline = paragraphLines === 1 && setextLevel(text, at, end) !== undefined;
    const opens = underline || (opener !== undefined && opener !== "html" && opener !== "table");
    out.push(opens ? escapeFirst(line) : line);
    paragraphLines = isBlank(text, at, end) ? 0 : paragraphLines + 1;
    at = nextLine(text, end);
  }
  return out.join("\n");
}

/** `\# x`, `1\. x`: a backslash before the line's first punctuation. */
function escapeFirst(line: string): string {
  return line.replace(/^([ \t]*\d*)([!-/:-@[-`{-~])/, "$1\\$2");
}

/** Drops blank lines at both ends. */
function trimLines(text: string): string {
  let from = 0;
  while (from < text.length) {
    const end = lineEnd(text, from);
    if (!isBlank(text, from, end)) break;
    from = nextLine(text, end);
  }
  return trimTrailingLines(text.slice(from));
}

/** Drops the blank lines, and the last line break, at the end. */
function trimTrailingLines(text: string): string {
  let end = text.length;
  while (end > 0) {
    const start = text.lastIndexOf("\n", end - 1) + 1;
    if (!isBlank(text, start, end)) break;
    end = Math.max(0, start - 1);
  }
  return text.slice(0, end);
}
