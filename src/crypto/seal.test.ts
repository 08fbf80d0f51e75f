import { expect, test } from "bun:test";
import { createDecipheriv } from "node:crypto";
import { bytesToHex, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { deriveKey } from "./derive.ts";
import { deriveObjectKey, keyIdOf, open, SEAL_OVERHEAD_BYTES, seal } from "./seal.ts";

const key = randomBytes(32);
const aad = utf8ToBytes("header");

test("sealed bytes open to the same bytes, in memory of their own, at every size", () => {
  for (const size of [0, 1, 15, 16, 17, 300, 70_000]) {
    const plaintext = randomBytes(size);
    const sealed = seal(key, plaintext, aad);
    expect(sealed).toHaveLength(size + SEAL_OVERHEAD_BYTES);
    const opened = open(key, sealed, aad);
    expect(opened).toEqual(plaintext);
    expect(opened?.buffer.byteLength).toBeLessThanOrEqual(size + 16); // not a slice of a shared pool
  }
});

test("the form is nonce ‖ ciphertext ‖ tag of AES-256-GCM", () => {
  const plaintext = utf8ToBytes("attack at dawn");
  const sealed = seal(key, plaintext, aad);
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.slice(0, 12)).setAAD(aad).setAuthTag(sealed.slice(-16));
  expect(decipher.update(sealed.slice(12, -16), undefined, "utf8") + decipher.final("utf8")).toBe("attack at dawn");
});

test("a changed byte anywhere, a cut, another key or other additional data does not open", () => {
  const sealed = seal(key, randomBytes(40), aad);
  for (let i = 0; i < sealed.length; i++) {
    const changed = sealed.slice();
    changed[i]! ^= 0x80;
    expect(open(key, changed, aad)).toBeUndefined();
  }
  for (let length = 0; length < sealed.length; length++)
    expect(open(key, sealed.slice(0, length), aad)).toBeUndefined();
  expect(open(randomBytes(32), sealed, aad)).toBeUndefined();
  expect(open(key, sealed, utf8ToBytes("headeR"))).toBeUndefined();
  expect(open(key, sealed, new Uint8Array(0))).toBeUndefined();
});

test("nonces do not repeat", () => {
  const nonces = new Set<string>();
  for (let i = 0; i < 5000; i++) nonces.add(bytesToHex(seal(key, aad, aad).slice(0, 12)));
  expect(nonces.size).toBe(5000);
});

test("an object's key differs by read key, space, object and purpose, and is stable", () => {
  const readKey = new Uint8Array(32).fill(7);
  const keys = [
    deriveObjectKey(readKey, "s", "o", "change"),
    deriveObjectKey(new Uint8Array(32).fill(8), "s", "o", "change"),
    deriveObjectKey(readKey, "S", "o", "change"),
    deriveObjectKey(readKey, "s", "O", "change"),
    deriveObjectKey(readKey, "s", "o", "file"),
    deriveObjectKey(readKey, "so", "", "change"),
    deriveObjectKey(readKey, "", "so", "change"),
  ].map(bytesToHex);
  expect(new Set(keys).size).toBe(keys.length);
  expect(bytesToHex(deriveObjectKey(readKey, "s", "o", "change"))).toBe(keys[0]!);
});

test("derived keys do not meet when the boundary between parts moves", () => {
  const secret = new Uint8Array(32);
  const keys = [
    deriveKey(secret, "a", "b", "c"),
    deriveKey(secret, "a", "bc"),
    deriveKey(secret, "a", "bc", ""),
    deriveKey(secret, "a"),
    deriveKey(secret, "a", "b\0c"),
  ].map(bytesToHex);
  expect(new Set(keys).size).toBe(keys.length);
});

test("a key id is 16 bytes, stable, and another for another key", () => {
  expect(keyIdOf(key)).toHaveLength(16);
  expect(keyIdOf(key)).toEqual(keyIdOf(key.slice()));
  expect(keyIdOf(key)).not.toEqual(keyIdOf(randomBytes(32)));
});
