import { createHash, createPrivateKey, createPublicKey, diffieHellman, type KeyObject } from "node:crypto";
import { concatBytes, hexToBytes } from "../base/bytes.ts";

/** RFC 8410 §§ 4 and 7: the encodings of X25519 keys up to their 32 bytes. */
const SPKI_PREFIX = hexToBytes("302a300506032b656e032100")!;
const PKCS8_PREFIX = hexToBytes("302e020100300506032b656e04220420")!;

/** p = 2^255 − 19 (RFC 7748 § 4.1). */
const P = 2n ** 255n - 19n;

export function x25519PublicKey(bytes: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(concatBytes(SPKI_PREFIX, bytes)), format: "der", type: "spki" });
}

/** The X25519 key that belongs to an Ed25519 seed: the scalar of RFC 8032 § 5.1.5 steps 1 and 2 (X25519 clamps it). */
export function x25519PrivateKeyOfSeed(seed: Uint8Array): KeyObject {
  const scalar = createHash("sha512").update(seed).digest().subarray(0, 32);
  return createPrivateKey({ key: Buffer.from(concatBytes(PKCS8_PREFIX, scalar)), format: "der", type: "pkcs8" });
}

/** RFC 7748 § 4.1: u = (1 + y) / (1 − y) of an Ed25519 public key; the sign of x is of no concern. */
export function edwardsToMontgomery(publicKey: Uint8Array): Uint8Array {
  const bytes = publicKey.toReversed(); // a copy: `slice` of a Buffer is none
  bytes[0]! &= 0x7f;
  const y = BigInt(`0x${bytes.toHex()}`);
  const u = ((1n + y) * invert(1n - y + P)) % P;
  return hexToBytes(u.toString(16).padStart(64, "0"))!.reverse();
}

/** a^(p−2) mod p (Fermat). Not constant-time: for public keys only. */
function invert(a: bigint): bigint {
  let result = 1n;
  let square = a % P;
  for (let exponent = P - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** RFC 7748 § 6.1: the raw shared secret, or undefined when it is all zeros (a point of small order). */
export function x25519(privateKey: KeyObject, publicKey: KeyObject): Uint8Array | undefined {
  try {
    return new Uint8Array(diffieHellman({ privateKey, publicKey }));
  } catch {
    return undefined; // both are X25519 keys by construction, so only the contributory check can fail
  }
}
