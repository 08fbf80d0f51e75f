/** Time as a dependency, so that tests can control it. */
export interface Clock {
  /** Unix milliseconds. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };
