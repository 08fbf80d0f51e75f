import { type CloseReason, KEEPALIVE_FRAME } from "../../protocol/sse-frames.ts";
import type { OpenStream, StreamRegistry } from "./stream-registry.ts";

/** What a connection carries to its reader. */
export interface StreamOutlet {
  /** The next bytes; undefined when there are none for now. */
  take(): Uint8Array | undefined;
  /** Calls back whenever there may be something to take. */
  onChange(listener: () => void): void;
  /** The reader has taken everything, including `closed`. */
  readonly finished: boolean;
  /** Ends the stream: the reader still gets what waits, then `closed{reason}`. */
  close(reason: CloseReason): void;
  /** Called exactly once, in whatever way the connection ends. */
  stop(): void;
}

/**
 * One reader's connection: it sends bytes when the reader can take them, and keepalive comments while there are none. It
 * cuts off a reader that is gone or takes nothing for `readDeadlineMs`.
 */
export class EventConnection implements OpenStream {
  private readonly registry: StreamRegistry;
  private readonly outlet: StreamOutlet;
  private readonly readable: ReadableStream<Uint8Array>;
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  private disposed = false;
  private keepaliveDue = false;
  /** Resolves the reader's waiting pull. */
  private resume: (() => void) | undefined;
  /** Callers that wait until what was handed over is written to the socket. */
  private afterWrite: (() => void)[] = [];
  /** When the reader last took something, or when we began to wait for it to do so. Monotonic. */
  private activeMs = performance.now();

  constructor(outlet: StreamOutlet, registry: StreamRegistry) {
    this.outlet = outlet;
    this.registry = registry;
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
    outlet.onChange(() => this.wake());
    registry.add(this);
  }

  /** The response that carries the stream, until `signal` says that the client is gone. */
  respond(signal: AbortSignal): Response {
    if (signal.aborted) this.dispose();
    else signal.addEventListener("abort", () => this.dispose(), { once: true });
    return new Response(this.readable, {
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
      },
    });
  }

  wake(): void {
    const { resume } = this;
    this.resume = undefined;
    resume?.();
  }

  close(reason: CloseReason): void {
    this.outlet.close(reason);
    this.wake();
  }

  /** Resolves when everything handed over so far is written to the socket, or when the connection has ended. */
  async written(): Promise<void> {
    if (this.disposed || this.resume !== undefined) return;
    await new Promise<void>((resolve) => this.afterWrite.push(resolve));
  }

  tick(nowMs: number): void {
    const { keepaliveMs, readDeadlineMs } = this.registry.times;
    if (this.resume === undefined) {
      // The reader is not waiting for us, so we are waiting for the reader.
      if (nowMs - this.activeMs >= readDeadlineMs) this.drop();
    } else if (nowMs - this.activeMs >= keepaliveMs) {
      this.keepaliveDue = true;
      this.wake();
    }
  }

  /** Gives the reader what there is, or waits for something. Each pull gets one chunk. */
  private async fill(): Promise<void> {
    this.activeMs = performance.now();
    this.notifyWritten();
    while (!this.disposed) {
      const chunk = this.outlet.take() ?? (this.keepaliveDue ? KEEPALIVE_FRAME : undefined);
      this.keepaliveDue = false;
      if (chunk) {
        this.controller.enqueue(chunk);
        if (this.outlet.finished) this.finish();
        return;
      }
      await new Promise<void>((resolve) => {
        this.resume = resolve;
      });
      this.activeMs = performance.now();
    }
  }

  private notifyWritten(): void {
    for (const resolve of this.afterWrite.splice(0)) resolve();
  }

  private finish(): void {
    this.controller.close();
    this.dispose();
  }

  private drop(): void {
    // No reason is given, because Bun prints the reason of an errored response to stderr.
    this.controller.error();
    this.dispose();
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.registry.remove(this);
    this.outlet.stop();
    this.notifyWritten();
    this.wake();
  }
}
