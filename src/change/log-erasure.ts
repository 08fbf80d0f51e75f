import type { SpaceStore } from "../store/space-store.ts";

/** How long after a deletion the log is emptied; deletions that follow closely share one pass over it. */
const DELAY_MS = 2_000;
/** A log that a reader holds is tried again after as long again, doubled each time up to this: most readers are soon done. */
const RETRY_MAX_MS = 30_000;

interface LogErasureDeps {
  store: Pick<SpaceStore, "eraseLog">;
  isClosed(): boolean;
  onFailure?: ((error: unknown) => void) | undefined;
}

/**
 * Empties the write-ahead log some time after something was deleted: the database overwrites what is deleted in it, the log
 * keeps the pages as they were until it begins anew. A crash before that leaves them until the space is closed in order.
 */
export function createLogErasure({ store, isClosed, onFailure }: LogErasureDeps) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retryMs = DELAY_MS;

  const arm = (delayMs: number): void => {
    timer = setTimeout(erase, delayMs);
    timer.unref();
  };

  const isErased = (): boolean => {
    try {
      return store.eraseLog();
    } catch (error) {
      onFailure?.(error);
      return false;
    }
  };

  const erase = (): void => {
    timer = undefined;
    if (isClosed()) return;
    const done = isErased();
    if (!done) arm(retryMs);
    retryMs = done ? DELAY_MS : Math.min(RETRY_MAX_MS, retryMs * 2);
  };

  return {
    /** Something was deleted. */
    due(): void {
      if (!timer && !isClosed()) arm(DELAY_MS);
    },
    close: (): void => clearTimeout(timer),
  };
}
