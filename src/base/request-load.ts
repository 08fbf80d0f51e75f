const WINDOW_MS = 100;
/** Requests in a window that are many: a hundred a second. A page and its reader make fewer. */
const MANY = 10;

/** Whether many requests come in, for work that steps back meanwhile. */
export interface RequestLoad {
  /** A request has come in. */
  note(): void;
  /** Whether a hundred a second came in of late. */
  isHigh(): boolean;
}

export function createRequestLoad(elapsedMs: () => number = () => performance.now()): RequestLoad {
  let startedMs = elapsedMs();
  let count = 0;
  let before = 0;
  const roll = (): void => {
    const passedMs = elapsedMs() - startedMs;
    if (passedMs < WINDOW_MS) return;
    before = passedMs < 2 * WINDOW_MS ? count : 0;
    count = 0;
    startedMs += passedMs;
  };
  return {
    note() {
      roll();
      count++;
    },
    isHigh() {
      roll();
      return count >= MANY || before >= MANY;
    },
  };
}
