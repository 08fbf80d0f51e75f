import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import type { KeyRing } from "../../change/codec/ports.ts";
import type { Account } from "../../crypto/account.ts";
import { refusedAs, type SvcError, svcError } from "../../protocol/errors.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { makeEpoch, openEpochKey, READ_KEY_BYTES, sealReadKey } from "../record/epoch.ts";
import { ACL_BOUNDS, type AclOp, type CutOff, countCutOffs } from "../record/op.ts";
import { canManage, type Permission } from "../record/permission.ts";
import { encodeAclProposal, encodeAclRecord } from "../record/record.ts";
import { sequencedPending } from "../record/signed-parts.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { tryAclOps } from "../reducer/reducer.ts";
import { type AclState, currentEpoch, permissionOf } from "../reducer/state.ts";

/** What building ops, records and proposals needs to know of a space at one moment. */
export interface AclContext {
  spaceId: SpaceId;
  header: SpaceHeader;
  state: AclState;
  account: Account;
  keys: KeyRing;
  /** The last changes that are here of each of an account's writers. */
  cutOffs(account: Uint8Array): CutOff[];
  /** Highest lamport seen in the space. */
  clock: number;
  timeMs: number;
}

/** Builds ops for the current state; see actions.ts. */
export type AclBuild = (context: AclContext) => readonly AclOp[];

/** A signed record or proposal; its id names the invite or request in it. */
export interface AclMade {
  id: Uint8Array;
  bytes: Uint8Array;
  /** Accounts that its ops admit. */
  admits: readonly Uint8Array[];
}

/** What a record does in addition to what its ops call for. */
export interface ComposeOptions {
  /** Secret of the open invite by which its author joins: until then the author holds no key of its own. */
  inviteSeed?: Uint8Array;
  /** Change the read key even if nobody lost access to it. */
  rotate?: boolean;
  /** Keys of branches that lost, to be sealed under the new one. */
  sideKeys?: readonly { id: Uint8Array; key: Uint8Array }[];
  /** The record's clock is at least this value. */
  minClock?: number;
}

export function roleIn(context: AclContext): Permission {
  return permissionOf(context.state, context.account.signer.publicKey);
}

/**
 * Composes the next record of the log with these ops and, where they demand it, shares the current key or makes a new
 * one. Throws `acl.forbidden` with the reducer's reason for ops it refuses, `space.not_accepted` without the current key,
 * and `request.too_large` when they do not fit into one record.
 */
export function composeRecord(context: AclContext, ops: readonly AclOp[], options: ComposeOptions = {}): AclMade {
  const draft = draftOf(context, ops, options);
  const made = encodeAclRecord(
    {
      space: draft.space,
      prev: context.state.head!,
      time: context.timeMs,
      clock: draft.clock,
      ops: [...ops, ...keyOps(context, draft, options)],
    },
    context.account.signer,
  );
  return fitting(context, made, ops);
}

/** Composes a proposal that asks the owner's devices for these ops; those devices add the keys. */
export function composeProposal(context: AclContext, ops: readonly AclOp[]): AclMade {
  const { state, account } = context;
  const made = encodeAclProposal(
    { space: state.space!, basis: state.head!, time: context.timeMs, ops: [...ops] },
    account.signer,
  );
  return fitting(context, made, ops);
}

/** The error for a caller whose act the log's rules refuse. */
export const forbiddenBy = (context: AclContext, why: Refusal): SvcError =>
  refusedAs("acl.forbidden", { spaceId: context.spaceId, role: roleIn(context), reason: why.code }, why);

/** Only an account that manages the space moves its clock. */
function draftOf(context: AclContext, ops: readonly AclOp[], options: ComposeOptions) {
  const { state, account } = context;
  const before = state.clocks.at(-1)!;
  const clock = canManage(roleIn(context)) ? Math.max(before, context.clock, options.minClock ?? 0) : before;
  return { space: state.space!, author: account.signer.publicKey, clock, ops };
}

function keyOps(context: AclContext, draft: ReturnType<typeof draftOf>, options: ComposeOptions): AclOp[] {
  const { spaceId, state, header, keys } = context;
  const demand = tryAclOps(state, header, draft);
  if ("fault" in demand) throw forbiddenBy(context, demand.fault);
  const rotate = demand.rotationDue || options.rotate === true;
  if (!rotate && demand.owed.length === 0) return [];
  const current = keys.current() ?? keyByInvite(context, options.inviteSeed);
  if (!current) throw svcError("space.not_accepted", { spaceId });
  if (!rotate) return [{ op: "shareKey", keyId: current.id, sealed: sealReadKey(spaceId, current.key, demand.owed) }];
  const previous = [current, ...(options.sideKeys ?? [])].slice(0, ACL_BOUNDS.previousKeys);
  return [{ op: "readKeyChange", epoch: makeEpoch(spaceId, randomBytes(READ_KEY_BYTES), demand.holders, previous) }];
}

function keyByInvite({ spaceId, state }: AclContext, seed: Uint8Array | undefined) {
  const entry = currentEpoch(state);
  const opened = entry && seed && openEpochKey(spaceId, entry, seed).key;
  return opened && { id: entry.epoch.keyId, key: opened };
}

function fitting({ state }: AclContext, made: Pick<AclMade, "id" | "bytes">, ops: readonly AclOp[]): AclMade {
  if (
    made.bytes.length > ACL_BOUNDS.recordBytes ||
    ops.length >= ACL_BOUNDS.ops ||
    countCutOffs(ops) > ACL_BOUNDS.cutOffs
  ) {
    throw refusedAs("request.too_large", { limitBytes: ACL_BOUNDS.recordBytes }, refusal("grants.too_many"));
  }
  return { ...made, admits: ops.flatMap((op) => admittedBy(state, op)) };
}

function admittedBy(state: AclState, op: AclOp): Uint8Array[] {
  switch (op.op) {
    case "accountAdd":
      return [op.account];
    case "requestAccept":
      return [state.requests.get(bytesToHex(op.request))?.account ?? []].flat();
    case "sequenced": {
      const pending = sequencedPending(op.pending);
      return (pending?.ops ?? []).flatMap((inner) =>
        inner.op === "inviteJoin" ? [pending!.author] : admittedBy(state, inner),
      );
    }
    default:
      return [];
  }
}
