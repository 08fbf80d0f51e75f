/** Waiting as a dependency, so that tests can control it. */
export interface Timers {
  /** Milliseconds since some fixed moment; never goes back. */
  elapsedMs(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `run` once, after `ms`. Returns a function that cancels it. */
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
