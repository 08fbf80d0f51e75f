import { sign } from "node:crypto";
import { bytesToBase32 } from "../../base/base32.ts";
import { crc16 } from "../../crypto/account-id.ts";
import { ed25519PrivateKey, publicKeyOfPrivateKey } from "../../crypto/private-key.ts";

/**
 * NATS nkeys: Ed25519 keys as text. An account's network key is derived for this one use (`deriveAccountSecret(seed,
 * "network")`), because the server chooses the bytes it signs.
 */

const USER_PREFIX = 20 << 3;
/** A server's nonce has 22 characters; anything much longer is not a nonce. */
const NONCE_CHARS_MAX = 128;

export interface NetworkKey {
  /** `U…`, 56 characters: what the operator admits. */
  readonly publicText: string;
  /** Base64url of the signature over a server's nonce; undefined for what is no nonce. */
  signNonce(nonce: string): string | undefined;
}

/** The nkey of a 32-byte seed. */
export function createNetworkKey(seed: Uint8Array): NetworkKey {
  const key = ed25519PrivateKey(seed);
  return {
    publicText: nkeyText(publicKeyOfPrivateKey(key)),
    signNonce: (nonce) =>
      nonce === "" || nonce.length > NONCE_CHARS_MAX
        ? undefined
        : sign(null, Buffer.from(nonce), key).toString("base64url"),
  };
}

/** prefix byte ‖ key ‖ CRC16-XMODEM (little-endian), in base32: 35 bytes are 56 characters. */
function nkeyText(publicKey: Uint8Array): string {
  const bytes = new Uint8Array(1 + publicKey.length + 2);
  bytes[0] = USER_PREFIX;
  bytes.set(publicKey, 1);
  const crc = crc16(bytes.subarray(0, 1 + publicKey.length));
  bytes[bytes.length - 2] = crc & 0xff;
  bytes[bytes.length - 1] = crc >> 8;
  return bytesToBase32(bytes).toUpperCase();
}
