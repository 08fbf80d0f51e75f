import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { concatBytes, hexToBytes } from "../base/bytes.ts";

export const SEED_BYTES = 32;
/** RFC 8410 § 7: the PKCS #8 encoding up to the 32 bytes of the seed. */
const ED25519_PKCS8_PREFIX = hexToBytes("302e020100300506032b657004220420")!;

/**
 * The native Ed25519 key of a 32-byte seed (RFC 8032 § 5.1.5), for protocols that are not ours (TLS, nkeys). Our own
 * signatures go through `createSigner`.
 */
export function ed25519PrivateKey(seed: Uint8Array): KeyObject {
  if (seed.length !== SEED_BYTES) throw new RangeError(`a seed has 32 bytes, got ${seed.length}`);
  return createPrivateKey({ key: Buffer.from(concatBytes(ED25519_PKCS8_PREFIX, seed)), format: "der", type: "pkcs8" });
}

/** The 32-byte Ed25519 public key of a 32-byte seed. */
export function publicKeyOfSeed(seed: Uint8Array): Uint8Array {
  return publicKeyOfPrivateKey(ed25519PrivateKey(seed));
}

/** The 32 bytes at the end of a key's SubjectPublicKeyInfo. */
export function publicKeyOfPrivateKey(key: KeyObject): Uint8Array {
  return new Uint8Array(createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32));
}
