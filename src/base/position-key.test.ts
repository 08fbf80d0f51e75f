import { describe, expect, test } from "bun:test";
import { createRng, runSeed } from "../../test/support/rng.ts";
import { compareKeys, keyBetween, keysBetween, MAX_KEY_CHARS, planKeys } from "./position-key.ts";

const seed = runSeed("position keys");

describe("keys lie where they are asked for", () => {
  test("the first key has room on both sides", () => {
    const rng = createRng(seed);
    const first = keyBetween(undefined, undefined, rng.next)!;
    expect(compareKeys(keyBetween(undefined, first, rng.next)!, first)).toBeLessThan(0);
    expect(compareKeys(keyBetween(first, undefined, rng.next)!, first)).toBeGreaterThan(0);
  });

  test("random insertions into a growing list keep it sorted", () => {
    const rng = createRng(seed).fork("random");
    const keys: string[] = [];
    for (let i = 0; i < 5000; i++) {
      const at = rng.int(0, keys.length);
      const key = keyBetween(keys[at - 1], keys[at], rng.next);
      if (key === undefined) throw new Error(`no key between ${keys[at - 1]} and ${keys[at]}`);
      keys.splice(at, 0, key);
    }
    expect(keys).toEqual([...keys].sort(compareKeys));
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(24);
  });

  test("appending and prepending a hundred thousand times keeps keys short", () => {
    const rng = createRng(seed).fork("append");
    let last: string | undefined;
    let first: string | undefined;
    for (let i = 0; i < 100_000; i++) {
      const next = keyBetween(last, undefined, rng.next)!;
      if (last !== undefined && compareKeys(last, next) >= 0) throw new Error(`${next} is not after ${last}`);
      last = next;
      const previous = keyBetween(undefined, first, rng.next)!;
      if (first !== undefined && compareKeys(previous, first) >= 0)
        throw new Error(`${previous} is not before ${first}`);
      first = previous;
    }
    expect(last!.length).toBeLessThanOrEqual(10);
    expect(first!.length).toBeLessThanOrEqual(10);
  });

  test("typing on at one place makes over a thousand keys before neighbours must give way", () => {
    const rng = createRng(seed).fork("typing");
    let before = keyBetween(undefined, undefined, rng.next)!;
    const after = keyBetween(before, undefined, rng.next)!;
    let count = 0;
    for (; count < 100_000; count++) {
      const key = keyBetween(before, after, rng.next);
      if (key === undefined) break;
      before = key;
    }
    expect(count).toBeGreaterThan(1000);
    expect(count).toBeLessThan(100_000);
  });

  test("ten thousand keys at once between two neighbours are sorted and short", () => {
    const rng = createRng(seed).fork("batch");
    const keys = keysBetween("a0aaaa", "a0aaab", 10_000, rng.next)!;
    expect(keys.length).toBe(10_000);
    expect(keys).toEqual([...keys].sort(compareKeys));
    expect(new Set(keys).size).toBe(10_000);
    expect(keys.every((key) => key > "a0aaaa" && key < "a0aaab")).toBe(true);
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(30);
  });

  test("two replicas that insert at one place make different keys", () => {
    const one = createRng(1).fork("replica");
    const two = createRng(2).fork("replica");
    for (let i = 0; i < 2000; i++) {
      expect(keyBetween("a0aaaa", "a1aaaa", one.next)).not.toBe(keyBetween("a0aaaa", "a1aaaa", two.next));
      expect(keyBetween("a0aaaa", undefined, one.next)).not.toBe(keyBetween("a0aaaa", undefined, two.next));
    }
  });
});

