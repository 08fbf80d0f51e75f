import { equalBytes } from "../../base/bytes.ts";
import { type CborValue, encodeCbor } from "../../base/dag-cbor.ts";
import type { SpaceId } from "../../base/ids.ts";
import { canSealTo } from "../../crypto/box.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import type { Signer } from "../../crypto/sign.ts";
import {
  encodeUnsigned,
  isSignedBy,
  readEnvelope,
  type SignedEnvelope,
  signEnvelope,
} from "../../crypto/signed-envelope.ts";

/** `svc.space` is shared by invites; `svc.onetoone` belongs to two accounts permanently (SPACE-1). */
export const SPACE_TYPE = "svc.space";
export const ONE_TO_ONE_TYPE = "svc.onetoone";

/**
 * The content that a space's id is the CID of. A created header is unique by its seed; a derived one depends only on the
 * account and a name; a one-to-one header depends only on the two accounts, so it needs no signature.
 */
export type SpaceHeader =
  | { kind: "created"; spaceType: string; author: Uint8Array; time: number; seed: Uint8Array }
  | { kind: "derived"; spaceType: string; author: Uint8Array; name: string }
  | { kind: "onetoone"; spaceType: string; pair: readonly [Uint8Array, Uint8Array] };

export interface EncodedHeader {
  header: SpaceHeader;
  bytes: Uint8Array;
  digest: Uint8Array;
  spaceId: SpaceId;
}

const FORMAT = 1;

function headerMap(header: SpaceHeader): CborValue {
  const common = { v: FORMAT, kind: header.kind, spaceType: header.spaceType };
  if (header.kind === "created") return { ...common, author: header.author, time: header.time, seed: header.seed };
  if (header.kind === "derived") return { ...common, author: header.author, name: header.name };
  return { ...common, pair: [...header.pair] };
}

function finish(header: SpaceHeader, bytes: Uint8Array): EncodedHeader {
  const digest = sha256(bytes);
  return { header, bytes, digest, spaceId: cidFromDigest(digest) as SpaceId };
}

/** Signs and encodes the header of a created or derived space. */
export function encodeSpaceHeader(header: Exclude<SpaceHeader, { kind: "onetoone" }>, signer: Signer): EncodedHeader {
  return finish(header, signEnvelope("space", encodeCbor(headerMap(header)), signer));
}

/** Encodes the header of a one-to-one space; both sides compute the same. */
export function encodeOneToOneHeader(a: Uint8Array, b: Uint8Array): EncodedHeader {
  const pair: [Uint8Array, Uint8Array] = Buffer.compare(a, b) <= 0 ? [a, b] : [b, a];
  const header: SpaceHeader = { kind: "onetoone", spaceType: ONE_TO_ONE_TYPE, pair };
  return finish(header, encodeUnsigned(encodeCbor(headerMap(header))));
}

/** Reads and verifies a header; returns undefined for bytes that are none. */
export function decodeSpaceHeader(bytes: Uint8Array): EncodedHeader | undefined {
  let envelope: SignedEnvelope;
  try {
    envelope = readEnvelope(bytes);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  const fields = envelope.header;
  if (envelope.bodyHash || fields["v"] !== FORMAT || typeof fields["spaceType"] !== "string") return undefined;
  const spaceType = fields["spaceType"];
  if (fields["kind"] === "onetoone") {
    const pair = fields["pair"];
    if (!Array.isArray(pair) || pair.length !== 2) return undefined;
    const [a, b] = pair;
    if (!(a instanceof Uint8Array) || !(b instanceof Uint8Array) || !canSealTo(a) || !canSealTo(b)) return undefined;
    const expected = encodeOneToOneHeader(a, b);
    return equalBytes(expected.bytes, bytes) ? expected : undefined;
  }
  const { author, time, seed, name } = fields;
  if (!(author instanceof Uint8Array) || !admitPublicKey(author)) return undefined;
  let header: SpaceHeader;
  if (fields["kind"] === "created" && typeof time === "number" && seed instanceof Uint8Array && seed.length === 16) {
    header = { kind: "created", spaceType, author, time, seed };
  } else if (fields["kind"] === "derived" && typeof name === "string") {
    header = { kind: "derived", spaceType, author, name };
  } else return undefined;
  if (!equalBytes(encodeCbor(headerMap(header)), envelope.headerBytes)) return undefined;
  return isSignedBy(author, "space", envelope) ? finish(header, bytes) : undefined;
}
