import { createCipheriv, createDecipheriv } from "node:crypto";
import { utf8ToBytes } from "../base/bytes.ts";
import { fillRandom } from "../base/random.ts";
import { deriveKey } from "./derive.ts";
import { sha256 } from "./hash.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** How many bytes the sealed form is longer than the plaintext. */
export const SEAL_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;
const KEY_ID_BYTES = 16;

/** The purposes of an object's keys: each purpose has its own key. */
export type ObjectKeyPurpose = "change" | "event" | "file" | "profile" | "push";

/**
 * Seals with AES-256-GCM (NIST SP 800-38D): nonce (12 random bytes) ‖ ciphertext ‖ tag (16). One key may seal at most
 * 2^32 messages, so seal under keys derived per object.
 */
export function seal(key: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Uint8Array {
  const sealed = new Uint8Array(plaintext.length + SEAL_OVERHEAD_BYTES);
  const nonce = sealed.subarray(0, NONCE_BYTES);
  fillRandom(nonce);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(aad);
  // GCM is a stream mode: `update` returns every byte of the text and `final` none.
  sealed.set(cipher.update(plaintext), NONCE_BYTES);
  cipher.final();
  sealed.set(cipher.getAuthTag(), NONCE_BYTES + plaintext.length);
  return sealed;
}

/** The plaintext, or undefined when the bytes were not sealed under this key and additional data. */
export function open(key: Uint8Array, sealed: Uint8Array, aad: Uint8Array): Uint8Array | undefined {
  const length = sealed.length - SEAL_OVERHEAD_BYTES;
  if (length < 0) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(aad);
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES + length));
  const plaintext = decipher.update(sealed.subarray(NONCE_BYTES, NONCE_BYTES + length));
  try {
    decipher.final();
  } catch {
    return undefined; // the tag does not match: the only error that `final` can raise here
  }
  return new Uint8Array(plaintext.buffer, plaintext.byteOffset, plaintext.length); // returns a plain array without copying
}

/** Derives the 32-byte key under which an object's bytes are sealed, from the space's read key of one epoch. */
export function deriveObjectKey(
  readKey: Uint8Array,
  spaceId: string,
  objectId: string,
  purpose: ObjectKeyPurpose,
): Uint8Array {
  return deriveKey(readKey, "object-key", spaceId, objectId, purpose);
}

const KEY_ID_TAG = utf8ToBytes("svc/key-id/v1\0");

/** 16 bytes that name a 32-byte key and commit to it: whoever receives a key checks that this is its id. */
export function keyIdOf(key: Uint8Array): Uint8Array {
  const tagged = new Uint8Array(KEY_ID_TAG.length + key.length);
  tagged.set(KEY_ID_TAG);
  tagged.set(key, KEY_ID_TAG.length);
  return sha256(tagged).slice(0, KEY_ID_BYTES);
}
