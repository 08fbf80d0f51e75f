/** Splits a byte stream into lines of JSON. Throws at a line longer than the limit instead of buffering it. */
export async function* readJsonLines<T>(stream: ReadableStream<Uint8Array>, limitBytes: number): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at));
      from = at + 1;
      const line = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
      parts = [];
      held = 0;
      yield JSON.parse(decoder.decode(line)) as T;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.slice(from));
    held += chunk.length - from;
    if (held > limitBytes) throw new Error(`a line is longer than ${limitBytes} bytes`);
  }
}

export function toJsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
