import { createSemaphore } from "../../base/semaphore.ts";
import type { WindowStep } from "./live-window.ts";
import type { WatchedWindow } from "./watched-collection.ts";

interface RefillDeps {
  /** How long one window may read the store on the server's loop. */
  maxMs: number;
  /** Called when a step of a window has ended and its audience has to get what has changed. */
  finish(watched: WatchedWindow, step: WindowStep): void;
  /** Notifies the members for whom changes wait. */
  inform(): void;
  failed(watched: WatchedWindow, error: unknown): void;
}

export type Refills = ReturnType<typeof createRefills>;

/** Refills windows that have become short: at once where that is quick, else through a reader. */
export function createRefills({ maxMs, finish, inform, failed }: RefillDeps) {
  /** A reader refills one window after the other. */
  const inTurn = createSemaphore(1);

  function aside(watched: WatchedWindow): Promise<void> {
    watched.refilling ??= inTurn(async () => {
      try {
        await watched.window.refillAside((step) => finish(watched, step));
        inform();
      } catch (error) {
        failed(watched, error);
        throw error;
      } finally {
        watched.refilling = undefined;
      }
      if (watched.window.isShort && watched.audience.size > 0) aside(watched).catch(() => {});
    });
    return watched.refilling;
  }

  return {
    aside,

    /** Refills within a step that a commit began, for at most `msLeft`. Returns how many milliseconds it took. */
    within(watched: WatchedWindow, step: WindowStep, msLeft: number): number {
      const { window } = watched;
      if (!window.isShort) return 0;
      if (watched.refilling || window.readMs > msLeft || !window.refill(step, msLeft)) {
        // A failure is logged, and reaches the caller that waits for it.
        aside(watched).catch(() => {});
        return window.readMs === Number.POSITIVE_INFINITY ? msLeft : 0;
      }
      return window.readMs;
    },

    /** Refills at once; returns whether that was possible. */
    now(watched: WatchedWindow): boolean {
      const { window } = watched;
      if (watched.refilling || window.readMs > maxMs) return false;
      const step = window.begin([]);
      if (!window.refill(step, maxMs)) return false;
      finish(watched, step);
      inform();
      return true;
    },
  };
}
