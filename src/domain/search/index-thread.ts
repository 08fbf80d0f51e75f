import type { Log } from "../../base/log.ts";
import { workerEntry } from "../../base/worker-entry.ts";
import { type ErrorCode, type ErrorDetails, SvcError, svcError } from "../../protocol/errors.ts";
import type { WorkerReport, WorkerRequest } from "./worker-protocol.ts";

/** The thread ends after so long without work: it takes memory of its own. */
const IDLE_MS = 30_000;
const CLOSE_MS = 3_000;

type Asking = Extract<WorkerRequest, { id: number }>;
type WithoutId<T> = T extends { id: number } ? Omit<T, "id"> : never;
type Report = Exclude<WorkerReport, { kind: "reply" | "failed" | "log" }>;

/** The thread that owns the indexes of an account. It starts when it is first needed and ends when it is not. */
export interface IndexThread {
  /** Sends what nobody waits for an answer to. */
  send(request: Exclude<WorkerRequest, Asking>): void;
  /** Rejects with what failed there, or with server.unavailable when the thread is gone. */
  ask<T>(request: WithoutId<Asking>): Promise<T>;
  close(): Promise<void>;
}

interface Waiting {
  resolve(result: never): void;
  reject(error: unknown): void;
}

export function createIndexThread(deps: { log: Log; onReport(report: Report): void }): IndexThread {
  const { log, onReport } = deps;
  let worker: Worker | undefined;
  let lastId = 0;
  let closed = false;
  const waiting = new Map<number, Waiting>();
  let idle: ReturnType<typeof setTimeout> | undefined;

  const start = (): Worker => {
    const started = new Worker(workerEntry("src/domain/search/search-worker.ts"));
    started.onmessage = ({ data }: MessageEvent<WorkerReport>) => take(data);
    started.onerror = (event) => lose(started, new Error(`the thread of the search index failed: ${event.message}`));
    started.addEventListener("close", () => lose(started, undefined));
    return started;
  };

  const lose = (lost: Worker, error: Error | undefined): void => {
    if (worker !== lost) return;
    worker = undefined;
    if (error) log.error("the thread of the search index was lost; it starts again when it is needed", { err: error });
    for (const one of waiting.values()) one.reject(svcError("server.unavailable"));
    waiting.clear();
    lost.terminate();
  };

  const take = (report: WorkerReport): void => {
    stayAwake();
    if (report.kind === "log") log[report.level](report.message, report.fields);
    else if (report.kind === "reply") settle(report.id)?.resolve(report.result as never);
    else if (report.kind === "failed") settle(report.id)?.reject(errorOf(report));
    else onReport(report);
  };

  const settle = (id: number): Waiting | undefined => {
    const one = waiting.get(id);
    waiting.delete(id);
    return one;
  };

  const post = (request: WorkerRequest): void => {
    stayAwake();
    worker ??= start();
    worker.postMessage(request);
  };

  const stayAwake = (): void => {
    clearTimeout(idle);
    if (closed) return;
    idle = setTimeout(() => {
      if (waiting.size === 0) void retire();
    }, IDLE_MS);
    idle.unref();
  };

  const ask = <T>(request: WithoutId<Asking>): Promise<T> => {
    const id = ++lastId;
    return new Promise<T>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      post({ ...request, id } as Asking);
    });
  };

  /** Lets the thread end in order; what is sent meanwhile goes to a new one. */
  const retire = async (): Promise<void> => {
    const old = worker;
    if (!old) return;
    const gone = Promise.race([ask({ kind: "close" }).catch(() => undefined), Bun.sleep(CLOSE_MS)]);
    worker = undefined;
    await gone;
    old.terminate();
  };

  return {
    send: (request) => {
      if (!closed) post(request);
    },
    ask: (request) => (closed ? Promise.reject(svcError("server.unavailable")) : ask(request)),
    async close() {
      if (closed) return;
      closed = true;
      clearTimeout(idle);
      await retire();
      for (const one of waiting.values()) one.reject(svcError("server.unavailable"));
      waiting.clear();
    },
  };
}

function errorOf({ code, message, details, stack }: Extract<WorkerReport, { kind: "failed" }>): Error {
  if (code === "internal") return Object.assign(new Error(message), { stack });
  return new SvcError(code as ErrorCode, { message, ...(details ? { details: details as ErrorDetails } : {}) });
}
