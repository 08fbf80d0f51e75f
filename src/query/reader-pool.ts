import { workerEntry } from "../base/worker-entry.ts";
import { type ErrorCode, type ErrorDetails, fail, SvcError } from "../protocol/errors.ts";
import type { ReaderJob, ReaderReply, ReaderRequest, ReaderResult } from "./reader-job.ts";

interface Pending {
  readonly request: ReaderRequest;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Reader {
  readonly worker: Worker;
  current: Pending | undefined;
  idleTimer: ReturnType<typeof setTimeout> | undefined;
}

export interface ReaderPoolOptions {
  /** Readers at most; each is a thread of its own. */
  readonly size: number;
  /** A read that takes longer is ended: it would keep the write-ahead log from shrinking. */
  readonly deadlineMs: number;
  /** An unused reader is given up after this long. */
  readonly idleMs: number;
}

const DEFAULTS: ReaderPoolOptions = { size: 2, deadlineMs: 60_000, idleMs: 30_000 };

/** Threads for reads that may take long. They start when first needed and end when unused. */
export interface ReaderPool {
  /** Runs a job over the database at `path`; ends with server.unavailable when `signal` aborts or the deadline passes. */
  run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>>;
  close(): void;
}

export function createReaderPool(options: Partial<ReaderPoolOptions> = {}): ReaderPool {
  const { size, deadlineMs, idleMs } = { ...DEFAULTS, ...options };
  const readers: Reader[] = [];
  const waiting: Pending[] = [];
  let nextId = 1;
  let closed = false;

  const settle = (reader: Reader, reply: ReaderReply) => {
    const pending = reader.current;
    reader.current = undefined;
    if (pending?.request.id === reply.id) {
      if (reply.ok) pending.resolve(reply.result);
      else pending.reject(errorOf(reply));
    }
    next(reader);
  };

  const next = (reader: Reader) => {
    for (let pending = waiting.shift(); pending; pending = waiting.shift()) {
      if (Atomics.load(new Int32Array(pending.request.stop), 0) === 0) return begin(reader, pending);
      // Nobody waits for it any more.
      pending.reject(fail("server.unavailable"));
    }
    reader.idleTimer = setTimeout(() => retire(reader), idleMs);
    reader.idleTimer.unref();
  };

  const begin = (reader: Reader, pending: Pending) => {
    clearTimeout(reader.idleTimer);
    reader.current = pending;
    reader.worker.postMessage(pending.request);
  };

  const retire = (reader: Reader) => {
    clearTimeout(reader.idleTimer);
    readers.splice(readers.indexOf(reader), 1);
    reader.worker.terminate();
  };

  const start = (): Reader => {
    const worker = new Worker(workerEntry("src/query/reader-worker.ts"));
    const reader: Reader = { worker, current: undefined, idleTimer: undefined };
    worker.onmessage = (event: MessageEvent<ReaderReply>) => settle(reader, event.data);
    worker.onerror = (event) => {
      const pending = reader.current;
      retire(reader);
      pending?.reject(new Error(`a reader failed: ${event.message}`));
    };
    readers.push(reader);
    return reader;
  };

  return {
    run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>> {
      if (closed || signal?.aborted) return Promise.reject(fail("server.unavailable"));
      const stop = new SharedArrayBuffer(4);
      const flag = new Int32Array(stop);
      const halt = () => void Atomics.store(flag, 0, 1);
      const timer = setTimeout(halt, deadlineMs);
      signal?.addEventListener("abort", halt, { once: true });
      const done = new Promise<ReaderResult<J>>((resolve, reject) => {
        const pending: Pending = {
          request: { id: nextId++, path, job, stop },
          resolve: resolve as (result: unknown) => void,
          reject,
        };
        const free = readers.find((reader) => !reader.current) ?? (readers.length < size ? start() : undefined);
        if (free) begin(free, pending);
        else waiting.push(pending);
      });
      return done.finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", halt);
      });
    },
    close() {
      closed = true;
      for (const pending of waiting.splice(0)) pending.reject(fail("server.unavailable"));
      for (const reader of [...readers]) {
        reader.current?.reject(fail("server.unavailable"));
        retire(reader);
      }
    },
  };
}

function errorOf(reply: Extract<ReaderReply, { ok: false }>): Error {
  if (reply.code === "internal") return Object.assign(new Error(reply.message), { stack: reply.stack });
  return new SvcError(reply.code as ErrorCode, {
    message: reply.message,
    ...(reply.details ? { details: reply.details as ErrorDetails } : {}),
  });
}
