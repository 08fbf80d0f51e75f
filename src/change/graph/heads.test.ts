import { expect, test } from "bun:test";
import fc from "fast-check";
import { compareBytes, equalBytes } from "../../base/bytes.ts";
import { type HeadRef, headsAfter, headsChanged } from "./heads.ts";

const head = (no: number): HeadRef => ({
  no,
  id: Uint8Array.of((no * 7919) & 255, no >> 8, no & 255),
  lamport: no,
  aclPos: 0,
});
const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 500 }), { maxLength: 40 });
const sorted = (heads: readonly HeadRef[]) => [...heads].sort((a, b) => compareBytes(a.id, b.id));

test("a change takes its parents' place, in order", () => {
  fc.assert(
    fc.property(numbers, numbers, (before, parents) => {
      const heads = sorted(before.map(head));
      const ids = parents.map((no) => head(no).id);
      const next = head(1000);
      const kept = heads.filter(({ id }) => !ids.some((parent) => equalBytes(parent, id)));
      expect(headsAfter(heads, ids, next)).toEqual(sorted([...kept, next]));
    }),
  );
});

test("what moved is what is stored against what is", () => {
  fc.assert(
    fc.property(numbers, numbers, (before, after) => {
      const { added, dropped } = headsChanged(sorted(before.map(head)), sorted(after.map(head)));
      expect(new Set(added)).toEqual(new Set(after).difference(new Set(before)));
      expect(new Set(dropped)).toEqual(new Set(before).difference(new Set(after)));
    }),
  );
});
