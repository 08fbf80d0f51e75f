import { base58ToBytes, bytesToBase58 } from "../base/base58.ts";
import { concatBytes } from "../base/bytes.ts";
import type { PeerId } from "../base/ids.ts";
import { admitPublicKey, PUBLIC_KEY_BYTES } from "./public-key.ts";

/**
 * libp2p peer id specification: identity multihash (0x00) of 36 bytes (0x24), which are a public key in protobuf: type
 * Ed25519 (08 01), data of 32 bytes (12 20).
 */
const PREFIX = new Uint8Array([0x00, 0x24, 0x08, 0x01, 0x12, 0x20]);

/** Peer id of a device's Ed25519 public key: `12D3KooW…`. */
export function peerIdOf(publicKey: Uint8Array): PeerId {
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new RangeError(`a public key has 32 bytes, got ${publicKey.length}`);
  return bytesToBase58(concatBytes(PREFIX, publicKey)) as PeerId;
}

/**
 * The device's public key in a peer id, or undefined when the id is misspelt or holds another kind of key, or the key is
 * not admissible.
 */
export function parsePeerId(text: string): Uint8Array | undefined {
  const bytes = base58ToBytes(text);
  if (bytes?.length !== PREFIX.length + PUBLIC_KEY_BYTES) return undefined;
  for (let i = 0; i < PREFIX.length; i++) if (bytes[i] !== PREFIX[i]) return undefined;
  const publicKey = bytes.slice(PREFIX.length);
  return admitPublicKey(publicKey) ? publicKey : undefined;
}
