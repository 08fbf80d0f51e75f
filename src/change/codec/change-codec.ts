import {
  type CborValue,
  decodeCanonicalCbor,
  decodeCbor,
  encodeCbor,
  encodeOrderedMap,
  Link,
} from "../../base/dag-cbor.ts";
import { MalformedError } from "../../base/malformed.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Signer } from "../../crypto/sign.ts";
import {
  type EnvelopeHeader,
  encodeUnsigned,
  headerIn,
  isSignedBy,
  openEnvelope,
  signEnvelope,
  signEnvelopeWithBody,
} from "../../crypto/signed-envelope.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { changeIdOf } from "./change-stub.ts";

/** The formats this program writes and understands. A later one is parked, never guessed at. */
const CHANGE_FORMAT = 1;

/** Digests are the 32 bytes of a sha2-256; texts of them are CIDs (`crypto/cid.ts`). */
export interface ChangeHeader {
  /** `root` makes an object whose id is the change's id; `change` writes to it. */
  kind: "root" | "change";
  space: Uint8Array;
  /** The object's root; null in a root. */
  object: Uint8Array | null;
  /** Heads of the object when written; sorted bytewise, at most 64. */
  parents: Uint8Array[];
  lamport: number;
  /** 16 bytes, minted by a device for a space. */
  writer: Uint8Array;
  /** Position in the writer's chain, from 1. */
  seq: number;
  /** The writer's change before this one; null at seq 1. */
  prev: Uint8Array | null;
  /** Ed25519 public key of the account. */
  author: Uint8Array;
  /** Unix milliseconds by the author's clock: shown, never used for order. */
  time: number;
  /** The ACL record that was the head when this was written. */
  acl: Uint8Array;
  /** Names the read key that seals the body; in a root, which has no body, random, so that no two are the same. */
  keyId: Uint8Array;
}

export interface DerivedRootHeader {
  kind: "derived";
  space: Uint8Array;
  type: string;
  derivation: string;
}

export interface Change {
  id: Uint8Array;
  header: ChangeHeader;
  /** Canonical header bytes: the additional data of the seal. */
  headerBytes: Uint8Array;
  /** Sealed body; undefined in a root, which has none, and in a stub. */
  sealed: Uint8Array | undefined;
  /** sha2-256 of the sealed body, which id and signature are over; undefined in a root. */
  bodyHash: Uint8Array | undefined;
  signature: Uint8Array;
}

export interface DerivedRoot {
  id: Uint8Array;
  header: DerivedRootHeader;
}

/** Bytes are no change of ours. What is of a later version (`change.version`) may be understood by one; the rest never will. */
export class ChangeFault extends Error {
  readonly refusal: Refusal;
  constructor(why: Refusal) {
    super(why.code);
    this.refusal = why;
  }
}

const ENVELOPE_OVERHEAD_BYTES = 8 << 10;
/** The end of the year 9999: a later time has no RFC 3339 text. */
const MAX_TIME_MS = 253_402_300_799_999;
/** Clocks and positions in a chain stay far below what a double counts exactly: one more is always another number. */
const MAX_COUNT = 2 ** 52;
/** Of the type and of the derivation of a derived root, which nobody signs and nobody pays for. */
const MAX_DERIVATION_CHARS = 1024;

const link = (digest: Uint8Array | null): CborValue => (digest ? new Link(digest) : null);

/** Field names in the canonical order of a map's keys: shorter first, then bytewise. */
const HEADER_FIELDS = [
  "v",
  "acl",
  "seq",
  "kind",
  "prev",
  "time",
  "keyId",
  "space",
  "author",
  "object",
  "writer",
  "lamport",
  "parents",
] as const;

/** The canonical bytes of a header: the additional data of the seal. */
export function encodeHeader(header: ChangeHeader): Uint8Array {
  return encodeOrderedMap(HEADER_FIELDS, [
    CHANGE_FORMAT,
    link(header.acl),
    header.seq,
    header.kind,
    link(header.prev),
    header.time,
    header.keyId,
    link(header.space),
    header.author,
    link(header.object),
    header.writer,
    header.lamport,
    header.parents.map((parent) => new Link(parent)),
  ]);
}

/** Signs and assembles a change. A root has no body. Returns its bytes and its id. */
export function encodeChange(
  headerBytes: Uint8Array,
  sealed: Uint8Array | undefined,
  signer: Signer,
): { bytes: Uint8Array; id: Uint8Array } {
  if (sealed) {
    const { bytes, stub } = signEnvelopeWithBody("change", headerBytes, sealed, signer);
    return { bytes, id: sha256(stub) };
  }
  const bytes = signEnvelope("change", headerBytes, signer);
  return { bytes, id: sha256(bytes) };
}

/** The bytes, and by them the id, of a derived root: a pure function that every device computes alike. */
export function encodeDerivedRoot(header: Omit<DerivedRootHeader, "kind">): { bytes: Uint8Array; id: Uint8Array } {
  const headerBytes = encodeCbor({
    v: CHANGE_FORMAT,
    kind: "derived",
    space: link(header.space),
    type: header.type,
    derivation: header.derivation,
  });
  const bytes = encodeUnsigned(headerBytes);
  return { bytes, id: sha256(bytes) };
}

/** The type that a derived root was derived for. */
export function derivedTypeOf(root: Uint8Array): string {
  const decoded = decodeChange(root);
  return isDerivedRoot(decoded) ? decoded.header.type : "";
}

function digest(value: CborValue | undefined, field: string): Uint8Array {
  if (!(value instanceof Link)) throw new ChangeFault(refusal("change.no_link", { field }));
  return value.digest;
}

