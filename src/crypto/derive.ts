import { hkdfSync } from "node:crypto";
import { frameFields } from "../base/framed-fields.ts";

const NO_SALT = new Uint8Array(0);

/** RFC 5869 HKDF with SHA-256: derives `length` bytes from the input keying material. */
export function hkdfSha256(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, info, length));
}

/**
 * Derives a 32-byte key from a secret by HKDF-SHA256. The info is `"svc/<label>/v1"` and the parts, each preceded by its
 * length in bytes, so that no two lists of parts give the same key.
 */
export function deriveKey(secret: Uint8Array, label: string, ...parts: readonly (string | Uint8Array)[]): Uint8Array {
  return hkdfSha256(secret, NO_SALT, frameFields([`svc/${label}/v1`, ...parts]), 32);
}
