import type { CloseReason } from "../../protocol/sse-frames.ts";
import type { StreamSource } from "./stream-source.ts";

/** The initial records of a window, each as stored JSON text. */
interface WindowSnapshot {
  readonly records: readonly string[];
  readonly total?: number;
  readonly hasNext?: boolean;
}

/** What a space's live queries return from `subscribe`. */
interface OpenWindow {
  readonly snapshot: WindowSnapshot;
  readonly subscription: {
    /** One `changes` frame for everything that has happened since the last. */
    take(): { readonly frame: Uint8Array } | undefined;
    close(): void;
  };
}

interface WindowSink {
  changed(): void;
  ended(reason: CloseReason, last?: { readonly frame: Uint8Array }): void;
}

/** Room for the snapshot and `closed`. Changes are pulled, and wait in the live query's own mailbox. */
const STREAM_CAPACITY = 2;

/** Subscribers of one window share the bytes of its snapshot. */
const frameBySnapshot = new WeakMap<WindowSnapshot, Uint8Array>();

/**
 * What a `query/subscribe` streams: `ready`, `snapshot {records, total?, hasNext?}`, then `changes` as they happen, and
 * `closed{server_shutdown | sdk_closed | overflow | drifted}` (LIVE-1). What `subscribe` throws is answered as an
 * ordinary error. In a route:
 *
 *     openStream(ctx, liveSource((sink) => live.subscribe({ objectId, dataset }, ctx.body, sink)))
 */
export function liveSource(subscribe: (sink: WindowSink) => Promise<OpenWindow>): StreamSource {
  return {
    capacity: STREAM_CAPACITY,
    overflow: "close",
    async start(sink) {
      const { snapshot, subscription } = await subscribe({
        changed: () => sink.wake(),
        ended: (reason, last) => {
          if (last) sink.send(last.frame);
          sink.close(reason);
        },
      });
      sink.send(snapshotFrame(snapshot));
      return { stop: () => subscription.close(), pull: () => subscription.take()?.frame };
    },
  };
}

/** Builds the `snapshot` frame from the stored texts, in one piece of memory. */
function snapshotFrame(snapshot: WindowSnapshot): Uint8Array {
  const known = frameBySnapshot.get(snapshot);
  if (known) return known;
  const { records, total, hasNext } = snapshot;
  const head = 'event: snapshot\ndata: {"records":[';
  const tail = `]${total === undefined ? "" : `,"total":${total},"hasNext":${hasNext ?? false}`}}\n\n`;
  let bytes = head.length + tail.length + Math.max(0, records.length - 1);
  for (const text of records) bytes += Buffer.byteLength(text);
  const frame = Buffer.allocUnsafeSlow(bytes);
  let at = frame.write(head, 0);
  for (const [index, text] of records.entries()) {
    if (index > 0) frame[at++] = 0x2c; // comma
    at += frame.write(text, at);
  }
  frame.write(tail, at);
  frameBySnapshot.set(snapshot, frame);
  return frame;
}
