/** How many characters a chunk holds at most. */
const CHUNK_CHARS = 2_000;

/** Where a text may be cut, the best kind of place first. The cut is behind the match. */
const BOUNDARIES = [/\n[ \t]*\n/g, /\n/g, /[.!?…]["')\]]*\s+|[。！？｡။។]/g, /\s+|[、，,;；:]/g];

/**
 * Cuts a long text at sensible places: a blank line, the end of a line or of a sentence, a space. Each is looked for in the
 * second half of what a chunk may hold. Every chunk begins with the title, so that it says what it is about.
 */
export function chunkText(title: string, text: string, limit = CHUNK_CHARS): string[] {
  const head = title === "" ? "" : `${title.slice(0, limit / 4)}\n`;
  const isLed = title === "" || text.startsWith(title);
  const whole = isLed ? text : text === "" ? title : `${title}\n${text}`;
  if (whole.length <= limit) return whole.trim() === "" ? [] : [whole];
  const chunks: string[] = [];
  for (let at = 0; at < whole.length; ) {
    const lead = at === 0 ? "" : head;
    const end = cutBefore(whole, at, at + limit - lead.length);
    const body = whole.slice(at, end).trim();
    if (body !== "") chunks.push(lead + body);
    at = end;
  }
  return chunks;
}

function cutBefore(text: string, from: number, most: number): number {
  if (most >= text.length) return text.length;
  const half = from + Math.floor((most - from) / 2);
  const window = text.slice(half, most);
  for (const boundary of BOUNDARIES) {
    let cut = -1;
    for (const match of window.matchAll(boundary)) cut = match.index + match[0].length;
    if (cut > 0) return half + cut;
  }
  return splitsPair(text, most) ? most - 1 : most;
}

const splitsPair = (text: string, at: number): boolean =>
  text.charCodeAt(at - 1) >= 0xd800 && text.charCodeAt(at - 1) <= 0xdbff;
