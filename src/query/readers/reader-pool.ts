import { workerEntry } from "../../base/worker-entry.ts";
import { createWorkerPool, WorkerLost, WorkerRefused } from "../../base/worker-pool.ts";
import { type ErrorCode, type ErrorDetails, refusedAs, SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { failureElsewhere } from "../../protocol/storage-fault.ts";
import type { ReaderJob, ReaderReply, ReaderRequest, ReaderResult } from "./reader-job.ts";

export interface ReaderPoolOptions {
  /** How many readers there are at most; each is a thread of its own. */
  readonly size: number;
  /** A read that takes longer is ended, because it would keep the write-ahead log from shrinking. */
  readonly deadlineMs: number;
  /** How long a reader has to end then; one that is in the middle of a document is ended as a thread. */
  readonly graceMs: number;
  /** An unused reader is ended after this long. */
  readonly idleMs: number;
}

const DEFAULTS: ReaderPoolOptions = { size: 2, deadlineMs: 60_000, graceMs: 1_000, idleMs: 30_000 };

/** What reads documents one by one can be ended at any of them; the others are passes of SQLite over a whole table. */
const OF_DOCUMENTS: ReadonlySet<ReaderJob["kind"]> = new Set(["query", "packed", "aggregate", "explain"]);

/** Threads for reads that may take long. They start when first needed and end when unused. */
export interface ReaderPool {
  /** Runs a job over the database at `path`. Rejects with server.unavailable when `signal` aborts or the deadline passes. */
  run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>>;
  close(): void;
}

export function createReaderPool(options: Partial<ReaderPoolOptions> = {}): ReaderPool {
  const { size, deadlineMs, graceMs, idleMs } = { ...DEFAULTS, ...options };
  const workers = createWorkerPool<ReaderRequest, ReaderReply>({
    spawn: () => new Worker(workerEntry("src/query/readers/reader-worker.ts")),
    size,
    idleMs,
    graceMs,
  });

  return {
    async run<J extends ReaderJob>(path: string, job: J, signal?: AbortSignal): Promise<ReaderResult<J>> {
      if (signal?.aborted) throw svcError("server.unavailable");
      const stop = new SharedArrayBuffer(4);
      const flag = new Int32Array(stop);
      const halted = new AbortController();
      const halt = () => {
        Atomics.store(flag, 0, 1);
        halted.abort();
      };
      const timer = setTimeout(halt, deadlineMs);
      signal?.addEventListener("abort", halt, { once: true });
      try {
        const reply = await workers.run(
          { path, job, stop },
          {
            isWanted: () => !halted.signal.aborted,
            ...(OF_DOCUMENTS.has(job.kind) ? { stop: halted.signal } : {}),
          },
        );
        if (!reply.ok) throw errorOf(reply);
        return reply.result as ReaderResult<J>;
      } catch (error) {
        if (error instanceof WorkerRefused) throw svcError("server.unavailable");
        throw error instanceof WorkerLost && halted.signal.aborted ? cancelled() : error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", halt);
      }
    },
    close: () => workers.close(),
  };
}

function cancelled(): SvcError {
  return refusedAs("server.unavailable", undefined, refusal("query.cancelled"));
}

function errorOf(reply: Extract<ReaderReply, { ok: false }>): Error {
  if (reply.code === "internal") return failureElsewhere(reply);
  return new SvcError(reply.code as ErrorCode, {
    message: reply.message,
    ...(reply.details ? { details: reply.details as ErrorDetails } : {}),
  });
}
