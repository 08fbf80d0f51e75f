import { expect, test } from "bun:test";
import * as reference from "@ipld/dag-cbor";
import fc from "fast-check";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { type CborValue, decodeCbor, encodeCbor, encodeOrderedMap, Link } from "./dag-cbor.ts";

const value = fc.letrec<{ value: CborValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.string({ unit: "grapheme" }),
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ minLength: 32, maxLength: 32 }).map((digest) => new Link(digest)),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(fc.stringMatching(/^[a-zA-Z]{1,9}$/), tie("value"), { maxKeys: 6 }),
  ),
})).value;

/** The same value as the reference implementation takes it. */
function toReference(input: CborValue): unknown {
  if (input instanceof Link) return CID.createV1(0x71, create(0x12, input.digest));
  if (input instanceof Uint8Array || input === null || typeof input !== "object") return input;
  if (Array.isArray(input)) return input.map(toReference);
  return Object.fromEntries(Object.entries(input).map(([key, item]) => [key, toReference(item)]));
}

test("[CHANGE-1] the bytes are those of the reference implementation, and read back as the value", () => {
  fc.assert(
    fc.property(value, (input) => {
      const bytes = encodeCbor(input);
      expect(Buffer.from(bytes).toString("hex")).toBe(
        Buffer.from(reference.encode(toReference(input))).toString("hex"),
      );
      expect(Buffer.from(encodeCbor(decodeCbor(bytes))).equals(Buffer.from(bytes))).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("[CHANGE-1] a map of ordered keys is the map's canonical encoding", () => {
  const map = { v: 1, acl: null, seq: 2, kind: "root", lamport: 9, parents: [] };
  const keys = ["v", "acl", "seq", "kind", "lamport", "parents"];
  expect(encodeOrderedMap(keys, [1, null, 2, "root", 9, []])).toEqual(encodeCbor(map));
});

test("[CHANGE-1] whatever is accepted re-encodes to the very bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      let read: CborValue;
      try {
        read = decodeCbor(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        return;
      }
      expect(Buffer.from(encodeCbor(read)).equals(Buffer.from(bytes))).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

test("texts around the length that is written a character at a time are those of the reference", () => {
  for (let length = 20; length < 40; length++)
    for (const last of ["", "z", "\u007f", "\u0080", "ß", "€", "😀"]) {
      const input = { ["k".repeat(length)]: "x".repeat(length) + last, after: [last, true] };
      const bytes = encodeCbor(input);
      expect(Buffer.from(bytes).toString("hex")).toBe(Buffer.from(reference.encode(input)).toString("hex"));
      expect(decodeCbor(bytes)).toEqual(input);
    }
});

test("what was read before makes no difference: a long value, a refused one, a short one", () => {
  const long = encodeCbor([new Uint8Array(200_000).fill(7), "text"]);
  const short = encodeCbor(["a", 1]);
  for (let turn = 0; turn < 3; turn++) {
    expect(decodeCbor(long)).toEqual([Buffer.alloc(200_000, 7), "text"]);
    expect(() => decodeCbor(Buffer.from("a2616201616101", "hex"))).toThrow(RangeError);
    expect(decodeCbor(short)).toEqual(["a", 1]);
    expect(() => decodeCbor(Buffer.concat([short, short]))).toThrow(RangeError);
  }
});

test.each([
  ["an integer that is longer than need be", "1801"],
  ["keys out of order", "a2616201616101"],
  ["a key twice", "a2616101616102"],
  ["a float", "fb3ff0000000000000"],
  ["undefined", "f7"],
  ["indefinite length", "9f01ff"],
  ["another tag", "c101"],
  ["a link of another hash", "d82a582500017112200000"],
  ["trailing bytes", "0101"],
  ["text that is no UTF-8", "61ff"],
  ["an array longer than the bytes", "9a7fffffff"],
])("[CHANGE-1] refused: %s", (_name, hex) => {
  expect(() => decodeCbor(Buffer.from(hex, "hex"))).toThrow(RangeError);
});
