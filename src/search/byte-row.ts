const encoder = new TextEncoder();
const SPACE = 0x20;
/** Bytes that a UTF-16 unit takes at most. */
const MOST_BYTES = 3;

export type ByteRow = ReturnType<typeof createByteRow>;

/** Text that is put together as UTF-8: SQLite takes it as it is. */
export function createByteRow() {
  let bytes = new Uint8Array(16_384);
  let length = 0;

  const reserve = (more: number): void => {
    if (length + more <= bytes.length) return;
    const larger = new Uint8Array(2 * (length + more));
    larger.set(bytes.subarray(0, length));
    bytes = larger;
  };

  return {
    clear(): void {
      length = 0;
    },
    /** A stretch of a text that is ASCII alone. */
    ascii(text: string, from: number, to: number): void {
      reserve(to - from);
      for (let at = from; at < to; at++) bytes[length++] = text.charCodeAt(at);
    },
    /** Tokens, apart from what stands before and behind them. */
    tokens(from: Uint8Array, start: number, end: number): void {
      if (start === end) return;
      reserve(end - start + 2);
      bytes[length++] = SPACE;
      for (let at = start; at < end; at++) bytes[length++] = from[at]!;
      bytes[length++] = SPACE;
    },
    /** The same of a text, which may be empty and yet parts what stands around it. */
    text(text: string): void {
      reserve(text.length * MOST_BYTES + 2);
      bytes[length++] = SPACE;
      length += encoder.encodeInto(text, bytes.subarray(length)).written;
      bytes[length++] = SPACE;
    },
    /** What was put together; until it is cleared. */
    view: (): Uint8Array => bytes.subarray(0, length),
  };
}
