import { workerEntry } from "../base/worker-entry.ts";
import { createWorkerPool } from "../base/worker-pool.ts";

/** Frames that a write-ahead log holds, and how many of them are in the database already. */
export interface LogPosition {
  readonly log: number;
  readonly checkpointed: number;
}

/** Sent to the worker. */
export interface CheckpointRequest {
  readonly path: string;
}

/** Sent by the worker. */
export type CheckpointReply = { readonly position: LogPosition } | { readonly fault: string };

/** An unused thread is ended after this long. */
const IDLE_MS = 30_000;

/** A thread for checkpoints. It starts when first needed and ends when unused. */
export interface WalCheckpointer {
  /** Copies the log of the database at `path` into it, as far as readers allow; returns how far that was. */
  run(path: string): Promise<LogPosition>;
  close(): void;
}

export function createWalCheckpointer({ idleMs = IDLE_MS }: { idleMs?: number } = {}): WalCheckpointer {
  const workers = createWorkerPool<CheckpointRequest, CheckpointReply>({
    spawn: () => new Worker(workerEntry("src/store/checkpoint-worker.ts")),
    size: 1,
    idleMs,
  });
  return {
    async run(path) {
      const reply = await workers.run({ path });
      if ("fault" in reply) throw new Error(reply.fault);
      return reply.position;
    },
    close: () => workers.close(),
  };
}
