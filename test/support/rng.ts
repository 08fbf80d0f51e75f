/**
 * Seeded randomness for tests. The same seed gives the same sequence on every machine, so a failure is
 * repeated with `SEED=<printed seed>`.
 */

export interface Rng {
  readonly seed: number;
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [min, max], both included. */
  int(min: number, max: number): number;
  /** True with the given probability. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  /** An independent generator whose sequence depends on this seed and the label alone. */
  fork(label: string): Rng;
}

/** splitmix32: small, full period, good enough to drive tests (never for secrets). */
export function createRng(seed: number): Rng {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000;
  };
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  const rng: Rng = {
    seed: seed >>> 0,
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new Error("pick from an empty list");
      return items[int(0, items.length - 1)]!;
    },
    shuffle: (items) => {
      const copy = [...items];
      for (let last = copy.length - 1; last > 0; last--) {
        const other = int(0, last);
        [copy[last], copy[other]] = [copy[other]!, copy[last]!];
      }
      return copy;
    },
    fork: (label) => createRng(seed ^ hashText(label)),
  };
  return rng;
}

/** The suite's own seed: a run of it in CI proves the same thing every time. Other seeds are for whoever explores. */
const CI_SEED = 20_261_121;

/**
 * The seed of this run: `SEED` from the environment, else the suite's in CI and a fresh one elsewhere. It is printed at
 * once, so that a run that hangs or is killed can be repeated too.
 */
export function runSeed(label: string): number {
  const given = process.env["SEED"];
  const seed =
    given !== undefined ? Number(given) >>> 0 : process.env["CI"] ? CI_SEED : (Math.random() * 0xffff_ffff) >>> 0;
  console.log(`${label}: SEED=${seed}`);
  return seed;
}

/** A seed drawn anew by each run, in CI too, and printed: for what explores. `SEED` repeats it. */
export function freshSeed(label: string): number {
  const given = process.env["SEED"];
  const seed = given !== undefined ? Number(given) >>> 0 : (Math.random() * 0xffff_ffff) >>> 0;
  console.log(`${label}: SEED=${seed}`);
  return seed;
}

/** The same beside those that are kept, by name: they come after it, and are left out where `SEED` is given. */
export function exploringSeeds(
  label: string,
  kept: Readonly<Record<string, number>> = {},
): { name: string; seed: number }[] {
  const seed = freshSeed(label);
  const fresh = { name: `seed ${seed}`, seed };
  if (process.env["SEED"] !== undefined) return [fresh];
  return [fresh, ...Object.entries({ "the suite's seed": CI_SEED, ...kept }).map(([name, seed]) => ({ name, seed }))];
}

/** FNV-1a, 32 bits. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
