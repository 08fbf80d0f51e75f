import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes, hexToBytes } from "../base/bytes.ts";

/** RFC 8410 §§ 4 and 7: the encodings of X25519 keys up to their 32 bytes. */
const SPKI_PREFIX = hexToBytes("302a300506032b656e032100")!;
const PKCS8_PREFIX = hexToBytes("302e020100300506032b656e04220420")!;

export function x25519PublicKey(bytes: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(concatBytes(SPKI_PREFIX, bytes)), format: "der", type: "spki" });
}

/** The X25519 key that belongs to an Ed25519 seed: the scalar of RFC 8032 § 5.1.5 steps 1 and 2 (X25519 clamps it). */
export function x25519PrivateKeyOfSeed(seed: Uint8Array): KeyObject {
  const scalar = ed25519.utils.toMontgomerySecret(seed);
  return createPrivateKey({ key: Buffer.from(concatBytes(PKCS8_PREFIX, scalar)), format: "der", type: "pkcs8" });
}

/** Most cached keys: the members of large spaces are sealed to again and again. */
const CACHE_ENTRIES = 4096;
const montgomeryByKey = new Map<string, Uint8Array | undefined>();

/**
 * RFC 7748 § 4.1: u = (1 + y) / (1 − y) of an Ed25519 public key. Returns undefined for what is not a point of the curve.
 * Cached, because it takes arithmetic on large integers; the least recently used leaves first.
 */
export function edwardsToMontgomery(publicKey: Uint8Array): Uint8Array | undefined {
  const name = publicKey.toHex();
  const isKnown = montgomeryByKey.has(name);
  const known = montgomeryByKey.get(name);
  if (isKnown) montgomeryByKey.delete(name);
  else if (montgomeryByKey.size >= CACHE_ENTRIES) montgomeryByKey.delete(montgomeryByKey.keys().next().value!);
  const montgomery = isKnown ? known : convert(publicKey);
  montgomeryByKey.set(name, montgomery);
  return montgomery;
}

function convert(publicKey: Uint8Array): Uint8Array | undefined {
  try {
    return ed25519.utils.toMontgomery(publicKey);
  } catch {
    return undefined; // for 32 admissible bytes there is no other reason to fail
  }
}

/** RFC 7748 § 6.1: the raw shared secret, or undefined when it is all zeros (a point of small order). */
export function x25519(privateKey: KeyObject, publicKey: KeyObject): Uint8Array | undefined {
  try {
    return new Uint8Array(diffieHellman({ privateKey, publicKey }));
  } catch {
    return undefined; // both are X25519 keys by construction, so only the contributory check can fail
  }
}
