import type { Clock } from "../../base/clock.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { refusedAs, type SvcError, svcError } from "../../protocol/errors.ts";
import type { ProcessFinishBody, ProcessProgressBody, ProcessRow, ProcessStartBody } from "../../protocol/event.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { BusEvent, EventAudience, EventBus } from "../event/port.ts";
import { frameOf, readFrame } from "./process-frame.ts";
import { checkFinish, checkProgress, checkStart } from "./process-rules.ts";

/** A running process that sent nothing for this long is gone; publishers send a heartbeat every 15 s. */
const RUNNING_MS = 45_000;
/** How long the end of a process is shown. */
const ENDED_MS = 60_000;
/** How many rows are kept; the one that was silent longest is dropped first, and other accounts' rows before this account's. */
const MAX_ROWS = 1000;

export interface ProcessRegistry {
  /** Registers a process, or begins it again. Errors: request.*, and those of publishing. */
  start(process: ProcessStartBody): Promise<Reached>;
  /** Reports progress; an empty report is a heartbeat. Errors: process.not_found {processId}, request.*. */
  progress(id: string, progress: ProcessProgressBody): Promise<Reached>;
  /** Ends a process. Errors: process.not_found {processId}, request.*. */
  finish(id: string, finish: ProcessFinishBody): Promise<Reached>;
  /**
   * Asks the publisher of a process to stop; changes nothing itself. Errors: process.not_found {processId},
   * process.ambiguous {identities}.
   */
  cancel(id: string, identity: string | undefined): Promise<Reached>;
  /** Receives from now on what members and devices run in a space, whether a stream listens here or not. Idempotent. */
  hear(spaceId: string): void;
  /** Must be called when a space ended. */
  unhear(spaceId: string): void;
  /** Live processes of this account and of those it shares spaces with, in the order they were first heard of. */
  list(): ProcessRow[];
  /** Forgets what has expired; to be called every few seconds. */
  sweep(): void;
  close(): void;
}

interface Reached {
  readonly subscribers: number;
}

/**
 * Creates the registry of processes (PROC-1): a view in memory, built only from `process.*` events, whether they come from a
 * request here, another device or another member.
 */
export function createProcessRegistry(deps: { accountId: string; bus: EventBus; clock: Clock }): ProcessRegistry {
  const { accountId, bus, clock } = deps;
  /** By publisher and id, in the order of first sight. */
  const entries = new Map<string, Entry>();

  const live = (key: string): Entry | undefined => {
    const entry = entries.get(key);
    return entry && !isExpired(entry, clock.nowMs()) ? entry : undefined;
  };

  const take = (event: BusEvent): void => {
    const frame = readFrame(event);
    if (!frame) return;
    const key = keyOf(frame.row.identity, frame.row.id);
    const known = live(key);
    if (!known) {
      entries.delete(key);
      if (entries.size >= MAX_ROWS) evictOne(entries);
    }
    const heardMs = clock.nowMs();
    const updatedAt = Math.floor(heardMs / 1000);
    const startedAt = known && !frame.starts ? known.row.startedAt : updatedAt;
    entries.set(key, { row: { ...frame.row, startedAt, updatedAt }, heardMs });
  };
  const stop = bus.observe(take);
  const follow = (audience: EventAudience): (() => void) => bus.follow(audience, "process");
  const stopAccount = follow({ scope: "account" });
  const stopBySpace = new Map<string, () => void>();

  /** Runs one operation after the other, because each builds on the row that the last one left. */
  const inOrder = createSemaphore(1);
  const ownRunning = (id: string): ProcessRow => {
    const row = live(keyOf(accountId, id))?.row;
    if (row?.state !== "running") throw notLive(id);
    return row;
  };

  const runningProcess = (id: string, identity: string | undefined): ProcessRow => {
    const running = [...entries.values()]
      .filter((entry) => entry.row.id === id && entry.row.state === "running" && !isExpired(entry, clock.nowMs()))
      .map((entry) => entry.row)
      .filter((row) => identity === undefined || row.identity === identity);
    if (running.length > 1) throw svcError("process.ambiguous", { identities: running.map((row) => row.identity) });
    if (running.length === 0) throw notLive(id);
    return running[0]!;
  };

  return {
    start: (process) =>
      inOrder(() => {
        checkStart(process);
        return bus.publish(frameOf("process.started", process));
      }),

    progress: (id, progress) =>
      inOrder(() => {
        checkProgress(progress);
        return bus.publish(frameOf("process.progress", withProgress(ownRunning(id), progress)));
      }),

    finish: (id, finish) =>
      inOrder(() => {
        const error = checkFinish(finish);
        return bus.publish(frameOf(`process.${finish.status}`, ownRunning(id), error));
      }),

    cancel: (id, identity) =>
      inOrder(() => {
        const row = runningProcess(id, identity);
        const { scope, spaceId } = row;
        return bus.publish({
          type: "process.cancel",
          scope,
          ...(spaceId === undefined ? {} : { spaceId }),
          target: id,
          data: { identity: row.identity },
        });
      }),

    list() {
      const nowMs = clock.nowMs();
      return [...entries.values()].filter((entry) => !isExpired(entry, nowMs)).map((entry) => entry.row);
    },

    sweep() {
      const nowMs = clock.nowMs();
      for (const [key, entry] of entries) if (isExpired(entry, nowMs)) entries.delete(key);
    },

    hear(spaceId) {
      if (!stopBySpace.has(spaceId)) stopBySpace.set(spaceId, follow({ scope: "space", spaceId }));
    },

    unhear(spaceId) {
      stopBySpace.get(spaceId)?.();
      stopBySpace.delete(spaceId);
    },

    close() {
      stop();
      stopAccount();
      for (const stopSpace of stopBySpace.values()) stopSpace();
      stopBySpace.clear();
    },
  };
}

interface Entry {
  readonly row: ProcessRow;
  /** When the last frame came, Unix milliseconds. */
  readonly heardMs: number;
}

function keyOf(identity: string, id: string): string {
  return `${identity}/${id}`;
}

function isExpired({ row, heardMs }: Entry, nowMs: number): boolean {
  return nowMs - heardMs >= (row.state === "running" ? RUNNING_MS : ENDED_MS);
}

/** A field that is absent stays as it was; a total of 0 and an empty message remove what was reported. */
function withProgress(row: ProcessRow, { done, total, message }: ProcessProgressBody): ProcessRow {
  const { total: oldTotal, message: oldMessage, ...rest } = row;
  const newTotal = total ?? oldTotal ?? 0;
  const newMessage = message ?? oldMessage ?? "";
  return {
    ...rest,
    done: done ?? row.done,
    ...(newTotal > 0 ? { total: newTotal } : {}),
    ...(newMessage === "" ? {} : { message: newMessage }),
  };
}

function evictOne(entries: Map<string, Entry>): void {
  let oldest: { key: string; self: boolean; heardMs: number } | undefined;
  for (const [key, { row, heardMs }] of entries) {
    const earlier = !oldest || (row.self === oldest.self ? heardMs < oldest.heardMs : oldest.self);
    if (earlier) oldest = { key, self: row.self, heardMs };
  }
  if (oldest) entries.delete(oldest.key);
}

function notLive(id: string): SvcError {
  return refusedAs("process.not_found", { processId: id }, refusal("process.not_live"));
}
