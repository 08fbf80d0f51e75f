import { expect, test } from "bun:test";
import fc from "fast-check";
import { entriesOf, type KeyedState, lastKeyOf, partIndexOf, stateIn, statesIn } from "../port/version-vector.ts";
import { mergedParts, partsOf } from "./vector-parts.ts";

/** Keys of one author; ends of parts are as rare as they are, or do not occur, or are everywhere. */
const keys = fc.constantFrom("0123456789abcdef", "123456789abcdef", "0").chain((ends) =>
  fc.uniqueArray(
    fc
      .tuple(fc.integer({ min: 0, max: 0xffffff }), fc.constantFrom(...ends))
      .map(([number, end]) => `${"a".repeat(64)}${number.toString(16).padStart(31, "0")}${end}`),
    { maxLength: 600, size: "max" },
  ),
);

const stateOf = (key: string, seq: number): KeyedState => ({
  key,
  author: Uint8Array.fromHex(key.slice(0, 64)),
  writer: Uint8Array.fromHex(key.slice(64)),
  seq,
  count: seq,
  last: new Uint8Array(32).fill(seq),
  forks: new Uint8Array(0),
});

const shape = (parts: ReturnType<typeof partsOf>) =>
  parts.map(({ hash, changes, states }) => [hash.toHex(), changes, states.map(({ key, seq }) => [key, seq])]);

test("parts with entries put in are what they are when all entries are cut anew, and finding goes through them as through a list", () => {
  fc.assert(
    fc.property(fc.array(keys, { minLength: 1, maxLength: 4 }), (rounds) => {
      const all = new Map<string, KeyedState>();
      let parts = partsOf<KeyedState>([]);
      for (const [round, some] of rounds.entries()) {
        const fresh = some.toSorted().map((key) => stateOf(key, round + 1));
        for (const state of fresh) all.set(state.key, state);
        parts = mergedParts(parts, fresh);
        const flat = [...all.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
        expect(statesIn(parts)).toEqual(flat);
        expect(shape(parts)).toEqual(shape(partsOf(flat)));
      }
      const isFound = (entryOf: (key: string) => KeyedState | undefined) => (key: string) =>
        entryOf(key) === all.get(key);
      const asked = rounds.flat();
      expect(asked.toSorted().every(isFound(entriesOf(parts)))).toBe(true);
      expect(asked.every(isFound(entriesOf(parts)))).toBe(true);
      expect(asked.every(isFound((key) => stateIn(parts, key)))).toBe(true);
      const indexOf = (key: string) => parts.findIndex((part) => key <= lastKeyOf(part));
      expect(asked.every((key) => partIndexOf(parts, key) === indexOf(key))).toBe(true);
    }),
    { numRuns: 40 },
  );
}, 60_000);

test("a part that nothing was put into stays the very same", () => {
  const states = Array.from({ length: 5_000 }, (_, n) =>
    stateOf(`${"b".repeat(64)}${Bun.hash(`${n}`).toString(16).padStart(32, "0")}`, 1),
  );
  const before = partsOf(states.sort((a, b) => (a.key < b.key ? -1 : 1)));
  const one = states[2_500]!;
  const after = mergedParts(before, [stateOf(one.key, 2)]);
  expect(after.filter((part) => !before.includes(part))).toHaveLength(1);
});
