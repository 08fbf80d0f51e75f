/**
 * Records as they go from a reader to whoever sends them on: bytes are handed over where texts would be copied one by one, on the
 * server's own loop.
 */
export interface PackedRecords {
  readonly count: number;
  /** Their texts as UTF-8, joined by commas; each piece but the first begins with one. */
  readonly pieces: readonly Uint8Array<ArrayBuffer>[];
}

/** A piece of a reply has about so many characters: so much is encoded at once. */
export const PIECE_CHARS = 256 << 10;

/** Takes the texts out of the list as it goes, so that there are never both of all. */
export function packRecords(records: string[]): PackedRecords {
  const encoder = new TextEncoder();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < records.length; ) {
    const { text, end } = pieceFrom(records, at);
    pieces.push(encoder.encode(text));
    records.fill("", at, end);
    at = end;
  }
  return { count: records.length, pieces };
}

/** Joins the texts from a place on, for one piece; `end` is where the next begins. */
export function pieceFrom(records: readonly string[], from: number): { text: string; end: number } {
  let end = from;
  for (let chars = 0; end < records.length && chars < PIECE_CHARS; ) chars += records[end++]!.length;
  return { text: `${from === 0 ? "" : ","}${records.slice(from, end).join(",")}`, end };
}