function bytesOf(value: CborValue | undefined, field: string, lengths: readonly number[]): Uint8Array {
  if (!(value instanceof Uint8Array) || !lengths.includes(value.length))
    throw new ChangeFault(refusal("change.length", { field }));
  return value;
}

function count(value: CborValue | undefined, field: string, least: number, most = MAX_COUNT): number {
  if (typeof value !== "number" || value < least || value > most)
    throw new ChangeFault(refusal("change.no_count", { field, least, most }));
  return value;
}

function decodeHeader(map: EnvelopeHeader): ChangeHeader {
  const kind = map["kind"];
  if (kind !== "root" && kind !== "change") throw new ChangeFault(refusal("change.kind"));
  if (Object.keys(map).length !== 13) throw new ChangeFault(refusal("change.fields"));
  const parents = map["parents"];
  if (!Array.isArray(parents) || parents.length > LIMITS.changeParents)
    throw new ChangeFault(refusal("change.parents"));
  const parentDigests = parents.map((parent) => digest(parent, "parent"));
  for (let i = 1; i < parentDigests.length; i++) {
    if (Buffer.compare(parentDigests[i - 1]!, parentDigests[i]!) >= 0)
      throw new ChangeFault(refusal("change.parents_order"));
  }
  if ((kind === "root") !== (parentDigests.length === 0)) throw new ChangeFault(refusal("change.parents_of_root"));
  if ((kind === "root") !== (map["object"] === null)) throw new ChangeFault(refusal("change.object_of_root"));
  const seq = count(map["seq"], "seq", 1);
  if ((seq === 1) !== (map["prev"] === null)) throw new ChangeFault(refusal("change.first_of_writer"));
  return {
    kind,
    space: digest(map["space"], "space"),
    object: kind === "root" ? null : digest(map["object"], "object"),
    parents: parentDigests,
    lamport: count(map["lamport"], "lamport", 1),
    writer: bytesOf(map["writer"], "writer", [16]),
    seq,
    prev: seq === 1 ? null : digest(map["prev"], "prev"),
    author: bytesOf(map["author"], "author", [32]),
    time: count(map["time"], "time", 0, MAX_TIME_MS),
    acl: digest(map["acl"], "acl"),
    keyId: bytesOf(map["keyId"], "keyId", kind === "root" ? [0, 16] : [16]),
  };
}

/**
 * Reads the bytes of a change or of its stub: size, canonical form and shape are checked here; signature, chain and rights
 * by the caller. `id` is theirs, where it is known already. Throws ChangeFault.
 */
export function decodeChange(bytes: Uint8Array, id = changeIdOf(bytes)): Change | DerivedRoot {
  return decode(bytes, id, decodeCbor);
}

/** The same for bytes that `decodeChange` took before: their canonical form is not checked again. */
export function decodeCheckedChange(bytes: Uint8Array, id: Uint8Array): Change | DerivedRoot {
  return decode(bytes, id, decodeCanonicalCbor);
}

function decode(
  bytes: Uint8Array,
  id: Uint8Array,
  decodeValue: (bytes: Uint8Array) => CborValue,
): Change | DerivedRoot {
  if (bytes.length > LIMITS.sealedChangeBytes + ENVELOPE_OVERHEAD_BYTES)
    throw new ChangeFault(refusal("change.too_large"));
  const decoded = orMalformed(() => decodeValue(bytes));
  const header = orMalformed(() => headerIn(decoded));
  if (header["v"] !== CHANGE_FORMAT) {
    const isLater = typeof header["v"] === "number" && header["v"] > CHANGE_FORMAT;
    throw new ChangeFault(refusal(isLater ? "change.version" : "change.no_version"));
  }
  if (header["kind"] === "derived") {
    const { space, type, derivation } = header;
    if (
      Object.keys(decoded as EnvelopeHeader).length !== 1 ||
      Object.keys(header).length !== 5 ||
      typeof type !== "string" ||
      typeof derivation !== "string"
    ) {
      throw new ChangeFault(refusal("change.derived_fields"));
    }
    if (type.length > MAX_DERIVATION_CHARS || derivation.length > MAX_DERIVATION_CHARS)
      throw new ChangeFault(refusal("change.derived_too_long"));
    return { id, header: { kind: "derived", space: digest(space, "space"), type, derivation } };
  }
  const read = decodeHeader(header);
  const isRoot = read.kind === "root";
  const { body: sealed, bodyHash, headerBytes, signature } = orMalformed(() => openEnvelope(bytes, decoded));
  if (!signature) throw new ChangeFault(refusal("change.unsigned"));
  if (isRoot !== (bodyHash === undefined)) throw new ChangeFault(refusal("change.body_of_root"));
  if (sealed && sealed.length > LIMITS.sealedChangeBytes) throw new ChangeFault(refusal("change.body_too_large"));
  return { id, header: read, headerBytes, sealed, bodyHash, signature };
}

function orMalformed<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const fault = error instanceof MalformedError ? error.fault : "bytes";
    throw new ChangeFault(refusal("change.malformed", { fault }));
  }
}

/** Whether the author's key is admissible and the signature is made with it. */
export const isSignedByAuthor = (change: Change): boolean => isSignedBy(change.header.author, "change", change);

/** Whether bytes are a change as its author signed it, or a derived root, whatever they are stored as. */
export function isGenuine(bytes: Uint8Array): boolean {
  try {
    const change = decodeChange(bytes);
    return isDerivedRoot(change) || isSignedByAuthor(change);
  } catch (error) {
    if (error instanceof ChangeFault) return false;
    throw error;
  }
}

export function isDerivedRoot(change: Change | DerivedRoot): change is DerivedRoot {
  return change.header.kind === "derived";
}
