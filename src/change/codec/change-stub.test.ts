import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { concatBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import { createSigner } from "../../crypto/sign.ts";
import {
  type Change,
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeDerivedRoot,
  encodeHeader,
  isSignedByAuthor,
} from "./change-codec.ts";
import { changeIdOf, isStub, stubOf } from "./change-stub.ts";

const signer = createSigner(new Uint8Array(32).fill(5));
const digest = (fill: number) => new Uint8Array(32).fill(fill);
const header: ChangeHeader = {
  kind: "change",
  space: digest(1),
  object: digest(2),
  parents: [digest(3)],
  lamport: 7,
  writer: new Uint8Array(16).fill(4),
  seq: 2,
  prev: digest(3),
  author: signer.publicKey,
  time: 1_800_000_000_000,
  acl: digest(6),
  keyId: new Uint8Array(16).fill(7),
};
const make = (sealed: Uint8Array) => encodeChange(encodeHeader(header), sealed, signer);

describe("stubs", () => {
  test("[CHANGE-1] a change and its stub have one id and one signature, whatever the size of the body", () => {
    const sizes = fc.oneof(fc.nat(300), fc.constantFrom(0, 23, 24, 255, 256, 65_535, 65_536, 300_000));
    fc.assert(
      fc.property(sizes, fc.nat(255), (size, fill) => {
        const { bytes, id } = make(new Uint8Array(size).fill(fill));
        const stub = stubOf(bytes);
        expect([isStub(bytes), isStub(stub)]).toEqual([false, true]);
        expect(stubOf(stub)).toEqual(stub);
        expect(sha256(stub)).toEqual(id);
        expect(changeIdOf(bytes)).toEqual(id);
        const [whole, bare] = [decodeChange(bytes) as Change, decodeChange(stub) as Change];
        expect([whole.id, bare.id]).toEqual([id, id]);
        expect(bare).toEqual({ ...whole, sealed: undefined });
        expect(isSignedByAuthor(bare)).toBe(true);
        expect(stub.length).toBeLessThan(500);
      }),
      { numRuns: 60 },
    );
  });

  test("[CHANGE-1] another body is another change", () => {
    const one = make(new Uint8Array(40).fill(1));
    const swapped = concatBytes(one.bytes);
    swapped[20]! ^= 1; // within the body
    expect(changeIdOf(swapped)).not.toEqual(one.id);
    const read = decodeChange(swapped) as Change;
    expect(isSignedByAuthor(read)).toBe(false);
  });

  test("[CHANGE-1] what is not canonical has its own id, never that of the change it resembles", () => {
    const { bytes, id } = make(new Uint8Array(40).fill(1));
    // The body's length in two bytes where one does.
    const padded = concatBytes(bytes.subarray(0, 3), Uint8Array.of(0x59, 0, 40), bytes.subarray(5));
    expect(bytes.subarray(3, 5)).toEqual(Uint8Array.of(0x58, 40));
    expect(() => decodeChange(padded)).toThrow();
    expect(changeIdOf(padded)).not.toEqual(id);
    for (const length of [0, 1, 3, 4, 10, bytes.length - 1])
      expect(changeIdOf(bytes.subarray(0, length))).not.toEqual(id);
  });

  test("[CHANGE-1] what has no body is its own stub", () => {
    const root = encodeChange(encodeHeader({ ...header, kind: "root", object: null, parents: [] }), undefined, signer);
    const derived = encodeDerivedRoot({ space: digest(1), type: "t", derivation: "" });
    for (const { bytes, id } of [root, derived]) {
      expect(stubOf(bytes)).toEqual(bytes);
      expect(isStub(bytes)).toBe(false);
      expect(changeIdOf(bytes)).toEqual(id);
    }
  });

  test("[CHANGE-1] body and hash together, or a root with either, are no change", () => {
    const { bytes } = make(new Uint8Array(4));
    const both = concatBytes(Uint8Array.of(0xa4), bytes.subarray(1, 8), stubOf(bytes).subarray(1));
    expect(() => decodeChange(both)).toThrow();
    const root = encodeHeader({ ...header, kind: "root", object: null, parents: [] });
    expect(() => decodeChange(encodeChange(root, new Uint8Array(4), signer).bytes)).toThrow();
    expect(() => decodeChange(stubOf(encodeChange(root, new Uint8Array(4), signer).bytes))).toThrow();
  });
});
