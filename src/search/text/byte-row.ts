const encoder = new TextEncoder();
const SPACE = 0x20;
/** How many bytes a UTF-16 unit takes at most. */
const MOST_BYTES = 3;

export type ByteRow = ReturnType<typeof createByteRow>;

/** Collects text as UTF-8 in one buffer; SQLite takes it without conversion. */
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
    /** Appends a stretch of a text that is ASCII only. */
    ascii(text: string, from: number, to: number): void {
      reserve(to - from);
      for (let at = from; at < to; at++) bytes[length++] = text.charCodeAt(at);
    },
    /** Appends tokens, separated from what is before and behind them. */
    tokens(from: Uint8Array, start: number, end: number): void {
      if (start === end) return;
      reserve(end - start + 2);
      bytes[length++] = SPACE;
      for (let at = start; at < end; at++) bytes[length++] = from[at]!;
      bytes[length++] = SPACE;
    },
    /** Does the same with a text. The text may be empty and still separates what is around it. */
    text(text: string): void {
      reserve(text.length * MOST_BYTES + 2);
      bytes[length++] = SPACE;
      length += encoder.encodeInto(text, bytes.subarray(length)).written;
      bytes[length++] = SPACE;
    },
    /** Returns what was collected; the view is valid until the row is cleared. */
    view: (): Uint8Array => bytes.subarray(0, length),
  };
}
