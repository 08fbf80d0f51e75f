import { equalBytes } from "../../base/bytes.ts";
import { verify } from "../../crypto/sign.ts";
import type { AclOp } from "./op.ts";
import { type AclRecord, decodePending, joinProofBytes, type PendingRecord } from "./record.ts";

/**
 * What stands in a record and is signed by itself. Each part is verified once for as long as its record is in memory:
 * whoever takes in a long log does it while the records are read, in slices, and not while they are judged, in one turn.
 */

const pendingByBytes = new WeakMap<Uint8Array, { pending: PendingRecord | undefined }>();

/** What a record gives effect to; undefined for what is no record or proposal. */
export function sequencedPending(bytes: Uint8Array): PendingRecord | undefined {
  let known = pendingByBytes.get(bytes);
  if (!known) {
    known = { pending: decodePending(bytes) };
    pendingByBytes.set(bytes, known);
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

/** Whether who joins or asks to shows that it holds the invite's secret. */
export function isProven(op: JoinOp, space: Uint8Array, account: Uint8Array): boolean {
  const known = provenByOp.get(op);
  if (known && equalBytes(known.space, space) && equalBytes(known.account, account)) return known.holds;
  const holds = verify(op.invite, "invite", joinProofBytes(space, op.invite, account), op.proof);
  provenByOp.set(op, { space, account, holds });
  return holds;
}

/** Verifies all of a record ahead of time. */
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
