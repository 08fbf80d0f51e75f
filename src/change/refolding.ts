import type { CommitQueue } from "../store/commit/commit-queue.ts";
import type { Projection } from "./fold/projection.ts";

/** Folds rows anew that a commit left behind: a slice a write, so that other work goes on between. */
export function createRefolding(
  queue: Pick<CommitQueue, "enqueue" | "closing">,
  projection: Pick<Projection, "isOwing" | "refoldSlice">,
  onFailure: ((error: unknown) => void) | undefined,
) {
  let isQueued = false;
  /** Whether the last slice could not be committed. */
  let hasFailed = false;
  /** As of the last commit. */
  let wasOwing = false;
  const waiters: PromiseWithResolvers<void>[] = [];

  const end = (settle: (waiter: PromiseWithResolvers<void>) => void): void => {
    for (const waiter of waiters.splice(0)) settle(waiter);
  };

  const goOn = (): void => {
    if (isQueued) return;
    if (queue.closing()) {
      end(({ resolve }) => resolve()); // they are stored: the next start goes on
      return;
    }
    isQueued = true;
    const slice = (): void => {
      isQueued = false;
      projection.refoldSlice();
    };
    hasFailed = false;
    queue.enqueue(slice, "background").catch((error: unknown) => {
      isQueued = false;
      hasFailed = true;
      end(({ reject }) => reject(error));
      onFailure?.(error);
    });
  };

  return {
    /** After a commit, and when the space is opened. Answers whether rows have just come to show all that is in the log. */
    go(): boolean {
      const isOwing = projection.isOwing();
      const hasEnded = wasOwing && !isOwing;
      wasOwing = isOwing;
      if (isOwing) goOn();
      else end(({ resolve }) => resolve());
      return hasEnded;
    },
    /** After a commit that folded nothing: what failed is tried again. */
    retry(): void {
      if (hasFailed) goOn();
    },
    done(): Promise<void> {
      if (!projection.isOwing()) return Promise.resolve();
      const waiter = Promise.withResolvers<void>();
      waiters.push(waiter);
      goOn();
      return waiter.promise;
    },
  };
}
