/** One batch serves many small requests, because a call to the system's generator costs more than the bytes. */
const POOL_BYTES = 4096;
/** `getRandomValues` returns at most this many bytes per call. */
const MAX_CALL_BYTES = 65_536;

const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;

/** Returns `length` bytes from the system's cryptographic generator, in memory of their own. */
export function randomBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  fillRandom(bytes);
  return bytes;
}

/** Fills `target` (a nonce inside a larger buffer, say) from the system's cryptographic generator. */
export function fillRandom(target: Uint8Array): void {
  if (target.length > POOL_BYTES / 16) {
    for (let offset = 0; offset < target.length; offset += MAX_CALL_BYTES) {
      crypto.getRandomValues(target.subarray(offset, offset + MAX_CALL_BYTES) as Uint8Array<ArrayBuffer>);
    }
    return;
  }
  if (used + target.length > POOL_BYTES) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const end = used + target.length;
  // Byte by byte, as a view of the pool would cost more. Bytes are handed out once and kept nowhere else.
  for (let from = used, at = 0; from < end; from++, at++) {
    target[at] = pool[from]!;
    pool[from] = 0;
  }
  used = end;
}
