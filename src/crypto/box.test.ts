import { expect, test } from "bun:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { BOX_OVERHEAD_BYTES, openWith, sealTo, sharedSecret } from "./box.ts";
import { publicKeyOfSeed } from "./private-key.ts";
import { edwardsToMontgomery } from "./x25519.ts";

const seed = randomBytes(32);
const publicKey = publicKeyOfSeed(seed);
const secret = utf8ToBytes("the read key of epoch 3");

test("a box opens for its recipient in its context", () => {
  const box = sealTo(publicKey, secret, "acl/space-1");
  expect(box).toHaveLength(secret.length + BOX_OVERHEAD_BYTES);
  expect(openWith(seed, box, "acl/space-1")).toEqual(secret);
});

test("two boxes of one secret have nothing in common", () => {
  const a = sealTo(publicKey, secret, "c");
  const b = sealTo(publicKey, secret, "c");
  expect(a.slice(0, 32)).not.toEqual(b.slice(0, 32));
  expect(a.slice(44)).not.toEqual(b.slice(44));
});

test("a box opens for nobody else, in no other context, and not when changed or cut", () => {
  const box = sealTo(publicKey, secret, "c");
  expect(openWith(randomBytes(32), box, "c")).toBeUndefined();
  expect(openWith(seed, box, "d")).toBeUndefined();
  for (let i = 0; i < box.length; i++) {
    if (i === 31) continue; // X25519 ignores the top bit; the next test covers this byte
    const changed = box.slice();
    changed[i]! ^= 1;
    expect(openWith(seed, changed, "c")).toBeUndefined();
  }
  for (const length of [0, 31, 32, 59, box.length - 1])
    expect(openWith(seed, box.slice(0, length), "c")).toBeUndefined();
});

test("a box whose ephemeral key is respelt or of small order does not open", () => {
  const box = sealTo(publicKey, secret, "c");
  const respelt = box.slice();
  respelt[31]! ^= 0x80; // the same point to X25519, another key to HKDF
  expect(openWith(seed, respelt, "c")).toBeUndefined();
  expect(openWith(seed, concatBytes(new Uint8Array(32), box.slice(32)), "c")).toBeUndefined();
});

test("sealing to a small-order or non-canonical key throws", () => {
  for (const key of [new Uint8Array(32), new Uint8Array(32).fill(0xff), new Uint8Array(31)]) {
    expect(() => sealTo(key, secret, "c")).toThrow(RangeError);
    expect(() => sharedSecret(seed, key)).toThrow(RangeError);
  }
});

test("two keys share one secret from both sides, and no other pair has it", () => {
  const [a, b, c] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const ab = sharedSecret(a, publicKeyOfSeed(b));
  expect(ab).toHaveLength(32);
  expect(sharedSecret(b, publicKeyOfSeed(a))).toEqual(ab);
  expect(sharedSecret(a, publicKeyOfSeed(c))).not.toEqual(ab);
  expect(sharedSecret(a, publicKeyOfSeed(a))).toEqual(sharedSecret(a, publicKeyOfSeed(a)));
});

test("a key in a Buffer is left as it is", () => {
  const key = Buffer.from(publicKey);
  sealTo(key, secret, "c");
  expect(key.equals(publicKey)).toBe(true);
});

test("the Montgomery form of a key is the one another implementation computes", () => {
  for (let i = 0; i < 100; i++) {
    const key = publicKeyOfSeed(randomBytes(32));
    expect(edwardsToMontgomery(key)).toEqual(ed25519.utils.toMontgomery(key));
  }
});
