import { equalBytes } from "../base/bytes.ts";
import { type CborValue, decodeCbor, encodeCbor, encodeEnvelope, Link } from "../change/dag-cbor.ts";
import { sha256 } from "../crypto/hash.ts";
import { admitPublicKey } from "../crypto/public-key.ts";
import { type Signer, verify } from "../crypto/sign.ts";

/** Permissions in rising order of authority, guests apart (spec § 2). */
export type Permission = "none" | "reader" | "guest" | "writer" | "admin" | "owner";

/** A read key sealed to one person, or to the holder of an invite's or guest key's secret. */
export interface SealedKey {
  to: Uint8Array;
  box: Uint8Array;
}

/** A new key epoch: the key's id, the key for each who may read, and the key before sealed under it. */
export interface EpochOp {
  keyId: Uint8Array;
  sealed: SealedKey[];
  /** The previous epoch's key, sealed under this one; absent in the first. */
  previous?: Uint8Array;
}

/** What an ACL record does. A record may hold several ops, applied in order, all or none. */
export type AclOp = { op: "root"; epoch: EpochOp };

export interface AclRecord {
  id: Uint8Array;
  space: Uint8Array;
  /** The record before; null in the root. */
  prev: Uint8Array | null;
  author: Uint8Array;
  /** Unix milliseconds; 0 in the deterministic root of a derived space. */
  time: number;
  /** The space's clock when written: the highest lamport its author had seen. Changes that name this record come after. */
  clock: number;
  ops: AclOp[];
}

const FORMAT = 1;
const MAX_RECORD_BYTES = 256 << 10;
const MAX_SEALED = 5000;

type Map = { [key: string]: CborValue };
const isMap = (value: CborValue | undefined): value is Map =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Uint8Array) &&
  !(value instanceof Link);

function epochMap(epoch: EpochOp): CborValue {
  return {
    keyId: epoch.keyId,
    sealed: epoch.sealed.map(({ to, box }) => ({ to, box })),
    ...(epoch.previous ? { previous: epoch.previous } : {}),
  };
}

const opMap = (op: AclOp): CborValue => ({ op: op.op, epoch: epochMap(op.epoch) });

/** Signs and encodes a record of the space's ACL chain. */
export function encodeAclRecord(
  record: Omit<AclRecord, "id" | "author">,
  signer: Signer,
): { bytes: Uint8Array; id: Uint8Array } {
  const header = encodeCbor({
    v: FORMAT,
    kind: "acl",
    space: new Link(record.space),
    prev: record.prev ? new Link(record.prev) : null,
    author: signer.publicKey,
    time: record.time,
    clock: record.clock,
    ops: record.ops.map(opMap),
  });
  const bytes = encodeEnvelope({ header, signature: signer.sign("acl", encodeEnvelope({ header })) });
  return { bytes, id: sha256(bytes) };
}

function readEpoch(value: CborValue | undefined): EpochOp | undefined {
  if (!isMap(value)) return undefined;
  const { keyId, sealed, previous } = value;
  if (!(keyId instanceof Uint8Array) || keyId.length !== 16 || !Array.isArray(sealed) || sealed.length > MAX_SEALED)
    return undefined;
  const keys: SealedKey[] = [];
  for (const entry of sealed) {
    if (!isMap(entry) || !(entry["to"] instanceof Uint8Array) || !(entry["box"] instanceof Uint8Array))
      return undefined;
    keys.push({ to: entry["to"], box: entry["box"] });
  }
  if (previous !== undefined && !(previous instanceof Uint8Array)) return undefined;
  return { keyId, sealed: keys, ...(previous ? { previous } : {}) };
}

function readOp(value: CborValue): AclOp | undefined {
  if (!isMap(value) || value["op"] !== "root") return undefined;
  const epoch = readEpoch(value["epoch"]);
  return epoch && { op: "root", epoch };
}

/** Reads a record and verifies its signature; undefined for bytes that are none. Its rights are judged by the reducer. */
export function decodeAclRecord(bytes: Uint8Array): AclRecord | undefined {
  if (bytes.length > MAX_RECORD_BYTES) return undefined;
  let envelope: CborValue;
  try {
    envelope = decodeCbor(bytes);
  } catch {
    return undefined;
  }
  if (!isMap(envelope) || !isMap(envelope["h"]) || !(envelope["s"] instanceof Uint8Array)) return undefined;
  const { v, kind, space, prev, author, time, clock, ops } = envelope["h"];
  if (v !== FORMAT || kind !== "acl" || !(space instanceof Link) || !(prev === null || prev instanceof Link))
    return undefined;
  if (
    !(author instanceof Uint8Array) ||
    !admitPublicKey(author) ||
    typeof time !== "number" ||
    typeof clock !== "number" ||
    clock < 0
  )
    return undefined;
  if (!Array.isArray(ops) || ops.length === 0) return undefined;
  const read = ops.map(readOp);
  if (read.some((op) => op === undefined)) return undefined;
  const header = encodeCbor(envelope["h"]);
  if (!equalBytes(encodeEnvelope({ header, signature: envelope["s"] }), bytes)) return undefined;
  if (!verify(author, "acl", encodeEnvelope({ header }), envelope["s"])) return undefined;
  return {
    id: sha256(bytes),
    space: space.digest,
    prev: prev?.digest ?? null,
    author,
    time,
    clock,
    ops: read as AclOp[],
  };
}
