import { expect, test } from "bun:test";
import fc from "fast-check";
import { compareOrder } from "../graph/order.ts";
import { autoRecordId, parseVersion, versionOf, writerName } from "./version.ts";

const digest = fc.uint8Array({ minLength: 32, maxLength: 32 });
const lamport = fc.oneof(
  fc.integer({ min: 1, max: 2000 }),
  fc.maxSafeInteger().map((n) => Math.abs(n) + 1),
);

test("[DATA-8] texts compare bytewise as (lamport, id) do", () => {
  fc.assert(
    fc.property(lamport, digest, lamport, digest, (lamportA, a, lamportB, b) => {
      const one = versionOf(lamportA, a);
      const other = versionOf(lamportB, b);
      const byText = one < other ? -1 : one > other ? 1 : 0;
      const byOrder = Math.sign(compareOrder({ lamport: lamportA, change: a }, { lamport: lamportB, change: b }));
      // Ids that share their first six bytes tie in the text, which is only shown.
      if (byText !== 0) expect(byText).toBe(byOrder);
      else expect(lamportA).toBe(lamportB);
    }),
    { numRuns: 2000 },
  );
});

test("a text reads back as its lamport and the beginning of its id", () => {
  fc.assert(
    fc.property(lamport, digest, (at, id) => {
      const read = parseVersion(versionOf(at, id));
      expect(read?.lamport).toBe(at);
      expect(Buffer.from(read!.idPrefix).equals(Buffer.from(id.subarray(0, 6)))).toBe(true);
    }),
  );
});

test.each(["", "1", "0a000000000000", "2a000000000000", "1a00000000000g", "zz", "bafyrei"])(
  "%p is no version text",
  (text) => {
    expect(parseVersion(text)).toBeUndefined();
  },
);

test("[DATA-4] an auto id is short, and further records of a change are numbered", () => {
  const id = new Uint8Array(32).fill(7);
  expect(autoRecordId(id, 0)).toMatch(/^[1-9A-HJ-NP-Za-km-z]{1,11}$/);
  expect(autoRecordId(id, 2)).toBe(`${autoRecordId(id, 0)}/2`);
});

test("a writer's name holds its author: the same bytes under another author are another writer", () => {
  const writer = new Uint8Array(16).fill(1);
  const [a, b] = [new Uint8Array(32).fill(2), new Uint8Array(32).fill(3)];
  expect(writerName(a, writer)).not.toBe(writerName(b, writer));
  expect(writerName(a, writer)).toBe(writerName(a, writer));
});
