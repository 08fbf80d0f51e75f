import { concatBytes } from "../base/bytes.ts";
import { byteStringHead, type CborValue, decodeCbor, Link } from "../base/dag-cbor.ts";
import { MalformedError } from "../base/malformed.ts";
import { sha256 } from "./hash.ts";
import { SIGNATURE_BYTES, type SignatureKind, type Signer, verify } from "./sign.ts";

/**
 * What accounts sign: the DAG-CBOR map `{h, s}` of a header and the signature over `{h}`. A change also has its sealed
 * body, `{b, h, s}`, and is signed over `{c, h}`, where `c` is the body's sha2-256. So `{c, h, s}`, its stub, proves it
 * without the body. An unsigned header is alone, `{h}`.
 */
export interface SignedEnvelope {
  readonly header: EnvelopeHeader;
  /** The header's canonical bytes, a view of the envelope's. */
  readonly headerBytes: Uint8Array;
  readonly body: Uint8Array | undefined;
  /** Hash of the body, whether the body is here or not. */
  readonly bodyHash: Uint8Array | undefined;
  readonly signature: Uint8Array | undefined;
}

export interface EnvelopeHeader {
  readonly [key: string]: CborValue;
}

const HASH_BYTES = 32;
const BODY = Uint8Array.of(0x61, 0x62); // "b"
const BODY_HASH = Uint8Array.of(0x61, 0x63, ...byteStringHead(HASH_BYTES)); // "c"
const HEADER = Uint8Array.of(0x61, 0x68); // "h"
const SIGNATURE = Uint8Array.of(0x61, 0x73, ...byteStringHead(SIGNATURE_BYTES)); // "s"
const MAPS = [0xa0, 0xa1, 0xa2, 0xa3].map((head) => Uint8Array.of(head));
const UNSIGNED = new Uint8Array(SIGNATURE_BYTES);

/** Encodes an unsigned header. `header`: its canonical bytes. */
export const encodeUnsigned = (header: Uint8Array): Uint8Array => concatBytes(MAPS[1]!, HEADER, header);

/** The bytes of a header with the hash of a body, which are signed. */
const encodeUnsignedStub = (hash: Uint8Array, header: Uint8Array): Uint8Array =>
  concatBytes(MAPS[2]!, BODY_HASH, hash, HEADER, header);

/** Signs a header, given as canonical bytes. */
export function signEnvelope(kind: SignatureKind, header: Uint8Array, signer: Signer): Uint8Array {
  const signature = signer.sign(kind, encodeUnsigned(header));
  return concatBytes(MAPS[2]!, HEADER, header, SIGNATURE, signature);
}

/** Signs a header with a body; returns the envelope's bytes and its stub's. */
export function signEnvelopeWithBody(
  kind: SignatureKind,
  header: Uint8Array,
  body: Uint8Array,
  signer: Signer,
): { bytes: Uint8Array; stub: Uint8Array } {
  // The stub is what is signed, with one field more: the signature, whose place is kept.
  const stub = concatBytes(MAPS[2]!, BODY_HASH, sha256(body), HEADER, header, SIGNATURE, UNSIGNED);
  const signature = signer.sign(kind, stub.subarray(0, stub.length - SIGNATURE.length - SIGNATURE_BYTES));
  stub.set(MAPS[3]!);
  stub.set(signature, stub.length - SIGNATURE_BYTES);
  const bytes = concatBytes(MAPS[3]!, BODY, byteStringHead(body.length), body, HEADER, header, SIGNATURE, signature);
  return { bytes, stub };
}

/**
 * Reads canonical bytes as an envelope. Throws RangeError for any others. It does not verify the signature; `isSignedBy`
 * does.
 */
export const readEnvelope = (bytes: Uint8Array): SignedEnvelope => openEnvelope(bytes, decodeCbor(bytes));

/**
 * The header in a decoded envelope, whatever else the envelope holds, because a later format may hold more. Throws
 * MalformedError.
 */
export function headerIn(decoded: CborValue): EnvelopeHeader {
  const header = isMap(decoded) ? decoded["h"] : undefined;
  if (!isMap(header)) throw new MalformedError("no_header");
  return header;
}

/** Does the same as `readEnvelope` for bytes that are already decoded. */
export function openEnvelope(bytes: Uint8Array, decoded: CborValue): SignedEnvelope {
  const header = headerIn(decoded);
  const { b: body, c: hash, s: signature } = decoded as EnvelopeHeader;
  const known = [body, hash, signature].filter((field) => field !== undefined).length;
  if (Object.keys(decoded as EnvelopeHeader).length !== 1 + known) throw new MalformedError("other_fields");
  if (body !== undefined && hash !== undefined) throw new MalformedError("body_and_hash");
  if (body !== undefined && !(body instanceof Uint8Array)) throw new MalformedError("body_not_bytes");
  if (!isBytes(hash, HASH_BYTES)) throw new MalformedError("hash_length");
  if (!isBytes(signature, SIGNATURE_BYTES)) throw new MalformedError("signature_length");
  const before = body ? BODY.length + byteStringHead(body.length).length + body.length : 0;
  const start = 1 + before + (hash ? BODY_HASH.length + HASH_BYTES : 0) + HEADER.length;
  const end = bytes.length - (signature ? SIGNATURE.length + SIGNATURE_BYTES : 0);
  const bodyHash = body ? sha256(body) : hash;
  return { header, headerBytes: bytes.subarray(start, end), body, bodyHash, signature };
}

const isBytes = (value: CborValue | undefined, length: number): value is Uint8Array | undefined =>
  value === undefined || (value instanceof Uint8Array && value.length === length);

const isMap = (value: CborValue | undefined): value is { [key: string]: CborValue } =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Uint8Array) &&
  !(value instanceof Link);

/** Whether the key is admissible and the envelope has a valid signature of this kind by it. */
export function isSignedBy(
  publicKey: Uint8Array,
  kind: SignatureKind,
  { headerBytes, bodyHash, signature }: Pick<SignedEnvelope, "headerBytes" | "bodyHash" | "signature">,
): boolean {
  if (!signature) return false;
  const signed = bodyHash ? encodeUnsignedStub(bodyHash, headerBytes) : encodeUnsigned(headerBytes);
  return verify(publicKey, kind, signed, signature);
}
