import type { Timers } from "../../base/timers.ts";

/** Waits for a time in milliseconds, or until one of the signals aborts. Leaves no listener behind. */
export function pause(timers: Timers, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      callOff();
      for (const signal of signals) signal.removeEventListener("abort", end);
      done();
    };
    const callOff = timers.after(ms, end);
    for (const signal of signals) signal.addEventListener("abort", end);
    if (signals.some((signal) => signal.aborted)) end();
  });
}
