import type { WindowStep } from "./live-window.ts";
import type { WatchedWindow } from "./watched-collection.ts";

interface RefillDeps {
  /** How long one window may read the store on the server's loop. */
  maxMs: number;
  /** A step of a window has ended: its audience is owed what has changed. */
  finish(watched: WatchedWindow, step: WindowStep): void;
  /** Notifies those who are owed something that there is something. */
  inform(): void;
  failed(watched: WatchedWindow, error: unknown): void;
}

export type Refills = ReturnType<typeof createRefills>;

/** Fills windows up again that have become short: on the spot where that is quick, else by a reader aside. */
export function createRefills({ maxMs, finish, inform, failed }: RefillDeps) {
  /** Reads aside are made one after the other. */
  let last: Promise<unknown> = Promise.resolve();

  function aside(watched: WatchedWindow): Promise<void> {
    watched.refilling ??= last.then(async () => {
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
    last = watched.refilling.catch(() => {});
    return watched.refilling;
  }

  return {
    aside,

    /** Within a step that a commit began, for so long at most. Answers how long it took. */
    within(watched: WatchedWindow, step: WindowStep, msLeft: number): number {
      const { window } = watched;
      if (!window.isShort) return 0;
      if (watched.refilling || window.readMs > msLeft || !window.refill(step, msLeft)) {
        // A failure goes to whoever waits for it, and into the log.
        aside(watched).catch(() => {});
        return window.readMs === Number.POSITIVE_INFINITY ? msLeft : 0;
      }
      return window.readMs;
    },

    /** On the spot; answers whether it could. */
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
