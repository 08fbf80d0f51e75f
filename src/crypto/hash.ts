/** SHA-256 digest, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return Bun.SHA256.hash(bytes) as Uint8Array;
}
