import { workerEntry } from "../../base/worker-entry.ts";
import { createWorkerPool, type WorkerPoolOptions, WorkerRefused } from "../../base/worker-pool.ts";
import { type CheckReply, type CheckRequest, DIGEST_BYTES } from "./check-job.ts";

/** Verifies, on another thread, changes that came in. The thread is given no keys: it opens nothing. */
export interface ChangeChecker {
  /**
   * For each change the SHA-256 of the bytes that were found to be canonical and signed by their author. Undefined for
   * bytes that were not, and for all when no worker could check them. Never rejects.
   */
  check(many: readonly Uint8Array[]): Promise<readonly (Uint8Array | undefined)[] | undefined>;
  close(): void;
}

interface ChangeCheckerOptions extends Pick<WorkerPoolOptions, "idleMs" | "spawn"> {
  /** A worker that takes longer is given up on. */
  readonly deadlineMs: number;
  /** How long nothing is sent to workers after one was lost. */
  readonly restMs: number;
}

const DEFAULTS: ChangeCheckerOptions = {
  idleMs: 30_000,
  deadlineMs: 10_000,
  restMs: 60_000,
  spawn: () => new Worker(workerEntry("src/change/intake/check-worker.ts")),
};
/** One thread verifies faster than the loop can write. */
const THREADS = 1;

/** `onLost` is called with a worker that died or hung: what it had is verified where it is written. */
export function createChangeChecker(
  onLost: (error: unknown) => void,
  options: Partial<ChangeCheckerOptions> = {},
): ChangeChecker {
  const { restMs, ...rest } = { ...DEFAULTS, ...options };
  const workers = createWorkerPool<CheckRequest, CheckReply>({ ...rest, size: THREADS });
  let restUntil = 0;

  return {
    async check(many) {
      if (performance.now() < restUntil) return undefined;
      const request = pack(many);
      try {
        const digests = await workers.run(request, {
          transfer: [request.bytes.buffer, request.lengths.buffer],
          isWanted: () => performance.now() >= restUntil,
        });
        return many.map((_, index) => digestAt(digests, index));
      } catch (error) {
        if (!(error instanceof WorkerRefused)) {
          restUntil = performance.now() + restMs;
          onLost(error);
        }
        return undefined;
      }
    },
    close: () => workers.close(),
  };
}

/** Copied into one buffer of their own: frames are reused, and a view would keep the whole of its frame. */
function pack(many: readonly Uint8Array[]): CheckRequest {
  const lengths = Uint32Array.from(many, ({ length }) => length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const one of many) {
    bytes.set(one, at);
    at += one.length;
  }
  return { bytes, lengths };
}

function digestAt(digests: Uint8Array, index: number): Uint8Array | undefined {
  const digest = digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);
  return digest.length === DIGEST_BYTES && digest.some((byte) => byte !== 0) ? digest : undefined;
}
