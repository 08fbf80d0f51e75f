/**
 * All randomness of a process from a seed, keys and ids too, and how long its work seems to take, by which it is cut into
 * slices: the same seed is the same history on a machine of any speed.
 */
import { afterAll, beforeAll } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import { createRng, type Rng } from "./rng.ts";

/** At so many looks at a stopwatch of a hundred, so many milliseconds have passed at most, if any do. */
const PASSING_PERCENT = 2;
const PASSED_MS = 10;

/**
 * For the tests of a group. Answers how a history begins anew from a seed: `slicing` has stopwatches go on now and then, by
 * the seed; without it they stand still.
 */
export function useSeededRandomness(): (seed: number, slicing?: boolean) => void {
  const system = crypto.getRandomValues;
  const stopwatch = performance.now;
  let random = createRng(0);
  let passing: Rng | undefined;
  let passedMs = 0;
  beforeAll(() => {
    crypto.getRandomValues = ((target: Uint8Array) => {
      for (let at = 0; at < target.length; at++) target[at] = random.int(0, 255);
      return target;
    }) as typeof crypto.getRandomValues;
    passedMs = stopwatch.call(performance);
    performance.now = () => {
      if (passing?.chance(PASSING_PERCENT / 100)) passedMs += passing.int(1, PASSED_MS);
      return passedMs;
    };
  });
  afterAll(() => {
    crypto.getRandomValues = system;
    performance.now = stopwatch;
  });
  return (seed, slicing = false) => {
    random = createRng(seed);
    passing = slicing ? random.fork("stopwatch") : undefined;
    drainPool();
  };
}

/** Small requests are served from a batch: what is left of it came from another seed. */
function drainPool(): void {
  const counted = crypto.getRandomValues;
  let isFilled = false;
  crypto.getRandomValues = ((target: Uint8Array) => {
    isFilled = true;
    return counted.call(crypto, target);
  }) as typeof crypto.getRandomValues;
  while (!isFilled) randomBytes(1);
  crypto.getRandomValues = counted;
}
