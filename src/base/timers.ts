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

/** Waits for work, for so long at most. No timer is left when it has ended. Rejects as the work does. */
export async function waitAtMost(ms: number, work: Promise<unknown>, timers: Timers = systemTimers): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = timers.after(ms, late.resolve);
  try {
    await Promise.race([work, late.promise]);
  } finally {
    cancel();
  }
}
