/** Reads a Server-Sent Events response frame by frame, with a deadline on every wait. */
import type { Json, JsonObject, Page, Row } from "../hostile/wire-types.ts";

interface SseFrame {
  event: string;
  data: Json;
}

interface WireOp {
  type: "$set" | "$unset";
  path: string[];
  payload?: Json;
}
interface DocEntry {
  id: string;
  doc: Row;
  ops?: WireOp[];
}
interface RemovedEntry {
  id: string;
  reason: "deleted" | "filtered-out" | "displaced";
}
export interface ChangesEntry {
  versionId: string;
  added?: DocEntry[];
  updated?: DocEntry[];
  removed?: RemovedEntry[];
}

export interface SseStream extends AsyncDisposable {
  readonly headers: Headers;
  /** The next frame; throws after `timeoutMs`. `undefined` once the connection has ended. */
  next(timeoutMs?: number): Promise<SseFrame | undefined>;
  /** The next frame, which must be of this kind. */
  expect(event: string, timeoutMs?: number): Promise<Json>;
  /** `ready` and `snapshot` of a windowed stream. */
  snapshot(): Promise<Page>;
  /** The entries of the next `changes` frame. */
  changes(timeoutMs?: number): Promise<ChangesEntry[]>;
  /** Whether nothing has arrived that was not read. */
  isQuiet(): Promise<boolean>;
  /** Frames until `closed`, which is returned with its reason. */
  untilClosed(timeoutMs?: number): Promise<{ reason: string; frames: SseFrame[] }>;
  /** Everything received so far as text, comments included. */
  rawText(): string;
  close(): Promise<void>;
}

export async function openStream(url: string, method: string, body?: unknown): Promise<SseStream> {
  const abort = new AbortController();
  const response = await fetch(url, {
    method,
    signal: abort.signal,
    headers: {
      Accept: "text/event-stream",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const contentType = response.headers.get("content-type") ?? "";
  if (response.status !== 200 || !contentType.startsWith("text/event-stream") || !response.body) {
    const text = await response.text();
    abort.abort();
    throw new Error(`${method} ${url}: expected an event stream, got ${response.status} ${contentType} ${text}`);
  }
  return createSseStream(response.headers, response.body, abort);
}

function createSseStream(headers: Headers, body: ReadableStream<Uint8Array>, abort: AbortController): SseStream {
  const frames: SseFrame[] = [];
  const waiting: (() => void)[] = [];
  let raw = "";
  let ended = false;
  const wake = (): void => {
    for (const resume of waiting.splice(0)) resume();
  };

  const pump = (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of body) {
        const text = decoder.decode(chunk, { stream: true });
        raw += text;
        rest += text;
        for (let cut = rest.indexOf("\n\n"); cut >= 0; cut = rest.indexOf("\n\n")) {
          const frame = parseFrame(rest.slice(0, cut));
          rest = rest.slice(cut + 2);
          if (frame) frames.push(frame);
        }
        wake();
      }
    } catch (error) {
      if (!abort.signal.aborted) raw += `\n[stream broke: ${String(error)}]`;
    } finally {
      ended = true;
      wake();
    }
  })();

  const next = async (timeoutMs = 10_000): Promise<SseFrame | undefined> => {
    const deadline = Date.now() + timeoutMs;
    while (frames.length === 0 && !ended) {
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no SSE frame within ${timeoutMs} ms; received so far:\n${raw.slice(-800)}`);
      await Promise.race([new Promise<void>((resolve) => waiting.push(resolve)), Bun.sleep(left)]);
    }
    return frames.shift();
  };
  const expectEvent = async (event: string, timeoutMs?: number): Promise<Json> => {
    const frame = await next(timeoutMs);
    if (frame?.event !== event) {
      throw new Error(
        `expected the SSE frame ${event}, got ${frame ? JSON.stringify(frame) : "the end of the stream"}`,
      );
    }
    return frame.data;
  };
  const close = async (): Promise<void> => {
    abort.abort();
    await pump;
  };

  return {
    headers,
    next,
    expect: expectEvent,
    snapshot: async () => {
      const ready = await expectEvent("ready");
      if (JSON.stringify(ready) !== "{}") throw new Error(`ready carries ${JSON.stringify(ready)}, not {}`);
      return (await expectEvent("snapshot")) as unknown as Page;
    },
    changes: async (timeoutMs) => (await expectEvent("changes", timeoutMs)) as unknown as ChangesEntry[],
    isQuiet: async () => {
      if (frames.length === 0 && !ended) await Bun.sleep(0);
      return frames.length === 0 && !ended;
    },
    untilClosed: async (timeoutMs = 20_000) => {
      const before: SseFrame[] = [];
      for (;;) {
        const frame = await next(timeoutMs);
        if (!frame)
          throw new Error(`the stream ended without \`closed\` after ${before.length} frames:\n${raw.slice(-400)}`);
        if (frame.event === "closed") return { reason: String((frame.data as JsonObject)["reason"]), frames: before };
        before.push(frame);
      }
    },
    rawText: () => raw,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** One event block; a block of comments alone gives nothing. An `id:` line is a fault of the envelope. */
function parseFrame(block: string): SseFrame | undefined {
  let event = "";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith(":") || line === "") continue;
    else if (line.startsWith("event:")) event = line.slice(6).trimStart();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    else throw new Error(`unexpected SSE line ${JSON.stringify(line)}`);
  }
  if (event === "" && data.length === 0) return undefined;
  return { event, data: JSON.parse(data.join("\n")) as Json };
}
