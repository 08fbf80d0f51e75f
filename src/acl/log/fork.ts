import { compareBytes, equalBytes } from "../../base/bytes.ts";
import type { AclOp } from "../record/op.ts";
import type { Permission } from "../record/permission.ts";
import type { AclRecord } from "../record/record.ts";
import { sequencedPending } from "../record/signed-parts.ts";
import { type AclState, ownerAt, permissionAt, permissionOf } from "../reducer/state.ts";

/**
 * Which of two valid branches that both follow the record of `base` becomes the log. `split`: no rule decides, because no
 * owner took part; each device keeps the branch it has seen, and people are told.
 */
export type BranchChoice = "ours" | "theirs" | "split";

/** The state after the record at which two branches part. */
export interface BranchBase {
  readonly owner: Uint8Array | undefined;
  permissionOf(account: Uint8Array): Permission;
}

/** The base of a state that ends with that record. */
export const baseOf = (state: AclState): BranchBase => ({
  owner: state.owner,
  permissionOf: (account) => permissionOf(state, account),
});

/** The base at a record in the middle of a log, from the state of the whole log: the log never unsays any of it. */
export const baseWithin = (state: AclState, pos: number): BranchBase => ({
  owner: ownerAt(state, pos),
  permissionOf: (account) => permissionAt(state, account, pos),
});

/**
 * A branch in which the owner took part beats one of admins alone (admins append only where a network puts their records
 * in order; ACL-11). Between two branches with the owner, the owner's first records decide: a transfer of ownership wins, because
 * otherwise a former owner could take the space back; then a record that reduces somebody's authority; then the lower id.
 * Every client decides alike. But once a new owner has acted, a second transfer by the old one no longer wins.
 */
export function chooseBranch(base: BranchBase, ours: Branch, theirs: Branch): BranchChoice {
  const owner = base.owner;
  const firstOf = (branch: Branch) => {
    for (const record of branch) if (owner && equalBytes(record.author, owner)) return record;
    return undefined;
  };
  const [our, their] = [firstOf(ours), firstOf(theirs)];
  if (!our || !their) return our ? "ours" : their ? "theirs" : "split";
  const [ourRank, theirRank] = [rankOf(base, our), rankOf(base, their)];
  if (ourRank === TRANSFER && theirRank === TRANSFER && hasNewOwnersRecord(base, ours)) return "split";
  const order = ourRank - theirRank || compareBytes(our.id, their.id);
  return order <= 0 ? "ours" : "theirs";
}

/** Records that follow one another; they are read only as far as the caller iterates. */
type Branch = Iterable<AclRecord>;

const TRANSFER = 0;
const REDUCES = 1;
const OTHER = 2;

function rankOf(base: BranchBase, record: AclRecord): number {
  const ops = opsOf(record);
  if (ops.some((op) => op.op === "ownershipChange")) return TRANSFER;
  return ops.some((op) => reducesAuthority(base, op)) ? REDUCES : OTHER;
}

/** A record's ops, including those of what it sequences. */
function opsOf(record: AclRecord): AclOp[] {
  return record.ops.flatMap((op) => (op.op === "sequenced" ? (sequencedPending(op.pending)?.ops ?? []) : [op]));
}

const AUTHORITY: Record<Permission, number> = { none: 0, guest: 1, reader: 2, writer: 3, admin: 4, owner: 5 };

function reducesAuthority(base: BranchBase, op: AclOp): boolean {
  switch (op.op) {
    case "accountRemove":
    case "selfRemove":
    case "inviteRevoke":
    case "guestRevoke":
    case "requestDecline":
    case "stopSharing":
    case "spaceDelete":
      return true;
    case "permissionChange":
      return AUTHORITY[op.permission] < AUTHORITY[base.permissionOf(op.account)];
    default:
      return false;
  }
}

function hasNewOwnersRecord(base: BranchBase, branch: Branch): boolean {
  let owner = base.owner;
  for (const record of branch) {
    if (owner && !equalBytes(owner, base.owner!) && equalBytes(record.author, owner)) return true;
    for (const op of opsOf(record)) if (op.op === "ownershipChange") owner = op.account;
  }
  return false;
}
