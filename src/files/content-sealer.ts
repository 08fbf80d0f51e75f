import { workerEntry } from "../base/worker-entry.ts";
import { createWorkerPool } from "../base/worker-pool.ts";
import type { SealReply, SealRequest } from "./seal-job.ts";

/** Seals files on another thread than the server's loop. */
export interface ContentSealer {
  /**
   * Digests (32 bytes each) of the sealed chunks of a file of this size. Rejects when the file cannot be read to its end.
   */
  digests(request: SealRequest): Promise<Uint8Array>;
  close(): void;
}

/** One thread seals faster than most disks write. */
const THREADS = 1;
const IDLE_MS = 10_000;

export function createContentSealer(): ContentSealer {
  const workers = createWorkerPool<SealRequest, SealReply>({
    spawn: () => new Worker(workerEntry("src/files/seal-worker.ts")),
    size: THREADS,
    idleMs: IDLE_MS,
  });
  return {
    async digests(request) {
      const reply = await workers.run(request);
      if ("fault" in reply) throw new Error(`sealing a file failed: ${reply.fault}`);
      return reply.digests;
    },
    close: () => workers.close(),
  };
}
