/** One Server-Sent Event: its name and the text of its data lines. */
export interface SseFrame {
  readonly event: string;
  readonly data: string;
}

/**
 * Reads events of a `text/event-stream` (HTML Standard § 9.2.6), however the bytes are split: lines end in LF, CR or
 * CRLF, comments and unknown fields are skipped, several data lines are joined, and an event without its blank line at
 * the end of the stream is dropped.
 */
export async function* readSse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SseFrame, void, undefined> {
  let event = "";
  let data: string[] = [];
  for await (const line of readLines(chunks)) {
    if (line === "") {
      if (data.length > 0) yield { event: event || "message", data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
}

/** Yields complete lines. The parts of a line are joined once, so that a long line costs no more than its length. */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8");
  let parts: string[] = [];
  let endedInCr = false;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === "") continue;
    if (endedInCr && text[0] === "\n") text = text.slice(1);
    endedInCr = text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    const unfinished = lines.pop() as string;
    for (const line of lines) {
      yield parts.length === 0 ? line : parts.join("") + line;
      parts = [];
    }
    if (unfinished !== "") parts.push(unfinished);
  }
}
