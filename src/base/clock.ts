/** Time as it is passed in, so that tests can own it. */
export interface Clock {
  /** Unix milliseconds. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };
