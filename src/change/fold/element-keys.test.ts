import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Json } from "../../protocol/json.ts";
import { createElementKeys } from "./element-keys.ts";

test("[DATA-5] $addToSet and $pull by key do what comparing with every element does", () => {
  const leaf = fc.oneof(fc.constantFrom(null, true, false, "", "1", "a", "\ud800"), fc.integer({ min: -2, max: 2 }));
  const value = fc.oneof(leaf, fc.jsonValue({ maxDepth: 2 }), fc.array(leaf, { maxLength: 2 }));
  const step = fc.record({ add: fc.boolean(), value });
  fc.assert(
    fc.property(fc.array(value, { maxLength: 6 }), fc.array(step, { maxLength: 12 }), (start, steps) => {
      const items = [...start] as Json[];
      const keys = createElementKeys(items);
      let expected = [...start] as Json[];
      for (const each of steps) {
        const given = each.value as Json;
        const same = (item: Json) => Bun.deepEquals(item, given, true);
        if (each.add) {
          keys.add(given);
          if (!expected.some(same)) expected.push(given);
        } else {
          keys.remove(given);
          expected = expected.filter((item) => !same(item));
        }
        expect(items).toEqual(expected);
      }
    }),
    { numRuns: 500 },
  );
});

test("[DATA-5] the order of an object's keys does not tell elements apart, their kind does", () => {
  const items: Json[] = [{ a: 1, b: [2] }];
  const keys = createElementKeys(items);
  for (const value of [{ b: [2], a: 1 }, "1", 1, [1], { "0": 1 }, "null", null]) keys.add(value);
  expect(items).toEqual([{ a: 1, b: [2] }, "1", 1, [1], { "0": 1 }, "null", null]);
});
