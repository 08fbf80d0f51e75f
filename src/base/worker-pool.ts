/** A worker died, failed or did not answer in time. The caller may try the request again. */
export class WorkerLost extends Error {}

/** Nobody waits for the answer any more, or the pool was closed. */
export class WorkerRefused extends Error {}

export interface WorkerPoolOptions {
  readonly spawn: () => Worker;
  /** Most workers at once; each is a thread. */
  readonly size: number;
  /** An unused worker is ended after this long. */
  readonly idleMs: number;
  /**
   * A worker that does not answer within this time is ended, and its request rejects with WorkerLost. Absent: no limit.
   */
  readonly deadlineMs?: number;
  /** How long a worker has to answer once the `stop` of its request has aborted; then it is ended. 1 s by default. */
  readonly graceMs?: number;
}

const GRACE_MS = 1_000;

interface RunOptions {
  readonly transfer?: ArrayBuffer[];
  /** Called when the request's turn has come. */
  readonly isWanted?: () => boolean;
  /** When it aborts, the worker that is at the request has `graceMs` to answer; else it rejects with WorkerLost. */
  readonly stop?: AbortSignal;
}

/**
 * A pool of threads, each of which answers one request at a time: the entry posts one message for every message it gets.
 * Threads start when first needed and end when unused.
 */
export interface WorkerPool<Request, Reply> {
  /** Rejects with WorkerLost or WorkerRefused. */
  run(request: Request, options?: RunOptions): Promise<Reply>;
  close(): void;
}

interface Pending<Request, Reply> {
  readonly request: Request;
  readonly transfer: ArrayBuffer[];
  readonly isWanted: () => boolean;
  readonly stop: AbortSignal | undefined;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

interface PoolWorker<Request, Reply> {
  readonly worker: Worker;
  current: Pending<Request, Reply> | undefined;
  /** In an idle worker: when it is ended as unused. In a busy one: when it is ended for being late. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

export function createWorkerPool<Request, Reply>(options: WorkerPoolOptions): WorkerPool<Request, Reply> {
  const { spawn, size, idleMs, deadlineMs, graceMs = GRACE_MS } = options;
  const workers: PoolWorker<Request, Reply>[] = [];
  const waiting: Pending<Request, Reply>[] = [];
  let closed = false;

  const retire = (one: PoolWorker<Request, Reply>): void => {
    clearTimeout(one.timer);
    const at = workers.indexOf(one);
    if (at < 0) return;
    workers.splice(at, 1);
    one.worker.terminate();
  };

  const lose = (one: PoolWorker<Request, Reply>, why: string): void => {
    if (!workers.includes(one)) return;
    const pending = one.current;
    retire(one);
    pending?.reject(new WorkerLost(why));
    // The caller whose worker was lost hears of it first, and may no longer want its next request.
    setImmediate(() => {
      const next = closed || workers.length >= size ? undefined : nextWanted();
      if (next) begin(start(), next);
    });
  };

  /** The next request that somebody still waits for. */
  const nextWanted = (): Pending<Request, Reply> | undefined => {
    for (let pending = waiting.shift(); pending; pending = waiting.shift()) {
      if (pending.isWanted()) return pending;
      pending.reject(new WorkerRefused("nobody waits for it any more"));
    }
    return undefined;
  };

  const begin = (one: PoolWorker<Request, Reply>, pending: Pending<Request, Reply>): void => {
    clearTimeout(one.timer);
    one.current = pending;
    if (deadlineMs !== undefined) endAfter(one, deadlineMs);
    if (pending.stop?.aborted) endAfter(one, graceMs);
    else
      pending.stop?.addEventListener("abort", () => {
        if (one.current === pending) endAfter(one, graceMs);
      });
    one.worker.postMessage(pending.request, pending.transfer);
  };

  const endAfter = (one: PoolWorker<Request, Reply>, ms: number): void => {
    clearTimeout(one.timer);
    one.timer = setTimeout(() => lose(one, `a worker gave no answer for ${ms} ms`), ms);
    one.timer.unref();
  };

  const rest = (one: PoolWorker<Request, Reply>): void => {
    clearTimeout(one.timer);
    one.timer = setTimeout(() => retire(one), idleMs);
    one.timer.unref();
  };

  const settle = (one: PoolWorker<Request, Reply>, reply: Reply): void => {
    const pending = one.current;
    one.current = undefined;
    pending?.resolve(reply);
    const next = nextWanted();
    if (next) begin(one, next);
    else rest(one);
  };

  const start = (): PoolWorker<Request, Reply> => {
    const worker = spawn();
    const one: PoolWorker<Request, Reply> = { worker, current: undefined, timer: undefined };
    worker.onmessage = (event: MessageEvent<Reply>) => settle(one, event.data);
    worker.onerror = (event) => lose(one, `a worker failed: ${event.message}`);
    worker.addEventListener("close", () => lose(one, "a worker ended"));
    workers.push(one);
    return one;
  };

  return {
    run(request, { transfer = [], isWanted = () => true, stop } = {}) {
      if (closed) return Promise.reject(new WorkerRefused("the workers are closed"));
      return new Promise((resolve, reject) => {
        const pending = { request, transfer, isWanted, stop, resolve, reject };
        const free = workers.find((one) => !one.current) ?? (workers.length < size ? start() : undefined);
        if (free) begin(free, pending);
        else waiting.push(pending);
      });
    },
    close() {
      closed = true;
      const refused = new WorkerRefused("the workers are closed");
      for (const pending of waiting.splice(0)) pending.reject(refused);
      for (const one of [...workers]) {
        one.current?.reject(refused);
        retire(one);
      }
    },
  };
}
