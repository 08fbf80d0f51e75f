import { type CloseReason, encodeFrame, READY_FRAME } from "../../protocol/sse-frames.ts";
import { createMailbox, type Mailbox } from "./mailbox.ts";
import type { StreamFeed, StreamSink, StreamSource } from "./stream-source.ts";

interface SubscriptionHooks {
  /** Called when the mailbox has grown or shrunk by this many bytes. */
  weighed?(deltaBytes: number): void;
}

/** A source with the mailbox of its one reader: everything of a stream except the connection. */
export class Subscription implements StreamSink {
  /** Nothing more is queued, because `closed` was queued or it was stopped. */
  ended = false;
  /** `ready` has been handed over; it does not go through the mailbox. */
  private greeted = false;
  private stopped = false;
  private feed: StreamFeed | undefined;
  private readonly source: StreamSource;
  private changed: () => void = () => {};
  private readonly mailbox: Mailbox;

  constructor(source: StreamSource, hooks: SubscriptionHooks = {}) {
    this.source = source;
    this.mailbox = createMailbox({
      capacity: source.capacity,
      ...(source.overflow === "lag" ? { lagged: (total: number) => encodeFrame("lagged", { total }) } : {}),
      ...(hooks.weighed ? { weighed: hooks.weighed } : {}),
    });
  }

  /** Subscribes at the source. Call `take` only afterwards. Throws what the source throws. */
  async start(): Promise<void> {
    try {
      this.feed = await this.source.start(this);
    } catch (thrown) {
      this.stop();
      throw thrown;
    }
    if (this.stopped) this.feed.stop();
  }

  /** Calls back whenever there may be something to take. */
  onChange(listener: () => void): void {
    this.changed = listener;
  }

  /** Frames and bytes that wait in the mailbox. */
  get waiting(): { readonly frames: number; readonly bytes: number } {
    return this.mailbox;
  }

  /** The reader has taken everything, including `closed`. */
  get finished(): boolean {
    return this.ended && this.mailbox.isEmpty;
  }

  /** The next bytes: `ready`, then what is queued, up to about `maxBytes` (one frame for 0), else what the feed gives. */
  take(maxBytes: number): Uint8Array | undefined {
    if (!this.greeted) {
      this.greeted = true;
      return READY_FRAME;
    }
    return this.mailbox.take(maxBytes) ?? (this.ended ? undefined : this.feed?.pull?.());
  }

  send(frame: Uint8Array): void {
    if (this.ended) return;
    if (this.mailbox.push(frame)) this.changed();
    else if (this.source.overflow === "close") this.close("overflow");
  }

  wake(): void {
    this.changed();
  }

  close(reason: CloseReason): void {
    if (this.ended) return;
    this.ended = true;
    this.mailbox.force(encodeFrame("closed", { reason }));
    this.changed();
  }

  /** Ends the subscription at once with `closed{overflow}` and drops what is queued. */
  overflow(): void {
    this.ended = false;
    this.mailbox.clear();
    this.close("overflow");
  }

  /** Unsubscribes and drops what is queued. */
  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.ended = true;
    this.mailbox.clear();
    this.feed?.stop();
  }
}
