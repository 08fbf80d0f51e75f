import { type CloseReason, encodeFrame, KEEPALIVE_FRAME, READY_FRAME } from "../protocol/sse-frames.ts";
import { createMailbox, type Mailbox } from "./mailbox.ts";
import type { BaseContext } from "./route.ts";
import type { OpenStream, StreamRegistry } from "./stream-registry.ts";

/** About how much one write to the socket joins. */
const WRITE_BYTES = 64 << 10;

/** What a source gets to speak through. All of it is safe to call after the stream has ended. */
export interface StreamSink {
  readonly ended: boolean;
  /** Queues a frame (`encodeFrame` of src/protocol/sse-frames.ts; bytes may be shared between streams). */
  send(frame: Uint8Array): void;
  /** Says that the feed's `pull` has something. */
  wake(): void;
  /** Ends the stream: what is queued is sent, then `closed{reason}`. */
  close(reason: CloseReason): void;
}

/** What a source leaves behind when it has started. */
interface StreamFeed {
  /** Unsubscribes. Called exactly once, however the stream ends. */
  stop(): void;
  /**
   * For sources that coalesce: called when the reader can take a frame and none is queued; gives the one frame for
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

/**
 * Opens an event stream (spec § 4): `ready`, the source's frames, keepalive comments while idle, a terminal `closed`. A
 * reader that has gone, or takes nothing for `LIMITS.streamReadDeadlineMs`, is cut off. Errors: server.unavailable, and
 * what the source's start throws.
 */
export async function openStream(
  ctx: Pick<BaseContext<unknown, unknown, unknown>, "request" | "server">,
  source: StreamSource,
): Promise<Response> {
  const { request, server } = ctx;
  server.streams.admit();
  const stream = new EventStream(source, server.streams);
  await stream.start(source, request.signal);
  server.disableIdleTimeout(request);
  return new Response(stream.readable, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

class EventStream implements OpenStream, StreamSink {
  readonly readable: ReadableStream<Uint8Array>;
  /** `ready` has been handed over; it takes no place in the mailbox. */
  private greeted = false;
  /** Nothing more is queued: `closed` has been, or the reader is gone. */
  ended = false;
  private readonly mailbox: Mailbox;
  private readonly overflow: StreamSource["overflow"];
  private readonly registry: StreamRegistry;
  private feed: StreamFeed | undefined;
  private disposed = false;
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Resolves the reader's waiting pull. */
  private resume: (() => void) | undefined;
  /** When the reader last took something, or the wait for it to do so began. Monotonic. */
  private activeMs = performance.now();

  constructor(source: StreamSource, registry: StreamRegistry) {
    this.overflow = source.overflow;
    this.registry = registry;
    this.mailbox = createMailbox({
      capacity: source.capacity,
      ...(source.overflow === "lag" ? { lagged: (total: number) => encodeFrame("lagged", { total }) } : {}),
    });
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.controller = controller;
        },
        pull: () => this.fill(),
        cancel: () => this.dispose(),
      },
      { highWaterMark: 0 },
    );
  }

  async start(source: StreamSource, signal: AbortSignal): Promise<void> {
    this.registry.add(this);
    try {
      this.feed = await source.start(this);
    } catch (thrown) {
      this.dispose();
      throw thrown;
    }
    if (this.disposed) this.feed.stop();
    else if (signal.aborted) this.dispose();
    else signal.addEventListener("abort", () => this.dispose(), { once: true });
  }

  send(frame: Uint8Array): void {
    if (this.ended) return;
    if (this.mailbox.push(frame)) this.wake();
    else if (this.overflow === "close") this.close("overflow");
  }

  wake(): void {
    const { resume } = this;
    this.resume = undefined;
    resume?.();
  }

  close(reason: CloseReason): void {
    if (this.ended) return;
    this.ended = true;
    this.mailbox.force(encodeFrame("closed", { reason }));
    this.wake();
  }

  tick(nowMs: number): void {
    const { keepaliveMs, readDeadlineMs } = this.registry.times;
    if (this.resume === undefined) {
      // The reader is not waiting for us, so we are waiting for it.
      if (nowMs - this.activeMs >= readDeadlineMs) this.cutOff();
    } else if (nowMs - this.activeMs >= keepaliveMs) {
      this.mailbox.force(KEEPALIVE_FRAME);
      this.wake();
    }
  }

  /** Hands the reader what there is, waiting for something if need be. One pull is answered by one chunk. */
  private async fill(): Promise<void> {
    this.activeMs = performance.now();
    if (!this.greeted) {
      this.greeted = true;
      this.controller.enqueue(READY_FRAME);
      return;
    }
    while (!this.disposed) {
      const chunk = this.mailbox.take(WRITE_BYTES) ?? (this.ended ? undefined : this.feed?.pull?.());
      if (chunk) {
        this.controller.enqueue(chunk);
        if (this.ended && this.mailbox.isEmpty) this.finish();
        return;
      }
      await new Promise<void>((resolve) => {
        this.resume = resolve;
      });
      this.activeMs = performance.now();
    }
  }

  private finish(): void {
    this.controller.close();
    this.dispose();
  }

  private cutOff(): void {
    // Without a reason: Bun prints the reason of an errored response to stderr.
    this.controller.error();
    this.dispose();
  }

  private dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.ended = true;
    this.mailbox.clear();
    this.registry.remove(this);
    this.feed?.stop();
    this.wake();
  }
}