describe("foreign keys are taken as they come", () => {
  const FOREIGN = [
    "",
    "0",
    "00",
    "5",
    "U",
    "Z",
    "a",
    "a0",
    "m",
    "m0|hzz",
    "0|hzzzzz:",
    "zzzz",
    "z",
    "~",
    "~~5",
    "é",
    "💡",
    "\u0000",
    " ",
    "a!",
    "b-",
    "zz~",
  ];

  test("a key after any string, and after that one again, many times, stays short", () => {
    const rng = createRng(seed).fork("foreign");
    for (const start of FOREIGN) {
      let last = start;
      for (let i = 0; i < 300; i++) {
        const next = keyBetween(last, undefined, rng.next);
        if (next === undefined)
          throw new Error(`nothing after ${JSON.stringify(last)} (from ${JSON.stringify(start)})`);
        expect(compareKeys(last, next)).toBeLessThan(0);
        last = next;
      }
      expect(last.length).toBeLessThan(start.length + 34);
    }
  });

  test("between any two strings a key lies between them or none is given", () => {
    const rng = createRng(seed).fork("pairs");
    const chars = [..."0159AZaz_-~|é💡\u0000 "];
    const random = () => Array.from({ length: rng.int(0, 5) }, () => rng.pick(chars)).join("");
    let given = 0;
    for (let i = 0; i < 20_000; i++) {
      const [low, high] = [random(), random()];
      const key = keyBetween(low, high, rng.next);
      if (compareKeys(low, high) >= 0) expect(key).toBeUndefined();
      else if (key !== undefined) {
        given++;
        if (!(compareKeys(low, key) < 0 && compareKeys(key, high) < 0))
          throw new Error(JSON.stringify([low, key, high]));
      }
    }
    expect(given).toBeGreaterThan(5000);
  });

  test("comparison is that of UTF-8 bytes", () => {
    const rng = createRng(seed).fork("bytes");
    const chars = [..."aZ0~é\uFFFD\uE000💡𝒳\uD7FF"];
    for (let i = 0; i < 5000; i++) {
      const [a, b] = [0, 0].map(() => Array.from({ length: rng.int(0, 4) }, () => rng.pick(chars)).join(""));
      expect(Math.sign(compareKeys(a!, b!))).toBe(Buffer.compare(Buffer.from(a!), Buffer.from(b!)));
    }
  });

  test("a megabyte of a key neither throws nor stalls", () => {
    const rng = createRng(seed).fork("long");
    const long = "0".repeat(1 << 20);
    expect(keyBetween(long, `${long}1`, rng.next)).toBeUndefined();
    expect(keyBetween(long, undefined, rng.next)!.length).toBeLessThanOrEqual(MAX_KEY_CHARS);
  });
});

describe("neighbours give way only when they must", () => {
  const apply = (existing: string[], index: number, plan: ReturnType<typeof planKeys>) => {
    const keys = existing.map((key, i) => plan.moved.get(i) ?? key);
    keys.splice(index, 0, ...plan.keys);
    return keys;
  };
  const strictlySorted = (keys: string[]) => keys.every((key, i) => i === 0 || compareKeys(keys[i - 1]!, key) < 0);

  test("with room nothing moves", () => {
    const rng = createRng(seed).fork("room");
    const plan = planKeys(["a0xxxx", "a1xxxx"], 1, 3, rng.next);
    expect(plan.moved.size).toBe(0);
    expect(strictlySorted(apply(["a0xxxx", "a1xxxx"], 1, plan))).toBe(true);
  });

  test("equal and full neighbours are re-keyed, the rest stays", () => {
    const rng = createRng(seed).fork("equal");
    for (const existing of [
      ["m", "m"],
      ["a", "a0"],
      ["", ""],
      ["0", "0", "0", "0"],
      ["a0xxxx", "b", "b", "b00xxxx", "c00", "d"],
    ]) {
      for (let index = 0; index <= existing.length; index++) {
        for (const count of [1, 7]) {
          const plan = planKeys(existing, index, count, rng.next);
          const at = apply(existing, index, plan);
          const around = at.slice(Math.max(0, index - 1), index + count + 1);
          expect(plan.keys.length).toBe(count);
          expect(strictlySorted(around)).toBe(true);
        }
      }
    }
    const plan = planKeys(["a0xxxx", "b", "b", "z"], 2, 1, rng.next);
    expect([...plan.moved.keys()]).toEqual([1, 2]);
  });

  test("nothing asked, nothing planned", () => {
    expect(planKeys(["a", "a"], 1, 0, Math.random)).toEqual({ keys: [], moved: new Map() });
  });
});

describe("a run stays together", () => {
  test("two replicas insert runs at one place: merged, each is whole and in its order", () => {
    const rng = createRng(seed).fork("runs");
    for (let round = 0; round < 300; round++) {
      let list = keysBetween(undefined, undefined, rng.int(0, 5), rng.next)!;
      for (let step = 0; step < 6; step++) {
        const at = rng.int(0, list.length);
        const runs = [0, 1].map(() => keysBetween(list[at - 1], list[at], rng.int(1, 150), rng.next)!);
        const merged = [...list, ...runs.flat()].sort(compareKeys);
        for (const run of runs) {
          const first = merged.indexOf(run[0]!);
          expect(merged.slice(first, first + run.length)).toEqual(run);
        }
        list = merged;
      }
      expect(Math.max(0, ...list.map((key) => key.length))).toBeLessThan(60);
    }
  });

  test("thousands of runs, each after the one before, keep keys short", () => {
    const rng = createRng(seed).fork("many runs");
    let last: string | undefined;
    for (let i = 0; i < 5000; i++) {
      const run: string[] = keysBetween(last, undefined, 10, rng.next)!;
      if (last !== undefined && compareKeys(last, run[0]!) >= 0) throw new Error(`${run[0]} is not after ${last}`);
      last = run.at(-1)!;
    }
    expect(last!.length).toBeLessThanOrEqual(12);
  });
});
