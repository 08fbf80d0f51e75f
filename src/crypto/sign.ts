import { sign as signNative, verify as verifyNative } from "node:crypto";
import { utf8ToBytes } from "../base/bytes.ts";
import { sha256 } from "./hash.ts";
import { ed25519PrivateKey, publicKeyOfPrivateKey } from "./private-key.ts";
import { publicKeyObject } from "./public-key.ts";

/** What a signature can be about. A signature of one kind is invalid as any other kind; add a kind, never reuse one. */
export type SignatureKind =
  | "change"
  | "acl"
  | "acl-proposal"
  | "space"
  | "event"
  | "inbox"
  | "invite"
  | "profile"
  | "p2p-account"
  | "p2p-device"
  | "p2p-guest"
  | "push-request"
  | "push-topics"
  | "push-message"
  | "wallet";

export const SIGNATURE_BYTES = 64;

export interface Signer {
  /** 32-byte Ed25519 public key. */
  readonly publicKey: Uint8Array;
  /** 64-byte signature over `"svc/<kind>/v1\0" ‖ sha256(canonicalBytes)`. */
  sign(kind: SignatureKind, canonicalBytes: Uint8Array): Uint8Array;
}

/** Creates a signer from a 32-byte Ed25519 seed. */
export function createSigner(seed: Uint8Array): Signer {
  const key = ed25519PrivateKey(seed);
  return {
    publicKey: publicKeyOfPrivateKey(key),
    sign: (kind, canonicalBytes) => new Uint8Array(signNative(null, signedMessage(kind, canonicalBytes), key)),
  };
}

/**
 * Whether the signature was made with `publicKey`, for this kind, over these bytes. False for malformed or inadmissible
 * input.
 */
export function verify(
  publicKey: Uint8Array,
  kind: SignatureKind,
  canonicalBytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (signature.length !== SIGNATURE_BYTES) return false;
  const key = publicKeyObject(publicKey);
  return key !== undefined && verifyNative(null, signedMessage(kind, canonicalBytes), key, signature);
}

const prefixByKind = new Map<SignatureKind, Uint8Array>();

function signedMessage(kind: SignatureKind, canonicalBytes: Uint8Array): Uint8Array {
  let prefix = prefixByKind.get(kind);
  if (!prefix) {
    prefix = utf8ToBytes(`svc/${kind}/v1\0`);
    prefixByKind.set(kind, prefix);
  }
  const message = new Uint8Array(prefix.length + 32);
  message.set(prefix);
  message.set(sha256(canonicalBytes), prefix.length);
  return message;
}
