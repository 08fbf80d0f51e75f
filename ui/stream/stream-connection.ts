import { createFrameParser, type Frame } from "./frame-parser.ts";

/** One connection of the hub to the server. */
export interface Connection {
  readonly leave: AbortController;
  streamId: string | undefined;
  lastByteMs: number;
  /** Wire ids that are open and no longer wanted. */
  drop: string[];
  changing: boolean;
}

/** The server sends a comment about every 25 s. */
const SILENCE_MS = 60_000;
const TICK_MS = 5_000;
/** A tick this late means that the machine slept; a hidden tab's ticks come once a minute. */
const SLEPT_MS = 75_000;

interface SilenceClock {
  nowMs(): number;
  after(ms: number, run: () => void): () => void;
}

/**
 * Ends the connection after a silence longer than the server ever keeps, and after a sleep. The returned function ends
 * the watch.
 */
export function watchForSilence(connection: Connection, { nowMs, after }: SilenceClock): () => void {
  let tickedMs = nowMs();
  let cancel = after(TICK_MS, tick);
  function tick(): void {
    const now = nowMs();
    const slept = now - tickedMs > SLEPT_MS;
    tickedMs = now;
    if (slept || now - connection.lastByteMs > SILENCE_MS) connection.leave.abort();
    else cancel = after(TICK_MS, tick);
  }
  return () => cancel();
}

/** Passes on what the server sends, frame by frame, until the stream ends. */
export async function readFrames(
  connection: Connection,
  { body }: Response,
  nowMs: () => number,
  take: (frame: Frame) => void,
): Promise<void> {
  if (!body) return;
  const parse = createFrameParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    connection.lastByteMs = nowMs();
    for (const frame of parse(decoder.decode(value, { stream: true }))) take(frame);
  }
}
