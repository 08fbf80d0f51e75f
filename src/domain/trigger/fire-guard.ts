/** Fires of a trigger in a minute after which it is taken to be going round in a circle. */
const FIRES_A_MINUTE = 30;
const MINUTE_MS = 60_000;

export interface FireGuard {
  /** `limited` the first time that there are too many, `refused` until there is room again. */
  take(nowMs: number): "ok" | "limited" | "refused";
}

export function createFireGuard(): FireGuard {
  let firesMs: number[] = [];
  let limited = false;
  return {
    take(nowMs) {
      firesMs = firesMs.filter((ms) => nowMs - ms < MINUTE_MS);
      if (firesMs.length < FIRES_A_MINUTE) {
        firesMs.push(nowMs);
        limited = false;
        return "ok";
      }
      if (limited) return "refused";
      limited = true;
      return "limited";
    },
  };
}
