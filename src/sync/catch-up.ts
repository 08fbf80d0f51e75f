import type { ProgressBook } from "./progress.ts";

/** How far catching up has come (SYNC-11). People see it while it takes long. */
export interface CatchUpView {
  /** Changes taken in, out of those known of so far. */
  progress(done: number, total: number): void;
  end(): void;
}

const UPDATE_MS = 100;

/**
 * Shows what comes in while rounds are under way, from the first change on. There is one process for all spaces, because a
 * device that is new or was away waits for all of them. The total grows as spaces are found and say what they have.
 */
export function createCatchUp(book: ProgressBook, begin: () => CatchUpView) {
  let under = 0;
  let view: CatchUpView | undefined;
  let takenBefore = 0;
  let updatedMs = 0;

  const update = (): void => {
    const { taken, behind } = book.sums();
    const done = taken - takenBefore;
    if (done === 0) return;
    view ??= begin();
    view.progress(done, done + behind);
  };

  return {
    /** Something was taken in, or the number of missing changes is known anew. */
    notify(): void {
      const now = performance.now();
      if (under === 0 || now - updatedMs < UPDATE_MS) return;
      updatedMs = now;
      update();
    },
    /** Runs one or several rounds. */
    async during<T>(rounds: () => Promise<T>): Promise<T> {
      if (under++ === 0) takenBefore = book.sums().taken;
      try {
        return await rounds();
      } finally {
        if (--under === 0) {
          update();
          view?.end();
          view = undefined;
        }
      }
    },
  };
}
