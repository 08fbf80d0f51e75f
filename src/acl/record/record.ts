import { decodeCanonicalCbor, encodeCbor, Link } from "../../base/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Signer } from "../../crypto/sign.ts";
import { type EnvelopeHeader, headerIn, isSignedBy, readEnvelope, signEnvelope } from "../../crypto/signed-envelope.ts";
import {
  ACL_BOUNDS,
  type AclOp,
  countCutOffs,
  opMap,
  readCount,
  readKey,
  readLink,
  readList,
  readMap,
  readOp,
} from "./op.ts";

interface PendingFields {
  /** sha2-256 of the bytes. An invite or request has the id of the record or proposal that made it. */
  id: Uint8Array;
  bytes: Uint8Array;
  space: Uint8Array;
  author: Uint8Array;
  /** Unix milliseconds; 0 in a deterministic root. */
  time: number;
  ops: AclOp[];
}

/** A record of the log. */
export interface AclRecord extends PendingFields {
  kind: "acl";
  /** Id of the previous record; null in the root. */
  prev: Uint8Array | null;
  /**
   * The space's clock when the record was written: the highest lamport its author had seen. Changes that name this record
   * come after it.
   */
  clock: number;
}

/**
 * A request by an account that may not extend the log alone: the owner's device puts it into the log. It holds no keys:
 * the device that sequences it shares or changes them as the ops demand.
 */
export interface AclProposal extends PendingFields {
  kind: "acl-proposal";
  /** The head that its author knew. */
  basis: Uint8Array;
}

/** Anything signed that carries ops and that the owner may sequence. */
export type PendingRecord = AclRecord | AclProposal;

const FORMAT = 1;

/** Signs and encodes a record of the space's ACL log. */
export function encodeAclRecord(
  record: Pick<AclRecord, "space" | "prev" | "time" | "clock" | "ops">,
  signer: Signer,
): { bytes: Uint8Array; id: Uint8Array } {
  const header = {
    v: FORMAT,
    kind: "acl",
    space: new Link(record.space),
    prev: record.prev && new Link(record.prev),
    author: signer.publicKey,
    time: record.time,
    clock: record.clock,
    ops: record.ops.map(opMap),
  };
  const bytes = signEnvelope("acl", encodeCbor(header), signer);
  return { bytes, id: sha256(bytes) };
}

/** Signs and encodes a proposal to the space's owner. */
export function encodeAclProposal(
  proposal: Pick<AclProposal, "space" | "basis" | "time" | "ops">,
  signer: Signer,
): { bytes: Uint8Array; id: Uint8Array } {
  const header = {
    v: FORMAT,
    kind: "acl-proposal",
    space: new Link(proposal.space),
    basis: new Link(proposal.basis),
    author: signer.publicKey,
    time: proposal.time,
    ops: proposal.ops.map(opMap),
  };
  const bytes = signEnvelope("acl-proposal", encodeCbor(header), signer);
  return { bytes, id: sha256(bytes) };
}

/**
 * Reads a record or proposal and verifies its signature. Returns undefined unless every bit is right (ACL-12). The reducer judges
 * its author's rights.
 */
export function decodePending(given: Uint8Array): PendingRecord | undefined {
  if (given.length > ACL_BOUNDS.recordBytes) return undefined;
  const bytes = new Uint8Array(given); // the result holds views of the bytes, and frames are reused
  try {
    const envelope = readEnvelope(bytes);
    const pending = readOnePending(envelope.header, bytes);
    return !envelope.bodyHash && isSignedBy(pending.author, pending.kind, envelope) ? pending : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Whether the bytes say that no record of the log comes before them. Nothing else of them is looked at, and nothing verified. */
export function saysFirst(bytes: Uint8Array): boolean {
  if (bytes.length > ACL_BOUNDS.recordBytes) return false;
  try {
    return headerIn(decodeCanonicalCbor(bytes))["prev"] === null;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Reads a record that was verified when it was stored. Throws RangeError for anything else. */
export function readVerifiedRecord(bytes: Uint8Array): AclRecord {
  const pending = readOnePending(headerIn(decodeCanonicalCbor(bytes)), bytes);
  if (pending.kind !== "acl") throw new RangeError("not a record of the log");
  return pending;
}

/** Does the same as `decodePending` for bytes that must be a record of the log. */
export function decodeAclRecord(bytes: Uint8Array): AclRecord | undefined {
  const pending = decodePending(bytes);
  return pending?.kind === "acl" ? pending : undefined;
}

function readOnePending(header: EnvelopeHeader, bytes: Uint8Array): PendingRecord {
  readMap(header, "v", "kind", "space", "author", "time", "ops", "prev?", "clock?", "basis?");
  if (header["v"] !== FORMAT) throw new RangeError("another format");
  const fields = {
    id: sha256(bytes),
    bytes,
    space: readLink(header["space"]),
    author: readKey(header["author"]),
    time: readCount(header["time"], 0),
    ops: readList(header["ops"], ACL_BOUNDS.ops, readOp),
  };
  if (fields.ops.length === 0) throw new RangeError("no ops");
  if (countCutOffs(fields.ops) > ACL_BOUNDS.cutOffs) throw new RangeError("too many cut-offs");
  if (header["kind"] === "acl") {
    readMap(header, "v", "kind", "space", "prev", "author", "time", "clock", "ops");
    const prev = header["prev"] === null ? null : readLink(header["prev"]);
    return { ...fields, kind: "acl", prev, clock: readCount(header["clock"], 0) };
  }
  if (header["kind"] === "acl-proposal") {
    readMap(header, "v", "kind", "space", "basis", "author", "time", "ops");
    return { ...fields, kind: "acl-proposal", basis: readLink(header["basis"]) };
  }
  throw new RangeError("another kind");
}

/** The bytes that the holder of an invite's secret signs for the account that joins by it. */
export function joinProofBytes(space: Uint8Array, invite: Uint8Array, account: Uint8Array): Uint8Array {
  return encodeCbor({ space: new Link(space), invite, account });
}
