import { createHmac } from "node:crypto";
import { concatBytes, utf8ToBytes, writeUint32 } from "../base/bytes.ts";

/** Every step of an Ed25519 path is hardened (SLIP-0010); callers give indices without the 2^31. */
const HARDENED = 0x8000_0000;

export interface Slip10Node {
  /** 32 bytes: the Ed25519 seed at this node. */
  readonly key: Uint8Array;
  /** 32 bytes. */
  readonly chainCode: Uint8Array;
}

/** SLIP-0010 Ed25519 derivation from a seed (16 to 64 bytes) along hardened indices: `[44, 2046, 1, 0]` is m/44'/2046'/1'/0'. */
export function deriveSlip10(seed: Uint8Array, path: readonly number[]): Slip10Node {
  let node = splitDigest(utf8ToBytes("ed25519 seed"), seed);
  for (const index of path) {
    if (!Number.isInteger(index) || index < 0 || index >= HARDENED) {
      throw new RangeError(`a derivation index is an integer from 0 to 2147483647, got ${index}`);
    }
    const suffix = new Uint8Array(4);
    writeUint32(suffix, 0, index + HARDENED);
    node = splitDigest(node.chainCode, concatBytes(new Uint8Array(1), node.key, suffix)); // 0x00 ‖ key ‖ index
  }
  return node;
}

/** I = HMAC-SHA512(key, data); I_L is the key, I_R the chain code. */
function splitDigest(key: Uint8Array, data: Uint8Array): Slip10Node {
  const digest = new Uint8Array(createHmac("sha512", key).update(data).digest());
  return { key: digest.slice(0, 32), chainCode: digest.slice(32) };
}
