import { LIMITS } from "../protocol/limits.ts";
import { type CloseReason, encodeFrame, encodeFrameText, multiplexedFrame } from "../protocol/sse-frames.ts";
import type { SubscriptionRequest } from "../protocol/stream.ts";
import type { StreamOutlet } from "./stream/event-connection.ts";
import type { InnerStreams } from "./stream/inner-streams.ts";
import type { StreamSource } from "./stream/stream-source.ts";
import { Subscription } from "./stream/subscription.ts";

/** Bytes that one write to the socket joins, about. */
const WRITE_BYTES = 64 << 10;
/** Subscriptions whose first frames are no heavier than this do not delay the opening of others. */
const LIGHT_BYTES = 16 << 10;

interface MultiplexLimits {
  readonly bytes: number;
  readonly openings: number;
}

export interface MultiplexDeps {
  readonly streamId: string;
  readonly inner: InnerStreams;
  readonly limits?: MultiplexLimits;
}

/** One inner stream, from its request to its last frame. */
interface InnerStream {
  readonly id: string;
  readonly asked: SubscriptionRequest;
  readonly gone: AbortController;
  /** Made when its route opens it; `open` once its source has started. */
  subscription: Subscription | undefined;
  open: boolean;
  /** Sent instead of anything else: why it was not opened, or that the outer stream ends first. */
  verdict: Uint8Array | undefined;
  /** It holds one of the places for subscriptions whose first frames are being made. */
  holdsSlot: boolean;
}

/**
 * Many subscriptions over one connection. Each has its own mailbox and its own end; they take turns frame by frame. They
 * are opened in the order requested, a few at a time; the next one is opened when the first frames of one were taken. So
 * a client that asks for many windows at once gets their snapshots one after the other, and they are not all in memory at
 * once.
 */
export class Multiplex implements StreamOutlet {
  private readonly deps: MultiplexDeps;
  private readonly limits: MultiplexLimits;
  private readonly innerStreamsById = new Map<string, InnerStream>();
  /** Subscriptions that may have something to take; the one that has waited longest comes first. */
  private readonly turns = new Set<InnerStream>();
  /** Requested and not yet begun, in order. */
  private readonly waiting = new Set<InnerStream>();
  private openings = 0;
  private bytes = 0;
  private greeted = false;
  private ending: CloseReason | undefined;
  private changed: () => void = () => {};
  finished = false;

  constructor(deps: MultiplexDeps) {
    this.deps = deps;
    this.limits = deps.limits ?? { bytes: LIMITS.multiplexBytes, openings: LIMITS.multiplexOpenings };
  }

  /** Ids of subscriptions that have not sent their last frame. */
  get ids(): Iterable<string> {
    return this.innerStreamsById.keys();
  }

  /** Adds subscriptions; the caller has checked that their ids are free. */
  add(subscriptions: readonly SubscriptionRequest[]): void {
    for (const asked of subscriptions) {
      const innerStream: InnerStream = {
        id: asked.id,
        asked,
        gone: new AbortController(),
        subscription: undefined,
        open: false,
        verdict: undefined,
        holdsSlot: false,
      };
      this.innerStreamsById.set(asked.id, innerStream);
      this.waiting.add(innerStream);
    }
    this.openNext();
  }

  /** From now on sends nothing more of these subscriptions. Ignores unknown ids: they may just have ended. */
  drop(ids: readonly string[]): void {
    for (const id of ids) {
      const innerStream = this.innerStreamsById.get(id);
      if (innerStream) this.remove(innerStream);
    }
  }

  onChange(listener: () => void): void {
    this.changed = listener;
  }

  take(): Uint8Array | undefined {
    if (!this.greeted) {
      this.greeted = true;
      return encodeFrame("ready", { streamId: this.deps.streamId });
    }
    const parts: Uint8Array[] = [];
    let total = 0;
    for (const innerStream of this.turns) {
      this.turns.delete(innerStream);
      const frame = this.takeFrom(innerStream);
      if (frame === undefined) continue;
      // The subscription goes behind all that wait: a set iterates in the order of insertion.
      if (this.innerStreamsById.get(innerStream.id) === innerStream) this.turns.add(innerStream);
      for (const part of multiplexedFrame(innerStream.id, frame)) {
        parts.push(part);
        total += part.length;
      }
      if (total >= WRITE_BYTES) break;
    }
    if (total > 0) return Buffer.concat(parts, total);
    if (this.ending === undefined || this.finished) return undefined;
    this.finished = true;
    return encodeFrame("closed", { reason: this.ending });
  }

