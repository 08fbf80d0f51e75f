/** Seeded random documents and filters over a small world of paths and values in which everything collides. */
// biome-ignore lint/suspicious/noExplicitAny: filters and documents are raw JSON.
type Any = any;

export interface Random {
  /** An integer from 0 to n - 1. */
  below(n: number): number;
  pick<T>(list: readonly T[]): T;
}

/** mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  return { below, pick: (list) => list[below(list.length)] as never };
}

export const SCALARS: readonly Any[] = [
  ...[0, 1, 2, 3, -3, 4.5, 0.1, 1e300, -1e300, 5e-324, 2 ** 53, 2 ** 60, -(2 ** 60), 2 ** 64, 1e21],
  ...["", "a", "b", "ab", "A", "1", "5", "zz", "é", "\uffff", "😀", "😁a", "a\0b", "a\0", "a'\"b", "\n"],
  ...[true, false, null],
  ...["2026-01-31T09:30:00.000Z", "1969-12-31T23:59:59.999Z", "2026-01-31T10:30:00+01:00"].map(($date) => ({ $date })),
  ...[{ $date: 1769851800000 }, { $date: 0 }, { $date: "1970-01-01T00:00:00.0004Z" }],
];

/** Objects that look like dates and are none. They occur in documents only: a filter refuses them. */
export const FALSE_DATES: readonly Any[] = [
  { $date: "2026-02-30T00:00:00.000Z" },
  { $date: "2026-01-01" },
  { $date: "2026-01-01T24:00:00.000Z" },
  { $date: 1.5 },
  { $date: null },
  { $date: "2026-01-31T09:30:00.000Z", x: 1 },
];

const KEYS = ["a", "b", "c", "0", "1"] as const;
const PATHS = ["a", "a", "b", "c", "a.b", "a.c", "b.a", "a.0", "a.1", "a.0.b", "a.1.0", "a.b.c", "0", "b.0.a"] as const;

function randomValue(random: Random, depth: number): Any {
  const roll = random.below(depth > 0 ? 12 : 8);
  if (roll < 7) return random.pick(SCALARS);
  if (roll === 7) return random.pick(FALSE_DATES);
  if (roll < 10) return Array.from({ length: random.below(4) }, () => randomValue(random, depth - 1));
  return randomObject(random, depth - 1);
}

function randomObject(random: Random, depth: number): Any {
  const object: Any = {};
  for (let n = random.below(3); n >= 0; n--) object[random.pick(KEYS)] = randomValue(random, depth);
  return object;
}

export function randomDocument(random: Random, id: string): Any {
  const doc: Any = { id };
  for (const key of ["a", "b", "c"]) if (random.below(5) > 0) doc[key] = randomValue(random, 3);
  return doc;
}

function randomOperand(random: Random): Any {
  for (;;) {
    const value = random.below(4) > 0 ? random.pick(SCALARS) : randomValue(random, 2);
    const text = JSON.stringify(value);
    // Literals with a `$` key are operators or malformed dates to a filter.
    if (!FALSE_DATES.some((fake) => text.includes(JSON.stringify(fake)))) return value;
  }
}

const TYPE_NAMES = ["null", "number", "int", "double", "string", "bool", "array", "object", "date"];

function randomOperator(random: Random, depth: number): Any {
  const list = () => Array.from({ length: random.below(4) }, () => randomOperand(random));
  switch (random.below(depth > 0 ? 19 : 16)) {
    case 0:
      return { $eq: randomOperand(random) };
    case 1:
      return { $ne: randomOperand(random) };
    case 2:
    case 3:
      return { $gt: randomOperand(random) };
    case 4:
      return { $gte: randomOperand(random) };
    case 5:
      return { $lt: randomOperand(random) };
    case 6:
      return { $gte: randomOperand(random), $lt: randomOperand(random) };
    case 7:
      return { $lte: randomOperand(random) };
    case 8:
      return { $in: list() };
    case 9:
      return { $nin: list() };
    case 10:
      return { $all: random.below(5) ? list() : [{ $elemMatch: { $gt: randomOperand(random) } }] };
    case 11:
      return { $exists: random.pick([true, false, 0, 1, null]) };
    case 12:
      return { $size: random.below(4) };
    case 13:
      return { $type: random.below(2) ? random.pick(TYPE_NAMES) : [random.pick(TYPE_NAMES), random.pick(TYPE_NAMES)] };
    case 14:
      return { $mod: [random.pick([1, 2, 3, -2]), random.pick([0, 1, -1])] };
    case 15:
      return {
        $regex: random.pick(["a", "^a", "^ab?", "^ab*", "^a|b", "^aa+", "b$", "^$", "^.$", "[0-9]"]),
        $options: random.pick(["", "i", "s", "m", "is"]),
      };
    case 16:
      return { $not: randomOperator(random, depth - 1) };
    case 17:
      return { $elemMatch: randomOperator(random, depth - 1) };
    default:
      return { $elemMatch: randomFilter(random, depth - 1) };
  }
}

/** A valid filter: raw JSON that `parseFilter` accepts. */
export function randomFilter(random: Random, depth = 2): Any {
  const filter: Any = {};
  for (let n = random.below(2); n >= 0; n--) {
    if (depth > 0 && random.below(4) === 0) {
      const parts = Array.from({ length: 1 + random.below(3) }, () => randomFilter(random, depth - 1));
      filter[random.pick(["$and", "$or", "$nor"])] = parts;
      continue;
    }
    const path = random.pick(PATHS);
    if (random.below(3) === 0) filter[path] = randomOperand(random);
    else filter[path] = { ...randomOperator(random, depth), ...(random.below(4) ? {} : randomOperator(random, depth)) };
  }
  return filter;
}
