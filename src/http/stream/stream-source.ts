import type { CloseReason } from "../../protocol/sse-frames.ts";

/** The interface through which a source sends. All of it is safe to call after the stream has ended. */
export interface StreamSink {
  readonly ended: boolean;
  /** Queues a frame (`encodeFrame` of src/protocol/sse-frames.ts; bytes may be shared between streams). */
  send(frame: Uint8Array): void;
  /** Announces that the feed's `pull` has something. */
  wake(): void;
  /** Ends the stream: what is queued is sent, then `closed{reason}`. */
  close(reason: CloseReason): void;
}

/** What a source returns when it has started. */
export interface StreamFeed {
  /** Unsubscribes. Called exactly once, in whatever way the stream ends. */
  stop(): void;
  /**
   * For sources that coalesce: called when the reader can take a frame and none is queued. Returns the one frame for
   * everything that has happened since, or undefined. Call `sink.wake()` whenever that changes.
   */
  pull?(): Uint8Array | undefined;
}

export interface StreamSource {
  /** Frames kept for a slow reader. */
  readonly capacity: number;
  /**
   * When the mailbox is full: `close` ends the stream with `closed{overflow}`; `lag` drops the frame and tells the
   * reader with `lagged {total}` (all frames dropped since the stream opened) as soon as it reads again.
   */
  readonly overflow: "close" | "lag";
  /**
   * Subscribes and sends the first frames, after `ready`. Runs before the response exists, so what it throws reaches the
   * caller as an ordinary JSON error.
   */
  start(sink: StreamSink): StreamFeed | Promise<StreamFeed>;
}
