import { equalBytes } from "../../base/bytes.ts";
import { verify } from "../../crypto/sign.ts";
import type { AclOp } from "./op.ts";
import { type AclRecord, decodePending, joinProofBytes, type PendingRecord } from "./record.ts";

/**
 * Parts of a record that are signed by themselves. Each part is verified once while its record is in memory: a long log
 * is verified while its records are read, in slices, not while they are judged in one turn.
 */

const pendingByBytes = new WeakMap<Uint8Array, { pending: PendingRecord | undefined }>();

/** The record or proposal to which this one gives effect; undefined for bytes that are neither. */
export function sequencedPending(bytes: Uint8Array): PendingRecord | undefined {
  let known = pendingByBytes.get(bytes);
  if (!known) {
    known = { pending: decodePending(bytes) };
    pendingByBytes.set(bytes, known);
    // What is planned with it holds these bytes.
    if (known.pending) pendingByBytes.set(known.pending.bytes, known);
  }
  return known.pending;
}

interface Proven {
  readonly space: Uint8Array;
  readonly account: Uint8Array;
  readonly holds: boolean;
}

interface JoinOp {
  readonly invite: Uint8Array;
  readonly proof: Uint8Array;
}

const provenByOp = new WeakMap<JoinOp, Proven>();

/** Whether the account that joins or asks to join proves that it holds the invite's secret. */
export function isProven(op: JoinOp, space: Uint8Array, account: Uint8Array): boolean {
  const known = provenByOp.get(op);
  if (known && equalBytes(known.space, space) && equalBytes(known.account, account)) return known.holds;
  const holds = verify(op.invite, "invite", joinProofBytes(space, op.invite, account), op.proof);
  provenByOp.set(op, { space, account, holds });
  return holds;
}

/** Verifies all parts of a record ahead of time. */
export function verifyParts({ space, author, ops }: AclRecord): void {
  for (const op of ops) {
    verifyJoin(op, space, author);
    const pending = op.op === "sequenced" ? sequencedPending(op.pending) : undefined;
    for (const inner of pending?.ops ?? []) verifyJoin(inner, space, pending!.author);
  }
}

function verifyJoin(op: AclOp, space: Uint8Array, account: Uint8Array): void {
  if (op.op === "requestJoin" || op.op === "inviteJoin") isProven(op, space, account);
}
