import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type CborValue, encodeCbor, Link } from "../base/dag-cbor.ts";
import { sha256 } from "./hash.ts";
import { createSigner } from "./sign.ts";
import {
  encodeUnsigned,
  headerIn,
  isSignedBy,
  readEnvelope,
  signEnvelope,
  signEnvelopeWithBody,
} from "./signed-envelope.ts";

const signer = createSigner(new Uint8Array(32).fill(7));
const HEADER = { v: 1, kind: "test", author: signer.publicKey, of: new Link(new Uint8Array(32).fill(3)) };
const headerBytes = new Uint8Array(encodeCbor(HEADER));
/** Lengths around the points where the head of a byte string grows by a byte. */
const LENGTHS = [0, 1, 23, 24, 255, 256, 65_535, 65_536];

describe("what is signed is read back", () => {
  test("without a body", () => {
    const bytes = signEnvelope("acl", headerBytes, signer);
    expect(bytes).toEqual(new Uint8Array(encodeCbor({ h: HEADER, s: signer.sign("acl", encodeCbor({ h: HEADER })) })));
    const read = readEnvelope(bytes);
    expect(new Uint8Array(read.headerBytes)).toEqual(headerBytes);
    expect([read.body, read.bodyHash]).toEqual([undefined, undefined]);
    expect(isSignedBy(signer.publicKey, "acl", read)).toBe(true);
  });

  test.each(LENGTHS)("with a body of %i bytes, and by its stub", (length) => {
    const body = new Uint8Array(length).fill(9);
    const { bytes, stub } = signEnvelopeWithBody("change", headerBytes, body, signer);
    const c = sha256(body);
    const s = signer.sign("change", encodeCbor({ c, h: HEADER }));
    expect(bytes).toEqual(new Uint8Array(encodeCbor({ b: body, h: HEADER, s })));
    expect(stub).toEqual(new Uint8Array(encodeCbor({ c, h: HEADER, s })));
    for (const form of [bytes, stub]) {
      const read = readEnvelope(form);
      expect(new Uint8Array(read.headerBytes)).toEqual(headerBytes);
      expect(Buffer.compare(read.bodyHash!, c)).toBe(0);
      expect(isSignedBy(signer.publicKey, "change", read)).toBe(true);
      expect(isSignedBy(signer.publicKey, "acl", read)).toBe(false);
      expect(isSignedBy(createSigner(new Uint8Array(32).fill(8)).publicKey, "change", read)).toBe(false);
    }
  });

  test("one that nobody signs bears nobody's signature", () => {
    const read = readEnvelope(encodeUnsigned(headerBytes));
    expect(new Uint8Array(read.headerBytes)).toEqual(headerBytes);
    expect(isSignedBy(signer.publicKey, "space", read)).toBe(false);
  });
});

describe("what is none is a RangeError", () => {
  const s = new Uint8Array(64);
  const c = new Uint8Array(32);
  const NOT: [string, CborValue][] = [
    ["null", null],
    ["a list", [1]],
    ["a link", new Link(c)],
    ["no header", { s }],
    ["a header that is no map", { h: [1], s }],
    ["another field", { h: HEADER, s, x: 1 }],
    ["a body and its hash", { b: c, c, h: HEADER, s }],
    ["a body that is a text", { b: "body", h: HEADER, s }],
    ["a short hash", { c: c.subarray(1), h: HEADER, s }],
    ["a short signature", { h: HEADER, s: s.subarray(1) }],
    ["a signature that is a number", { h: HEADER, s: 1 }],
  ];
  test.each(NOT)("%s", (_name, value) => {
    expect(() => readEnvelope(encodeCbor(value))).toThrow(RangeError);
  });

  test("bytes that are not canonical", () => {
    const bytes = signEnvelope("acl", headerBytes, signer);
    expect(() => readEnvelope(Buffer.concat([bytes, Uint8Array.of(0)]))).toThrow(RangeError);
    expect(() => readEnvelope(bytes.subarray(1))).toThrow(RangeError);
  });

  test("any bytes, and an envelope with one byte turned, are read or refused, and never bear the signature", () => {
    const bytes = signEnvelope("acl", headerBytes, signer);
    const isTaken = (given: Uint8Array): boolean => {
      try {
        return isSignedBy(signer.publicKey, "acl", readEnvelope(given));
      } catch (error) {
        if (error instanceof RangeError) return false;
        throw error;
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (given) => expect(isTaken(given)).toBe(false)));
    for (let at = 0; at < bytes.length; at++) {
      const turned = bytes.slice();
      turned[at]! ^= 1;
      expect(isTaken(turned)).toBe(false);
    }
  });

  test("a later format may hold more: its header is read all the same", () => {
    expect(headerIn({ h: { v: 2 }, x: 1 })["v"]).toBe(2);
  });
});
