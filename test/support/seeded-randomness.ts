/** All randomness of a process from a seed, keys and ids too: the same seed is the same history. */
import { afterAll, beforeAll } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import { createRng } from "./rng.ts";

/** For the tests of a group. Answers how a history begins anew from a seed. */
export function useSeededRandomness(): (seed: number) => void {
  const system = crypto.getRandomValues;
  let random = createRng(0);
  beforeAll(() => {
    crypto.getRandomValues = ((target: Uint8Array) => {
      for (let at = 0; at < target.length; at++) target[at] = random.int(0, 255);
      return target;
    }) as typeof crypto.getRandomValues;
  });
  afterAll(() => {
    crypto.getRandomValues = system;
  });
  return (seed) => {
    random = createRng(seed);
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
