import { workerEntry } from "../base/worker-entry.ts";

/** Frames that a write-ahead log holds, and how many of them are in the database already. */
export interface LogPosition {
  readonly log: number;
  readonly checkpointed: number;
}

/** To the worker. */
export interface CheckpointRequest {
  readonly id: number;
  readonly path: string;
}

/** From the worker. */
export type CheckpointReply =
  | { readonly id: number; readonly position: LogPosition }
  | { readonly id: number; readonly fault: string };

/** An unused thread is given up after this long. */
const IDLE_MS = 30_000;

/** A thread for checkpoints. It starts when first needed and ends when unused. */
export interface WalCheckpointer {
  /** Copies the log of the database at `path` into it, as far as readers allow; answers how far that was. */
  run(path: string): Promise<LogPosition>;
  close(): void;
}

export function createWalCheckpointer({ idleMs = IDLE_MS }: { idleMs?: number } = {}): WalCheckpointer {
  const waiting = new Map<number, PromiseWithResolvers<LogPosition>>();
  let worker: Worker | undefined;
  let idleTimer: ReturnType<typeof setTimeout> | undefined;
  let nextId = 1;

  const retire = (fault: string) => {
    clearTimeout(idleTimer);
    worker?.terminate();
    worker = undefined;
    for (const { reject } of waiting.values()) reject(new Error(fault));
    waiting.clear();
  };

  const start = (): Worker => {
    const started = new Worker(workerEntry("src/store/checkpoint-worker.ts"));
    started.onmessage = ({ data }: MessageEvent<CheckpointReply>) => {
      const asked = waiting.get(data.id);
      waiting.delete(data.id);
      if ("fault" in data) asked?.reject(new Error(data.fault));
      else asked?.resolve(data.position);
      if (waiting.size > 0) return;
      clearTimeout(idleTimer);
      idleTimer = setTimeout(() => retire("unused"), idleMs);
      idleTimer.unref();
    };
    started.onerror = (event) => retire(`the checkpointer failed: ${event.message}`);
    return started;
  };

  return {
    run(path) {
      clearTimeout(idleTimer);
      worker ??= start();
      const id = nextId++;
      const asked = Promise.withResolvers<LogPosition>();
      waiting.set(id, asked);
      worker.postMessage({ id, path } satisfies CheckpointRequest);
      return asked.promise;
    },
    close: () => retire("the checkpointer is closed"),
  };
}
