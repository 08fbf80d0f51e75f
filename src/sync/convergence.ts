import type { SpaceId } from "../base/ids.ts";
import type { Timers } from "../base/timers.ts";
import type { ProgressBook } from "./progress.ts";
import type { ReachedReplicas } from "./reached-replicas.ts";

const CONVERGE_MS = 30_000;
const UNREACHED_MS = 3_000;
const REACH_STEP_MS = 100;

interface ConvergenceDeps {
  readonly book: ProgressBook;
  readonly reached: ReachedReplicas;
  readonly timers: Timers;
  isClosed(): boolean;
  /** One round that begins after this call. */
  round(spaceId: SpaceId): Promise<void>;
}

/**
 * Whether what others may have written to a space has come: after a round that missed nothing; false after 30 s, or 3 s
 * without anybody to ask.
 */
export async function waitConverged(deps: ConvergenceDeps, spaceId: SpaceId): Promise<boolean> {
  const { book, reached, timers } = deps;
  const patienceMs = timers.elapsedMs() + UNREACHED_MS;
  while (!deps.isClosed() && reached.names(spaceId).length === 0) {
    if (timers.elapsedMs() > patienceMs) return false;
    await timers.sleep(REACH_STEP_MS);
  }
  const waited = timers.sleep(CONVERGE_MS).then(() => false);
  const converged = deps.round(spaceId).then(() => {
    const { peers } = book.of(spaceId);
    return reached.names(spaceId).some((name) => {
      const peer = peers.get(name);
      return peer?.lastSyncAtMs !== undefined && !peer.missing && peer.lastError === "";
    });
  });
  return Promise.race([waited, converged]);
}
