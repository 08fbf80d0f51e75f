import type { LoopBudget } from "../../base/loop-budget.ts";
import type { LiveRequest, LiveSnapshot } from "./live-request.ts";
import type { WatchedWindow } from "./watched-collection.ts";
import type { Refills } from "./window-refill.ts";
import type { Snapshots } from "./window-snapshot.ts";

/** After this many counts that other writes made outdated, the count is made on the server's own event loop. */
const COUNT_ATTEMPTS = 3;

interface WholeWindowDeps {
  /** How long a count, or reading a window without a limit, may take on the server's loop. */
  readMs: number;
  /** The window of a request, watched from now on. */
  open(request: LiveRequest): WatchedWindow;
  drop(watched: WatchedWindow): void;
  refills: Pick<Refills, "aside" | "now">;
  snapshots: Pick<Snapshots, "of">;
  /** Of all windows that are asked for. */
  budget: LoopBudget;
}

export function createWholeWindows({ readMs, open, drop, refills, snapshots, budget }: WholeWindowDeps) {
  /**
   * Opens the window, waits until it is complete, and calls `register` with its snapshot at that very moment. While a reader
   * reads, others may write, or the window may end: it then begins again. However many requests come together, others are
   * answered in between (LIVE-8).
   */
  return async <T>(
    request: LiveRequest,
    includeTotal: boolean,
    register: (watched: WatchedWindow, snapshot: LiveSnapshot) => T,
  ): Promise<T> => {
    while (budget.isSpent()) await budget.nextTurn();
    let counted: { watched: WatchedWindow; stamp: number; total: number | undefined } | undefined;
    for (let attempt = 1; ; attempt++) {
      const watched = open(request);
      const { window } = watched;
      try {
        if (window.isShort && !refills.now(watched)) {
          await refills.aside(watched);
          continue;
        }
        const known = counted?.watched === watched && counted.stamp === window.stamp ? counted.total : undefined;
        if (!includeTotal || window.isUnbounded || known !== undefined) {
          const snapshot = snapshots.of(watched, { includeTotal, total: known, maxMs: readMs });
          if (snapshot) return register(watched, snapshot);
          await window.readWhole();
          continue;
        }
        const total = window.count(attempt < COUNT_ATTEMPTS ? readMs : Number.POSITIVE_INFINITY);
        counted = { watched, stamp: window.stamp, total: total ?? (await window.countAside()) };
      } catch (error) {
        if (watched.audience.size === 0) drop(watched);
        throw error;
      }
    }
  };
}
