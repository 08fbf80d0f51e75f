import type { ByteRow } from "./byte-row.ts";

/** The tokens into which a stretch of text is tokenised: two rows, each joined by spaces. */
export interface TokenRows {
  readonly exact: string;
  readonly words: string;
}

const SLOTS = 1 << 16;
const BYTES = 4 << 20;
const MAX_CHARS = 255;
/** The lengths of the stretch and of its two rows. */
const HEAD = 5;

/**
 * Remembers how words, identifiers and addresses of ASCII are tokenised, because the same ones come again and again. Everything is in
 * one buffer, because most of the time of a look-up is spent waiting for memory.
 */
export function createTokenMemory(make: (raw: string) => TokenRows) {
  /** Where in `bytes` the entry of a slot begins; 0: the slot has none. */
  const slots = new Int32Array(SLOTS);
  const bytes = new Uint8Array(BYTES);
  const encoder = new TextEncoder();
  let next = 1;

  const isAt = (place: number, text: string, start: number, size: number): boolean => {
    if (bytes[place] !== size) return false;
    for (let i = 0; i < size; i++) if (bytes[place + HEAD + i] !== text.charCodeAt(start + i)) return false;
    return true;
  };

  const add = (raw: string, { exact, words }: TokenRows): number => {
    const [exactBytes, wordsBytes] = [encoder.encode(exact), encoder.encode(words)];
    const size = HEAD + raw.length + exactBytes.length + wordsBytes.length;
    if (next + size > BYTES) {
      slots.fill(0);
      next = 1;
    }
    const place = next;
    next += size;
    bytes[place] = raw.length;
    bytes[place + 1] = exactBytes.length & 0xff;
    bytes[place + 2] = exactBytes.length >> 8;
    bytes[place + 3] = wordsBytes.length & 0xff;
    bytes[place + 4] = wordsBytes.length >> 8;
    encoder.encodeInto(raw, bytes.subarray(place + HEAD));
    bytes.set(exactBytes, place + HEAD + raw.length);
    bytes.set(wordsBytes, place + HEAD + raw.length + exactBytes.length);
    return place;
  };

  /** Appends the tokens of a stretch of a text to the rows. */
  return (text: string, start: number, end: number, exactRow: ByteRow, wordsRow: ByteRow): void => {
    const size = end - start;
    if (size > MAX_CHARS) {
      const { exact, words } = make(text.slice(start, end));
      exactRow.text(exact);
      wordsRow.text(words);
      return;
    }
    let hash = 0;
    for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
    // A stretch may be in either of two slots.
    let slot = (hash ^ (hash >>> 16)) & (SLOTS - 1);
    let place = slots[slot]!;
    if (place === 0 || !isAt(place, text, start, size)) {
      if (place !== 0) slot ^= 1;
      place = slots[slot]!;
      if (place === 0 || !isAt(place, text, start, size)) {
        const raw = text.slice(start, end);
        place = add(raw, make(raw));
        slots[slot] = place;
      }
    }
    const exactSize = bytes[place + 1]! | (bytes[place + 2]! << 8);
    const wordsSize = bytes[place + 3]! | (bytes[place + 4]! << 8);
    const exactAt = place + HEAD + size;
    exactRow.tokens(bytes, exactAt, exactAt + exactSize);
    wordsRow.tokens(bytes, exactAt + exactSize, exactAt + exactSize + wordsSize);
  };
}
