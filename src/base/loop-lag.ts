import type { Service } from "./service.ts";

const SAMPLE_MS = 50;

/** Measures how late the timers of this thread fire, for work that holds back while others wait. */
export interface LoopLag extends Service {
  /** Milliseconds, over the last moments. */
  ms(): number;
  start(): void;
  stop(): void;
}

export function createLoopLag(): LoopLag {
  let lagMs = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    name: "loop lag",
    ms: () => lagMs,
    start() {
      let dueMs = performance.now() + SAMPLE_MS;
      timer = setInterval(() => {
        const now = performance.now();
        lagMs = 0.5 * lagMs + 0.5 * Math.max(0, now - dueMs);
        dueMs = now + SAMPLE_MS;
      }, SAMPLE_MS);
      timer.unref?.();
    },
    stop: () => clearInterval(timer),
  };
}
