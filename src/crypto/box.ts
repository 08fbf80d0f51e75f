import { compareBytes, concatBytes, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { deriveKey } from "./derive.ts";
import { publicKeyOfPrivateKey, publicKeyOfSeed, SEED_BYTES } from "./private-key.ts";
import { admitPublicKey, PUBLIC_KEY_BYTES } from "./public-key.ts";
import { open, SEAL_OVERHEAD_BYTES, seal } from "./seal.ts";
import { edwardsToMontgomery, x25519, x25519PrivateKeyOfSeed, x25519PublicKey } from "./x25519.ts";

/** How many bytes a box is longer than its content. */
export const BOX_OVERHEAD_BYTES = PUBLIC_KEY_BYTES + SEAL_OVERHEAD_BYTES;

/**
 * Whether somebody can hold this Ed25519 key: it is admissible and a point of the curve. A caller that verifies need not
 * check this, because nothing verifies under any other key; a caller that seals must.
 */
export const canSealTo = (publicKey: Uint8Array): boolean =>
  admitPublicKey(publicKey) && edwardsToMontgomery(publicKey) !== undefined;

/**
 * Seals bytes to the holder of an Ed25519 key: ephemeral X25519 public key (32) ‖ AES-256-GCM under
 * HKDF(shared secret, ephemeral key, recipient). The context (what, where: "acl-read-key/<spaceId>") is additional
 * data, so that a box cannot be passed off as another. It says nothing about who sealed it. Throws on a key that
 * `canSealTo` refuses.
 */
export function sealTo(publicKey: Uint8Array, bytes: Uint8Array, context: string): Uint8Array {
  const montgomery = admitPublicKey(publicKey) && edwardsToMontgomery(publicKey);
  if (!montgomery) throw new RangeError("sealTo needs an admissible Ed25519 public key");
  const ephemeral = x25519PrivateKeyOfSeed(randomBytes(SEED_BYTES));
  const ephemeralPublicKey = publicKeyOfPrivateKey(ephemeral);
  const shared = x25519(ephemeral, x25519PublicKey(montgomery));
  if (!shared) throw new RangeError("sealTo needs an Ed25519 public key of large order");
  const key = deriveKey(shared, "box", ephemeralPublicKey, publicKey);
  return concatBytes(ephemeralPublicKey, seal(key, bytes, utf8ToBytes(context)));
}

/**
 * Opens what was sealed in this context to the key of this 32-byte seed; returns undefined when it does not open. Never
 * throws on bad bytes.
 */
export function openWith(seed: Uint8Array, box: Uint8Array, context: string): Uint8Array | undefined {
  if (box.length < BOX_OVERHEAD_BYTES) return undefined;
  const ephemeralPublicKey = box.slice(0, PUBLIC_KEY_BYTES);
  const shared = x25519(x25519PrivateKeyOfSeed(seed), x25519PublicKey(ephemeralPublicKey));
  if (!shared) return undefined;
  const key = deriveKey(shared, "box", ephemeralPublicKey, publicKeyOfSeed(seed));
  return open(key, box.subarray(PUBLIC_KEY_BYTES), utf8ToBytes(context));
}

/**
 * Derives the 32-byte secret that two Ed25519 keys share, the same on both sides: X25519, then HKDF with both public keys
 * in bytewise order. Throws on a key that `canSealTo` refuses.
 */
export function sharedSecret(seed: Uint8Array, otherPublicKey: Uint8Array): Uint8Array {
  const montgomery = admitPublicKey(otherPublicKey) && edwardsToMontgomery(otherPublicKey);
  if (!montgomery) throw new RangeError("sharedSecret needs an admissible Ed25519 public key");
  const shared = x25519(x25519PrivateKeyOfSeed(seed), x25519PublicKey(montgomery));
  if (!shared) throw new RangeError("sharedSecret needs an Ed25519 public key of large order");
  const ours = publicKeyOfSeed(seed);
  const [low, high] = compareBytes(ours, otherPublicKey) < 0 ? [ours, otherPublicKey] : [otherPublicKey, ours];
  return deriveKey(shared, "shared-secret", low, high);
}
