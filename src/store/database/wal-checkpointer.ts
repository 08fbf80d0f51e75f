import { workerEntry } from "../../base/worker-entry.ts";
import { createWorkerPool } from "../../base/worker-pool.ts";
import type { Reindexed } from "./reindex.ts";

/** Frames that a write-ahead log holds, and how many of them are in the database already. */
export interface LogPosition {
  readonly log: number;
  readonly checkpointed: number;
}

/** Sent to the worker. */
export interface CheckpointRequest {
  readonly path: string;
  /** A table whose indexes are to be made anew instead. */
  readonly reindex?: string;
}

/** Sent by the worker. */
export type CheckpointReply = CheckpointDone | { readonly fault: string };

interface CheckpointDone {
  readonly position?: LogPosition;
  readonly reindexed?: Reindexed;
}

/** An unused thread is ended after this long. */
const IDLE_MS = 30_000;

/** A thread for checkpoints, and for what takes as long of a whole table. It starts when first needed and ends when unused. */
export interface WalCheckpointer {
  /** Copies the log of the database at `path` into it, as far as readers allow; returns how far that was. */
  run(path: string): Promise<LogPosition>;
  /** Makes SQLite's indexes of a table anew. Writes to that database wait meanwhile, and are refused after a while. */
  reindex(path: string, table: string): Promise<Reindexed>;
  close(): void;
}

export function createWalCheckpointer({ idleMs = IDLE_MS }: { idleMs?: number } = {}): WalCheckpointer {
  const workers = createWorkerPool<CheckpointRequest, CheckpointReply>({
    spawn: () => new Worker(workerEntry("src/store/database/checkpoint-worker.ts")),
    size: 1,
    idleMs,
  });
  const ask = async (request: CheckpointRequest): Promise<CheckpointDone> => {
    const reply = await workers.run(request);
    if ("fault" in reply) throw new Error(reply.fault);
    return reply;
  };
  return {
    run: async (path) => (await ask({ path })).position!,
    reindex: async (path, table) => (await ask({ path, reindex: table })).reindexed!,
    close: () => workers.close(),
  };
}
