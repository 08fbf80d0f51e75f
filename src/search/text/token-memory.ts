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

  const isAt = (offset: number, text: string, start: number, size: number): boolean => {
    if (bytes[offset] !== size) return false;
    for (let i = 0; i < size; i++) if (bytes[offset + HEAD + i] !== text.charCodeAt(start + i)) return false;
    return true;
  };

  const add = (raw: string, { exact, words }: TokenRows): number => {
    const [exactBytes, wordsBytes] = [encoder.encode(exact), encoder.encode(words)];
    const size = HEAD + raw.length + exactBytes.length + wordsBytes.length;
    if (next + size > BYTES) {
      slots.fill(0);
      next = 1;
    }
    const offset = next;
    next += size;
    bytes[offset] = raw.length;
    bytes[offset + 1] = exactBytes.length & 0xff;
    bytes[offset + 2] = exactBytes.length >> 8;
    bytes[offset + 3] = wordsBytes.length & 0xff;
    bytes[offset + 4] = wordsBytes.length >> 8;
    encoder.encodeInto(raw, bytes.subarray(offset + HEAD));
    bytes.set(exactBytes, offset + HEAD + raw.length);
    bytes.set(wordsBytes, offset + HEAD + raw.length + exactBytes.length);
    return offset;
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
    let offset = slots[slot]!;
    if (offset === 0 || !isAt(offset, text, start, size)) {
      if (offset !== 0) slot ^= 1;
      offset = slots[slot]!;
      if (offset === 0 || !isAt(offset, text, start, size)) {
        const raw = text.slice(start, end);
        offset = add(raw, make(raw));
        slots[slot] = offset;
      }
    }
    const exactSize = bytes[offset + 1]! | (bytes[offset + 2]! << 8);
    const wordsSize = bytes[offset + 3]! | (bytes[offset + 4]! << 8);
    const exactAt = offset + HEAD + size;
    exactRow.tokens(bytes, exactAt, exactAt + exactSize);
    wordsRow.tokens(bytes, exactAt + exactSize, exactAt + exactSize + wordsSize);
  };
}
