import { LIMITS } from "../protocol/limits.ts";
import { type CloseReason, encodeFrame, encodeFrameText, multiplexedFrame } from "../protocol/sse-frames.ts";
import type { SubscriptionRequest } from "../protocol/stream.ts";
import type { StreamOutlet } from "./event-connection.ts";
import type { InnerStreams } from "./inner-streams.ts";
import type { StreamSource } from "./stream-source.ts";
import { Subscription } from "./subscription.ts";

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

/** One carried stream, from its request to its last frame. */
interface Carried {
  readonly id: string;
  readonly asked: SubscriptionRequest;
  readonly gone: AbortController;
  /** Made when its route opens it; `open` once its source has started. */
  subscription: Subscription | undefined;
  open: boolean;
  /** Sent instead of anything else: why it was not opened, or that the outer stream ends first. */
  verdict: Uint8Array | undefined;
  /** It holds one of the places for subscriptions whose first frames are being made. */
  holdsPlace: boolean;
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
  private readonly carriedById = new Map<string, Carried>();
  /** Subscriptions that may have something to take; the one that has waited longest comes first. */
  private readonly turns = new Set<Carried>();
  /** Requested and not yet begun, in order. */
  private readonly waiting = new Set<Carried>();
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
    return this.carriedById.keys();
  }

  /** Adds subscriptions; the caller has checked that their ids are free. */
  add(subscriptions: readonly SubscriptionRequest[]): void {
    for (const asked of subscriptions) {
      const carried: Carried = {
        id: asked.id,
        asked,
        gone: new AbortController(),
        subscription: undefined,
        open: false,
        verdict: undefined,
        holdsPlace: false,
      };
      this.carriedById.set(asked.id, carried);
      this.waiting.add(carried);
    }
    this.openNext();
  }

  /** From now on sends nothing more of these subscriptions. Ignores unknown ids: they may just have ended. */
  drop(ids: readonly string[]): void {
    for (const id of ids) {
      const carried = this.carriedById.get(id);
      if (carried) this.remove(carried);
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
    for (const carried of this.turns) {
      this.turns.delete(carried);
      const frame = this.takeFrom(carried);
      if (frame === undefined) continue;
      // The subscription goes behind all that wait: a set iterates in the order of insertion.
      if (this.carriedById.get(carried.id) === carried) this.turns.add(carried);
      for (const part of multiplexedFrame(carried.id, frame)) {
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
    for (const carried of this.carriedById.values()) {
      if (carried.subscription && carried.open) carried.subscription.close(reason);
      else this.finish(carried, encodeFrame("closed", { reason }));
    }
  }

  stop(): void {
    this.ending ??= "sdk_closed";
    for (const carried of [...this.carriedById.values()]) this.remove(carried);
  }

  private takeFrom(carried: Carried): Uint8Array | undefined {
    if (carried.verdict) {
      this.remove(carried);
      return carried.verdict;
    }
    const { subscription } = carried;
    if (!subscription || !carried.open) return undefined;
    const frame = subscription.take(0);
    if (subscription.finished) this.remove(carried);
    else if (subscription.waiting.frames === 0) this.leavePlace(carried);
    return frame;
  }

  private openNext(): void {
    for (const carried of this.waiting) {
      if (this.openings >= this.limits.openings) return;
      this.waiting.delete(carried);
      carried.holdsPlace = true;
      this.openings++;
      void this.begin(carried);
    }
  }

  /** Never rejects: an error becomes the subscription's own frame. */
  private async begin(carried: Carried): Promise<void> {
    const { asked, gone } = carried;
    const response = await this.deps.inner.open(asked, { carry: (source) => this.start(carried, source) }, gone.signal);
    if (carried.verdict || this.carriedById.get(asked.id) !== carried) return;
    if (!carried.subscription || !response.ok) {
      this.finish(carried, encodeFrameText("error", await response.text()));
      return;
    }
    carried.open = true;
    if (carried.subscription.waiting.bytes <= LIGHT_BYTES) this.leavePlace(carried);
    this.ready(carried);
  }

  private async start(carried: Carried, source: StreamSource): Promise<void> {
    const subscription = new Subscription(source, { weighed: (delta) => this.weigh(delta) });
    subscription.onChange(() => this.ready(carried));
    carried.subscription = subscription;
    if (carried.gone.signal.aborted) subscription.stop();
    await subscription.start();
  }

  private ready(carried: Carried): void {
    if (!carried.open || this.carriedById.get(carried.id) !== carried) return;
    this.turns.add(carried);
    this.changed();
  }

  /** Ends a subscription that has not begun, with a frame of its own. */
  private finish(carried: Carried, verdict: Uint8Array): void {
    carried.verdict = verdict;
    carried.gone.abort();
    carried.subscription?.stop();
    this.leavePlace(carried);
    this.turns.add(carried);
    this.changed();
  }

  private remove(carried: Carried): void {
    this.carriedById.delete(carried.id);
    this.turns.delete(carried);
    this.waiting.delete(carried);
    carried.gone.abort();
    carried.subscription?.stop();
    this.leavePlace(carried);
  }

  private leavePlace(carried: Carried): void {
    if (!carried.holdsPlace) return;
    carried.holdsPlace = false;
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
    for (const { subscription } of this.carriedById.values())
      if (subscription && subscription.waiting.bytes > (largest?.waiting.bytes ?? 0)) largest = subscription;
    if (!largest) return;
    const { frames, bytes } = largest.waiting;
    const isOneLargeFrame = frames === 1 && bytes > this.limits.bytes;
    if (isOneLargeFrame && this.bytes - bytes <= this.limits.bytes) return;
    largest.overflow();
  }
}