  close(reason: CloseReason): void {
    if (this.ending !== undefined) return;
    this.ending = reason;
    this.waiting.clear();
    for (const innerStream of this.innerStreamsById.values()) {
      if (innerStream.subscription && innerStream.open) innerStream.subscription.close(reason);
      else this.finish(innerStream, encodeFrame("closed", { reason }));
    }
  }

  stop(): void {
    this.ending ??= "sdk_closed";
    for (const innerStream of [...this.innerStreamsById.values()]) this.remove(innerStream);
  }

  private takeFrom(innerStream: InnerStream): Uint8Array | undefined {
    if (innerStream.verdict) {
      this.remove(innerStream);
      return innerStream.verdict;
    }
    const { subscription } = innerStream;
    if (!subscription || !innerStream.open) return undefined;
    const frame = subscription.take(0);
    if (subscription.finished) this.remove(innerStream);
    else if (subscription.waiting.frames === 0) this.leaveSlot(innerStream);
    return frame;
  }

  private openNext(): void {
    for (const innerStream of this.waiting) {
      if (this.openings >= this.limits.openings) return;
      this.waiting.delete(innerStream);
      innerStream.holdsSlot = true;
      this.openings++;
      void this.begin(innerStream);
    }
  }

  /** Never rejects: an error becomes the subscription's own frame. */
  private async begin(innerStream: InnerStream): Promise<void> {
    const { asked, gone } = innerStream;
    const response = await this.deps.inner.open(
      asked,
      { carry: (source) => this.start(innerStream, source) },
      gone.signal,
    );
    if (innerStream.verdict || this.innerStreamsById.get(asked.id) !== innerStream) return;
    if (!innerStream.subscription || !response.ok) {
      this.finish(innerStream, encodeFrameText("error", await response.text()));
      return;
    }
    innerStream.open = true;
    if (innerStream.subscription.waiting.bytes <= LIGHT_BYTES) this.leaveSlot(innerStream);
    this.ready(innerStream);
  }

  private async start(innerStream: InnerStream, source: StreamSource): Promise<void> {
    const subscription = new Subscription(source, { weighed: (delta) => this.weigh(delta) });
    subscription.onChange(() => this.ready(innerStream));
    innerStream.subscription = subscription;
    if (innerStream.gone.signal.aborted) subscription.stop();
    await subscription.start();
  }

  private ready(innerStream: InnerStream): void {
    if (!innerStream.open || this.innerStreamsById.get(innerStream.id) !== innerStream) return;
    this.turns.add(innerStream);
    this.changed();
  }

  /** Ends a subscription that has not begun, with a frame of its own. */
  private finish(innerStream: InnerStream, verdict: Uint8Array): void {
    innerStream.verdict = verdict;
    innerStream.gone.abort();
    innerStream.subscription?.stop();
    this.leaveSlot(innerStream);
    this.turns.add(innerStream);
    this.changed();
  }

  private remove(innerStream: InnerStream): void {
    this.innerStreamsById.delete(innerStream.id);
    this.turns.delete(innerStream);
    this.waiting.delete(innerStream);
    innerStream.gone.abort();
    innerStream.subscription?.stop();
    this.leaveSlot(innerStream);
  }

  private leaveSlot(innerStream: InnerStream): void {
    if (!innerStream.holdsSlot) return;
    innerStream.holdsSlot = false;
    this.openings--;
    if (this.ending === undefined) this.openNext();
  }

  /**
   * When the total is too large, the subscription with the most waiting gives it up. A single larger frame still passes.
   */
  private weigh(deltaBytes: number): void {
    this.bytes += deltaBytes;
    if (deltaBytes <= 0 || this.bytes <= this.limits.bytes) return;
    let largest: Subscription | undefined;
    for (const { subscription } of this.innerStreamsById.values())
      if (subscription && subscription.waiting.bytes > (largest?.waiting.bytes ?? 0)) largest = subscription;
    if (!largest) return;
    const { frames, bytes } = largest.waiting;
    const isOneLargeFrame = frames === 1 && bytes > this.limits.bytes;
    if (isOneLargeFrame && this.bytes - bytes <= this.limits.bytes) return;
    largest.overflow();
  }
}
