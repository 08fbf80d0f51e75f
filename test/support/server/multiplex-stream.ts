/** A stream of `POST /v1/streams` as its subscriptions see it. */
import type { Client, Json, JsonObject } from "./client.ts";

export interface SubscriptionRequest {
  id: string;
  method: string;
  path: string;
  body?: JsonObject;
}

interface SubscriptionFrame {
  id: string;
  event: string;
  data: Json;
}

export interface MultiplexStream extends AsyncDisposable {
  readonly streamId: string;
  /** The next frame of this subscription; those of others are kept. Throws after `timeoutMs` and at the stream's end. */
  next(id: string, timeoutMs?: number): Promise<SubscriptionFrame>;
  /** The data of its next frame, which must be of this event. */
  expect(id: string, event: string, timeoutMs?: number): Promise<Json>;
  /** Frames read so far and not asked for. */
  kept(): readonly SubscriptionFrame[];
  /** Drops what is kept of this subscription. */
  forget(id: string): void;
  /** Reads what has arrived. */
  untilQuiet(): Promise<void>;
  /** Everything to the end, which must be `closed` of the stream; its reason. */
  untilClosed(): Promise<string>;
  change(body: { add?: SubscriptionRequest[]; drop?: string[] }): Promise<void>;
  close(): Promise<void>;
}

export async function openMultiplex(
  client: Client,
  subscriptions: readonly SubscriptionRequest[],
): Promise<MultiplexStream> {
  const stream = await client.stream("POST", "/v1/streams", { subscriptions });
  const { streamId } = (await stream.expect("ready")) as { streamId: string };
  let kept: SubscriptionFrame[] = [];

  async function read(timeoutMs?: number): Promise<SubscriptionFrame> {
    return (await stream.expect("frame", timeoutMs)) as unknown as SubscriptionFrame;
  }
  async function next(id: string, timeoutMs?: number): Promise<SubscriptionFrame> {
    const at = kept.findIndex((frame) => frame.id === id);
    if (at !== -1) return kept.splice(at, 1)[0]!;
    for (;;) {
      const frame = await read(timeoutMs);
      if (frame.id === id) return frame;
      kept.push(frame);
    }
  }

  return {
    streamId,
    next,
    async expect(id, event, timeoutMs) {
      const frame = await next(id, timeoutMs);
      if (frame.event !== event) throw new Error(`expected ${event} of ${id}, got ${JSON.stringify(frame)}`);
      return frame.data;
    },
    kept: () => kept,
    forget(id) {
      kept = kept.filter((frame) => frame.id !== id);
    },
    async untilQuiet() {
      while (!(await stream.isQuiet())) kept.push(await read());
    },
    async untilClosed() {
      const { reason, frames } = await stream.untilClosed();
      kept.push(...frames.map(({ data }) => data as unknown as SubscriptionFrame));
      return reason;
    },
    change: (body) => client.post(`/v1/streams/${streamId}`, body, 204),
    close: () => stream.close(),
    [Symbol.asyncDispose]: () => stream.close(),
  };
}
