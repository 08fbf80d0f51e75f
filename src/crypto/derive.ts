import { hkdfSync } from "node:crypto";
import { concatBytes, utf8ToBytes, writeUint32 } from "../base/bytes.ts";

const NO_SALT = new Uint8Array(0);

/** RFC 5869 HKDF with SHA-256: `length` bytes from the input keying material. */
export function hkdfSha256(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, info, length));
}

/**
 * A 32-byte key from a secret by HKDF-SHA256. The info is `"svc/<label>/v1"` and the parts, each behind its
 * length in bytes, so that no two lists of parts share a key.
 */
export function deriveKey(secret: Uint8Array, label: string, ...parts: readonly (string | Uint8Array)[]): Uint8Array {
  return hkdfSha256(secret, NO_SALT, keyInfo(label, parts), 32);
}

function keyInfo(label: string, parts: readonly (string | Uint8Array)[]): Uint8Array {
  const fields = [utf8ToBytes(`svc/${label}/v1`)];
  for (const part of parts) fields.push(typeof part === "string" ? utf8ToBytes(part) : part);
  const framed: Uint8Array[] = [];
  for (const field of fields) {
    const length = new Uint8Array(4);
    writeUint32(length, 0, field.length);
    framed.push(length, field);
  }
  return concatBytes(...framed);
}
