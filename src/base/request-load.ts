const WINDOW_MS = 100;
/** This many requests in one window count as many: a hundred a second. A page and its reader make fewer. */
const MANY = 10;

/** Shows whether many requests are coming in, for work that holds back meanwhile. */
export interface RequestLoad {
  /** Counts a request that has come in. */
  note(): void;
  /** Returns whether requests have recently come in at a hundred a second. */
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
