import { base32ToBytes, bytesToBase32 } from "../base/base32.ts";
import { concatBytes } from "../base/bytes.ts";
import { sha256 } from "./hash.ts";

/** CIDv1, codec dag-cbor (0x71), multihash sha2-256 (0x12) of 32 bytes (0x20). No other CIDs are used here. */
const PREFIX = new Uint8Array([0x01, 0x71, 0x12, 0x20]);
const CID_BYTES = 36;
/** `b` and 58 characters of base32. */
const CID_CHARS = 59;

/** CIDv1 of dag-cbor bytes in base32: `bafyrei…`, 59 characters. */
export function cidOf(bytes: Uint8Array): string {
  return cidFromDigest(sha256(bytes));
}

/** The CID of this sha2-256 digest (32 bytes). */
export function cidFromDigest(digest: Uint8Array): string {
  return `b${bytesToBase32(cidBytesFromDigest(digest))}`;
}

/** The 32-byte digest in a CID's text, or undefined when the text is not exactly what `cidOf` writes. */
export function digestOfCid(text: string): Uint8Array | undefined {
  if (text.length !== CID_CHARS || text[0] !== "b") return undefined;
  const bytes = base32ToBytes(text.slice(1));
  return bytes && digestOfCidBytes(bytes);
}

/** The 36-byte binary form, as a dag-cbor link contains it (after its 0x00 multibase byte). */
export function cidBytesFromDigest(digest: Uint8Array): Uint8Array {
  if (digest.length !== 32) throw new RangeError(`a sha2-256 digest has 32 bytes, got ${digest.length}`);
  return concatBytes(PREFIX, digest);
}

/** The digest in a CID's 36-byte binary form, or undefined when the CID has another version, codec or hash. */
export function digestOfCidBytes(bytes: Uint8Array): Uint8Array | undefined {
  if (bytes.length !== CID_BYTES) return undefined;
  for (let i = 0; i < PREFIX.length; i++) if (bytes[i] !== PREFIX[i]) return undefined;
  return bytes.slice(PREFIX.length);
}
