import { workerEntry } from "../../base/worker-entry.ts";
import { createWorkerPool, WorkerRefused } from "../../base/worker-pool.ts";
import { type ErrorCode, type ErrorDetails, SvcError, svcError } from "../../protocol/errors.ts";
import { failureElsewhere } from "../../protocol/storage-fault.ts";
import type { ReaderJob, ReaderReply, ReaderRequest, ReaderResult } from "./reader-job.ts";

export interface ReaderPoolOptions {
  /** How many readers there are at most; each is a thread of its own. */
  readonly size: number;
  /** A read that takes longer is ended, because it would keep the write-ahead log from shrinking. */
  readonly deadlineMs: number;
  /** An unused reader is ended after this long. */
  readonly idleMs: number;
}

const DEFAULTS: ReaderPoolOptions = { size: 2, deadlineMs: 60_000, idleMs: 30_000 };

/** Threads for reads that may take long. They start when first needed and end when unused. */
export interface ReaderPool {
  /** Runs a job over the database at `path`. Rejects with server.unavailable when `signal` aborts or the deadline passes. */
  run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>>;
  close(): void;
}

export function createReaderPool(options: Partial<ReaderPoolOptions> = {}): ReaderPool {
  const { size, deadlineMs, idleMs } = { ...DEFAULTS, ...options };
  const workers = createWorkerPool<ReaderRequest, ReaderReply>({
    spawn: () => new Worker(workerEntry("src/query/readers/reader-worker.ts")),
    size,
    idleMs,
  });

  return {
    async run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>> {
      if (signal?.aborted) throw svcError("server.unavailable");
      const stop = new SharedArrayBuffer(4);
      const flag = new Int32Array(stop);
      const halt = () => void Atomics.store(flag, 0, 1);
      const timer = setTimeout(halt, deadlineMs);
      signal?.addEventListener("abort", halt, { once: true });
      try {
        const reply = await workers.run({ path, job, stop }, { isWanted: () => Atomics.load(flag, 0) === 0 });
        if (!reply.ok) throw errorOf(reply);
        return reply.result as ReaderResult<J>;
      } catch (error) {
        throw error instanceof WorkerRefused ? svcError("server.unavailable") : error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", halt);
      }
    },
    close: () => workers.close(),
  };
}

function errorOf(reply: Extract<ReaderReply, { ok: false }>): Error {
  if (reply.code === "internal") return failureElsewhere(reply);
  return new SvcError(reply.code as ErrorCode, {
    message: reply.message,
    ...(reply.details ? { details: reply.details as ErrorDetails } : {}),
  });
}
