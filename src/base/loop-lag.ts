const SAMPLE_MS = 50;

/** Measures how late the timers of this thread fire, for work that holds back while others wait. */
export interface LoopLag {
  /** Milliseconds, over the last moments. */
  ms(): number;
  stop(): void;
}

export function createLoopLag(): LoopLag {
  let lagMs = 0;
  let dueMs = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    lagMs = 0.5 * lagMs + 0.5 * Math.max(0, now - dueMs);
    dueMs = now + SAMPLE_MS;
  }, SAMPLE_MS);
  timer.unref?.();
  return { ms: () => lagMs, stop: () => clearInterval(timer) };
}
