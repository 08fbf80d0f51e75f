import { base58ToBytes, bytesToBase58 } from "../base/base58.ts";
import type { AccountId } from "../base/ids.ts";
import { admitPublicKey, PUBLIC_KEY_BYTES } from "./public-key.ts";

/** Makes 35 bytes begin with `A` in base58. */
const VERSION = 0x5b;
const ACCOUNT_ID_BYTES = 1 + PUBLIC_KEY_BYTES + 2;

/** Account id of an Ed25519 public key: base58(0x5b ‖ key ‖ CRC16-XMODEM of both, little-endian). */
export function accountIdOf(publicKey: Uint8Array): AccountId {
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new RangeError(`a public key has 32 bytes, got ${publicKey.length}`);
  const bytes = new Uint8Array(ACCOUNT_ID_BYTES);
  bytes[0] = VERSION;
  bytes.set(publicKey, 1);
  const crc = crc16(bytes.subarray(0, ACCOUNT_ID_BYTES - 2));
  bytes[ACCOUNT_ID_BYTES - 2] = crc & 0xff;
  bytes[ACCOUNT_ID_BYTES - 1] = crc >> 8;
  return bytesToBase58(bytes) as AccountId;
}

/**
 * The public key in an account id, or undefined when the id is misspelt or of another version, or the key is not
 * admissible.
 */
export function parseAccountId(text: string): Uint8Array | undefined {
  const bytes = base58ToBytes(text);
  if (bytes?.length !== ACCOUNT_ID_BYTES || bytes[0] !== VERSION) return undefined;
  const crc = crc16(bytes.subarray(0, ACCOUNT_ID_BYTES - 2));
  if (bytes[ACCOUNT_ID_BYTES - 2] !== (crc & 0xff) || bytes[ACCOUNT_ID_BYTES - 1] !== crc >> 8) return undefined;
  const publicKey = bytes.slice(1, 1 + PUBLIC_KEY_BYTES);
  return admitPublicKey(publicKey) ? publicKey : undefined;
}

/** CRC-16/XMODEM: polynomial 0x1021, initial value 0. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc;
}
