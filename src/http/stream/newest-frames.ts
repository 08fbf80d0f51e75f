import { encodeFrame } from "../../protocol/sse-frames.ts";
import type { StreamSink } from "./stream-source.ts";

/** States for a reader; only the newest state of each thing matters. */
export interface NewestFrames<T> {
  /**
   * Queues a state. It replaces, and counts as dropped, an older state of the same thing that the reader has not taken
   * yet.
   */
  put(key: string, state: T): void;
  /**
   * For the feed: `lagged {total}` once states were dropped, then the states; the thing that has waited longest comes
   * first.
   */
  pull(): Uint8Array | undefined;
}

/**
 * Makes frames with one event name. However much happens at once, the last state that a reader gets of each thing is
 * true.
 */
export function createNewestFrames<T>(event: string, sink: StreamSink): NewestFrames<T> {
  const waiting = new Map<string, T>();
  let dropped = 0;
  let reported = 0;
  return {
    put(key, state) {
      if (waiting.has(key)) dropped++;
      waiting.set(key, state);
      sink.wake();
    },
    pull() {
      if (dropped > reported) {
        reported = dropped;
        return encodeFrame("lagged", { total: dropped });
      }
      for (const [key, state] of waiting) {
        waiting.delete(key);
        return encodeFrame(event, state);
      }
      return undefined;
    },
  };
}
