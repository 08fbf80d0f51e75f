/**
 * Entry of the thread that owns the indexes of an account: follows what is committed, a slice at a time, and answers
 * searches in between.
 */
import { existsSync } from "node:fs";
import { SvcError } from "../../protocol/errors.ts";
import { isDamage, removeIndexFiles } from "../../store/search/index-store.ts";
import { openSpaceIndex, type SpaceIndex } from "./space-index.ts";
import type { IndexPlace, WorkerReport, WorkerRequest } from "./worker-protocol.ts";

declare const self: Worker;

const SLICE_MS = 25;
/** Indexes that are open at once; each holds a handful of files. */
const MAX_OPEN = 16;
/** An index nobody asked for lately is closed, and the space's database let go at once when there is nothing to do. */
const IDLE_MS = 20_000;
const SETTLE_MS = 1_500;
const RETRY_MS = 5_000;
const DONE_STEPS = 50;

interface OpenIndex {
  index: SpaceIndex;
  usedAt: number;
  /** Something was written: the log of the file is to be emptied when there is time. */
  unsettled: boolean;
  busy: boolean;
  /** Entries and rows left when this stretch of work began. */
  begunWith: number;
  steps: number;
}

const open = new Map<string, OpenIndex>();
/** Spaces with something to do, in turn. */
const queue = new Set<string>();
let running = false;
let closed = false;

const tell = (report: WorkerReport): void => self.postMessage(report);

function indexAt(place: IndexPlace): OpenIndex {
  const known = open.get(place.spaceId);
  if (known) {
    known.usedAt = performance.now();
    open.delete(place.spaceId);
    open.set(place.spaceId, known);
    return known;
  }
  for (const [spaceId, one] of [...open]) {
    if (open.size < MAX_OPEN) break;
    if (!queue.has(spaceId)) closeIndex(spaceId, one);
  }
  const index = openSpaceIndex(place);
  if (index.reason !== undefined && index.reason !== "new")
    tell({
      kind: "log",
      level: "warn",
      message: "the search index is made anew",
      fields: { spaceId: place.spaceId, reason: index.reason },
    });
  const one = { index, usedAt: performance.now(), unsettled: false, busy: false, begunWith: 0, steps: 0 };
  open.set(place.spaceId, one);
  return one;
}

function closeIndex(spaceId: string, one: OpenIndex): void {
  open.delete(spaceId);
  queue.delete(spaceId);
  one.index.close();
}

/** Files that are damaged are removed, and made anew when they are next asked for. Nothing else removes any. */
function mendDamage(place: IndexPlace, error: unknown): boolean {
  if (!isDamage(error)) return false;
  const one = open.get(place.spaceId);
  open.delete(place.spaceId);
  try {
    one?.index.close();
  } catch {
    // What is damaged may not even close in order; the files go either way.
  }
  removeIndexFiles(place.index);
  tell({
    kind: "log",
    level: "warn",
    message: "the search index is damaged: it is made anew",
    fields: { spaceId: place.spaceId, err: describe(error) },
  });
  return true;
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function work(): Promise<void> {
  if (running) return;
  running = true;
  while (!closed) {
    const [spaceId] = queue;
    if (spaceId === undefined) break;
    // To the end of the line: others have their turn.
    queue.delete(spaceId);
    const one = open.get(spaceId);
    if (one && step(one)) queue.add(spaceId);
    await new Promise((turn) => setImmediate(turn));
  }
  running = false;
}

/** A slice of a space's work. Answers whether there is more. */
function step(one: OpenIndex): boolean {
  const { place } = one.index;
  try {
    if (!one.busy) {
      one.busy = true;
      one.begunWith = one.index.state().left;
      one.steps = 0;
    }
    const isMore = one.index.step(SLICE_MS);
    one.unsettled = true;
    one.usedAt = performance.now();
    one.steps++;
    if (!isMore || one.steps % DONE_STEPS === 0) report(one, !isMore);
    if (!isMore) one.busy = false;
    return isMore;
  } catch (error) {
    one.busy = false;
    if (mendDamage(place, error)) return false;
    tell({
      kind: "log",
      level: "error",
      message: "indexing failed; it is tried again",
      fields: { spaceId: place.spaceId, err: describe(error) },
    });
    setTimeout(() => resume(place.spaceId), RETRY_MS);
    return false;
  }
}

function resume(spaceId: string): void {
  if (closed || !open.has(spaceId)) return;
  queue.add(spaceId);
  void work();
}

function report(one: OpenIndex, over: boolean): void {
  const { spaceId } = one.index.place;
  const { left } = one.index.state();
  tell({ kind: "followed", spaceId, cursor: one.index.cursor() });
  const total = Math.max(one.begunWith, left);
  tell({ kind: "progress", spaceId, done: total - left, total, over });
}

/** What is idle lets go of files; what was deleted leaves them. */
function rest(): void {
  const now = performance.now();
  for (const [spaceId, one] of [...open]) {
    if (queue.has(spaceId)) continue;
    const idleMs = now - one.usedAt;
    try {
      if (one.unsettled && idleMs > SETTLE_MS) {
        one.index.settleFiles();
        one.index.releaseSource();
        one.unsettled = false;
      }
      if (idleMs > IDLE_MS) closeIndex(spaceId, one);
    } catch (error) {
      if (!mendDamage(one.index.place, error))
        tell({
          kind: "log",
          level: "warn",
          message: "an index could not be settled",
          fields: { spaceId, err: describe(error) },
        });
    }
  }
}
const resting = setInterval(rest, 500);

function answer(request: Extract<WorkerRequest, { id: number }>): unknown {
  switch (request.kind) {
    case "search": {
      const one = indexAt(request.place);
      one.index.setConfig(request.config);
      const answered = one.index.search(request.query);
      one.unsettled = true;
      if (answered.incomplete) resume(request.place.spaceId);
      return answered;
    }
    case "isCurrent": {
      const { spaceId, index } = request.place;
      if (!open.has(spaceId) && !existsSync(index)) return false;
      const one = indexAt(request.place);
      return one.index.reason === undefined && one.index.state().left === 0;
    }
    case "drop": {
      const one = open.get(request.place.spaceId);
      if (one) closeIndex(request.place.spaceId, one);
      removeIndexFiles(request.place.index);
      return true;
    }
    case "close":
      closed = true;
      clearInterval(resting);
      for (const [spaceId, one] of [...open]) closeIndex(spaceId, one);
      return true;
  }
}

self.onmessage = ({ data: request }: MessageEvent<WorkerRequest>) => {
  try {
    if (request.kind === "follow") {
      const one = indexAt(request.place);
      one.index.setConfig(request.config);
      resume(request.place.spaceId);
    } else tell({ kind: "reply", id: request.id, result: answer(request) });
  } catch (error) {
    const mended = "place" in request && mendDamage(request.place, error);
    if (request.kind === "follow") {
      if (mended) self.onmessage?.({ data: request } as MessageEvent<WorkerRequest>);
      else
        tell({
          kind: "log",
          level: "error",
          message: "an index could not be opened",
          fields: { spaceId: request.place.spaceId, err: describe(error) },
        });
      return;
    }
    if (mended && request.kind === "search") {
      self.onmessage?.({ data: request } as MessageEvent<WorkerRequest>);
      return;
    }
    const known = error instanceof SvcError ? error : undefined;
    tell({
      kind: "failed",
      id: request.id,
      code: known?.code ?? "internal",
      message: describe(error),
      ...(known?.details ? { details: known.details } : {}),
      stack: error instanceof Error ? (error.stack ?? "") : "",
    });
  }
};
