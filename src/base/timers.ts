/** Waiting as it is passed in, so that tests can own it. */
export interface Timers {
  /** Milliseconds since some moment; never goes back. */
  elapsedMs(): number;
  sleep(ms: number): Promise<void>;
  /** Calls once, after so long. Answers how to call it off. */
  after(ms: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  elapsedMs: () => performance.now(),
  sleep: (ms) => Bun.sleep(ms),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
