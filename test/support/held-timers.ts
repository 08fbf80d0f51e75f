import { jest } from "bun:test";

export interface HeldTimers extends Disposable {
  /** Runs what becomes due within so much time, in its order. */
  pass(ms: number): void;
}

/**
 * Holds every timer of this process until it is disposed of: they go on by `pass` alone, so that a test sees the very times that
 * are used by default. What waits in another way, for the disk or for a promise, goes on. `nowMs` is what the clock shows first.
 */
export function holdTimers(nowMs = Date.now()): HeldTimers {
  jest.useFakeTimers({ now: nowMs });
  return {
    pass: (ms) => void jest.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void jest.useRealTimers(),
  };
}
