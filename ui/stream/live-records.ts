/** A query's window that follows the server: first a snapshot, then every change. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { AnyRecord, QueryBody } from "../api/api-client.ts";
import type { Frame } from "./frame-parser.ts";
import { compareRecords } from "./record-order.ts";
import { createStreamStatus, type StreamStatus, useStream } from "./stream.ts";

export interface LiveRecords extends StreamStatus {
  records: ReadonlySignal<readonly AnyRecord[]>;
  /** Number of all matches when the window was opened. */
  total: ReadonlySignal<number | undefined>;
}

/** Follows `<path>/subscribe` while the component is mounted and its query stays the same. */
export function useLiveRecords(path: string, body: QueryBody): LiveRecords {
  const key = JSON.stringify([path, body]);
  // The key contains all inputs.
  const window = useMemo(() => createWindow(body), [key]);
  const request = {
    method: "POST",
    path: `${path}/subscribe`,
    body: { ...body, includeTotal: true },
    liveFrom: "snapshot",
  } as const;
  useStream(request, window.take, window);
  return window;
}

function createWindow(body: QueryBody) {
  const records = signal<readonly AnyRecord[]>([]);
  const total = signal<number | undefined>(undefined);
  const order = compareRecords(body.sort ?? []);

  function take({ event, data }: Frame): void {
    if (event === "snapshot") {
      const snapshot = data as unknown as { records: AnyRecord[]; total?: number };
      records.value = snapshot.records;
      total.value = snapshot.total;
    } else if (event === "changes") {
      records.value = (data as unknown as WindowChange[]).reduce(applyChange, records.value).toSorted(order);
    }
  }

  return { ...createStreamStatus(), records, total, take };
}

export interface WindowChange {
  added?: { id: string; doc: AnyRecord }[];
  updated?: { id: string; doc: AnyRecord }[];
  removed?: { id: string }[];
}

/** The window after one entry of a `changes` frame, not sorted. */
export function applyChange(records: readonly AnyRecord[], change: WindowChange): readonly AnyRecord[] {
  const recordsById = new Map(records.map((record) => [record.id, record]));
  for (const { id } of change.removed ?? []) recordsById.delete(id);
  for (const { id, doc } of [...(change.updated ?? []), ...(change.added ?? [])]) recordsById.set(id, doc);
  return [...recordsById.values()];
}
