import { expect, test } from "bun:test";
import fc from "fast-check";
import { createSigner } from "../../crypto/sign.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import { type ChangeHeader, decodeChange, encodeChange, encodeDerivedRoot, encodeHeader } from "./change-codec.ts";
import { sealedPartsOf } from "./stored-change.ts";

const signer = createSigner(new Uint8Array(32).fill(3));
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const header: fc.Arbitrary<ChangeHeader> = fc.record({
  kind: fc.constant("change" as const),
  space: bytes(32),
  object: bytes(32),
  parents: fc
    .uniqueArray(bytes(32), { minLength: 1, maxLength: 64, selector: (id) => Buffer.from(id).toString("hex") })
    .map((ids) => ids.sort(Buffer.compare)),
  lamport: fc.integer({ min: 1, max: 2 ** 52 }),
  writer: bytes(16),
  seq: fc.integer({ min: 2, max: 2 ** 40 }),
  prev: bytes(32),
  author: bytes(32),
  time: fc.integer({ min: 0, max: Date.parse("9999-12-31T23:59:59.999Z") }),
  acl: bytes(32),
  keyId: bytes(16),
});

test("the parts are those that decoding finds", () => {
  fc.assert(
    fc.property(header, fc.uint8Array({ maxLength: 70_000, size: "max" }), (fields, sealed) => {
      const headerBytes = encodeHeader(fields);
      const encoded = encodeChange(headerBytes, sealed, signer).bytes;
      const parts = sealedPartsOf(encoded)!;
      expect(Buffer.from(parts.sealed).equals(sealed)).toBe(true);
      expect(Buffer.from(parts.headerBytes).equals(headerBytes)).toBe(true);
      expect(Buffer.from(parts.keyId).equals(fields.keyId)).toBe(true);
      const decoded = decodeChange(encoded) as { headerBytes: Uint8Array; sealed: Uint8Array };
      expect(Buffer.from(parts.headerBytes).equals(decoded.headerBytes)).toBe(true);
      expect(Buffer.from(parts.sealed).equals(decoded.sealed)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("what has no body is refused", () => {
  const root = encodeDerivedRoot({ space: new Uint8Array(32), type: "t", derivation: "" });
  expect(() => sealedPartsOf(root.bytes)).toThrow(StoredFileError);
  expect(() => sealedPartsOf(new Uint8Array(0))).toThrow(StoredFileError);
  expect(() => sealedPartsOf(Uint8Array.of(0xa3, 0x61, 0x62))).toThrow(StoredFileError);
});

test("[STORE-3] noise within the bytes of a change is told as damage, or is found by the seal", () => {
  const headerBytes = encodeHeader(fc.sample(header, 1)[0]!);
  fc.assert(
    fc.property(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 512 }), (at, noise) => {
      const bytes = Buffer.from(encodeChange(headerBytes, new Uint8Array(300), signer).bytes);
      bytes.set(noise.subarray(0, bytes.length - (at % bytes.length)), at % bytes.length);
      try {
        sealedPartsOf(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(StoredFileError);
      }
    }),
    { numRuns: 3_000 },
  );
});
