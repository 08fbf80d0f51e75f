/** A query's window that follows the server: snapshot first, then every change to it. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { type AnyRecord, type ApiError, type QueryBody, send, toApiError } from "./api-client.ts";
import { createFrameParser, type Frame } from "./frame-parser.ts";
import { compareRecords } from "./record-order.ts";

type LiveState = "connecting" | "live" | "retrying" | "refused";

export interface LiveRecords {
  records: ReadonlySignal<readonly AnyRecord[]>;
  /** All matches when the window was opened. */
  total: ReadonlySignal<number | undefined>;
  state: ReadonlySignal<LiveState>;
  /** Why the query is refused; it is not tried again. */
  error: ReadonlySignal<ApiError | undefined>;
}

const RETRY_MS = 2000;

/** Follows `<path>/subscribe` for as long as the component stands and asks for the same. */
export function useLiveRecords(path: string, body: QueryBody): LiveRecords {
  const key = JSON.stringify([path, body]);
  // The key is all of them.
  const live = useMemo(() => createLiveRecords(path, body), [key]);
  useEffect(() => {
    const controller = new AbortController();
    void live.follow(controller.signal);
    return () => controller.abort();
  }, [live]);
  return live;
}

function createLiveRecords(path: string, body: QueryBody) {
  const records = signal<readonly AnyRecord[]>([]);
  const total = signal<number | undefined>(undefined);
  const state = signal<LiveState>("connecting");
  const error = signal<ApiError | undefined>(undefined);
  const order = compareRecords(body.sort ?? []);

  function take({ event, data }: Frame): void {
    if (event === "snapshot") {
      const snapshot = data as unknown as { records: AnyRecord[]; total?: number };
      records.value = snapshot.records;
      total.value = snapshot.total;
      state.value = "live";
    } else if (event === "changes") {
      records.value = (data as unknown as WindowChange[]).reduce(applyChange, records.value).toSorted(order);
    }
  }

  async function follow(aborted: AbortSignal): Promise<void> {
    while (!aborted.aborted) {
      try {
        await readFrames(await send("POST", `${path}/subscribe`, { ...body, includeTotal: true }, aborted), take);
      } catch (fault) {
        if (aborted.aborted) return;
        const apiError = toApiError(fault);
        if (apiError.status >= 400 && apiError.status < 500) {
          state.value = "refused";
          error.value = apiError;
          return;
        }
      }
      state.value = "retrying";
      await pause(RETRY_MS, aborted);
    }
  }

  return { records, total, state, error, follow };
}

export interface WindowChange {
  added?: { id: string; doc: AnyRecord }[];
  updated?: { id: string; doc: AnyRecord }[];
  removed?: { id: string }[];
}

/** The window after one entry of a `changes` frame, in no particular order. */
export function applyChange(records: readonly AnyRecord[], change: WindowChange): readonly AnyRecord[] {
  const recordsById = new Map(records.map((record) => [record.id, record]));
  for (const { id } of change.removed ?? []) recordsById.delete(id);
  for (const { id, doc } of [...(change.updated ?? []), ...(change.added ?? [])]) recordsById.set(id, doc);
  return [...recordsById.values()];
}

async function readFrames(response: Response, take: (frame: Frame) => void): Promise<void> {
  if (!response.body) return;
  const parse = createFrameParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const frame of parse(decoder.decode(value, { stream: true }))) take(frame);
  }
}

function pause(ms: number, aborted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    aborted.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
