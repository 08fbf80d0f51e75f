import { expect, test } from "bun:test";
import { verify as verifyNative } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { sha256 } from "./hash.ts";
import { ed25519PrivateKey } from "./private-key.ts";
import { createSigner, type SignatureKind, verify } from "./sign.ts";

const bytes = utf8ToBytes("canonical bytes");

test("a signature is Ed25519 over the kind's tag and the hash, as another implementation makes it", () => {
  const seed = randomBytes(32);
  const signer = createSigner(seed);
  const message = concatBytes(utf8ToBytes("svc/change/v1\0"), sha256(bytes));
  expect(signer.publicKey).toEqual(ed25519.getPublicKey(seed));
  expect(signer.sign("change", bytes)).toEqual(ed25519.sign(message, seed));
  expect(verify(signer.publicKey, "change", bytes, signer.sign("change", bytes))).toBe(true);
});

test("a signature is worth nothing for another kind, other bytes or another key", () => {
  const signer = createSigner(randomBytes(32));
  const signature = signer.sign("change", bytes);
  const otherKinds: SignatureKind[] = ["acl", "space", "event", "inbox", "p2p-account", "wallet"];
  for (const kind of otherKinds) expect(verify(signer.publicKey, kind, bytes, signature)).toBe(false);
  expect(verify(signer.publicKey, "change", utf8ToBytes("canonical byteS"), signature)).toBe(false);
  expect(verify(createSigner(randomBytes(32)).publicKey, "change", bytes, signature)).toBe(false);
});

test("a changed, cut or lengthened signature and a malformed key are refused without throwing", () => {
  const signer = createSigner(randomBytes(32));
  const signature = signer.sign("acl", bytes);
  for (let bit = 0; bit < 512; bit += 7) {
    const changed = signature.slice();
    changed[bit >> 3]! ^= 1 << (bit & 7);
    expect(verify(signer.publicKey, "acl", bytes, changed)).toBe(false);
  }
  for (const wrong of [new Uint8Array(0), signature.slice(0, 63), concatBytes(signature, new Uint8Array(1))]) {
    expect(verify(signer.publicKey, "acl", bytes, wrong)).toBe(false);
  }
  for (const key of [new Uint8Array(0), new Uint8Array(31), new Uint8Array(33)]) {
    expect(verify(key, "acl", bytes, signature)).toBe(false);
  }
});

test("S + L is refused (RFC 8032 § 5.1.7 asks for S < L), so a signature has one form", () => {
  const signer = createSigner(randomBytes(32));
  const signature = signer.sign("event", bytes);
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  let s = BigInt(`0x${signature.slice(32).reverse().toHex()}`) + order;
  for (let i = 32; i < 64; i++, s >>= 8n) signature[i] = Number(s & 0xffn);
  expect(verify(signer.publicKey, "event", bytes, signature)).toBe(false);
});

test("a foreign protocol's raw signature does not verify as one of ours", () => {
  const seed = randomBytes(32);
  const raw = ed25519.sign(bytes, seed);
  const signer = createSigner(seed);
  expect(verify(signer.publicKey, "p2p-account", bytes, raw)).toBe(false);
  expect(verifyNative(null, bytes, ed25519PrivateKey(seed), raw)).toBe(true);
});

test("more keys than the cache holds are all verified", () => {
  const signers = Array.from({ length: 4200 }, () => createSigner(randomBytes(32)));
  const signature = signers[0]!.sign("change", bytes);
  for (const signer of signers.slice(1)) expect(verify(signer.publicKey, "change", bytes, signature)).toBe(false);
  expect(verify(signers[0]!.publicKey, "change", bytes, signature)).toBe(true);
});
