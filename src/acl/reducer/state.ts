import { bytesToHex } from "../../base/bytes.ts";
import type { CutOff, EpochOp, SealedKey, SealedMetadata } from "../record/op.ts";
import { canWrite, type InvitablePermission, type Permission } from "../record/permission.ts";

/** Status of an account in the space (ACL-3). An account that never had to do with the space has none. */
export type MemberStatus = "joining" | "active" | "declined" | "canceled" | "removing" | "removed";

/**
 * A member's rights over time. The history is append-only, so what an account wrote while it was allowed stays valid
 * permanently.
 */
export interface MemberState {
  readonly account: Uint8Array;
  readonly status: MemberStatus;
  /** Which permission held from which position of the log on, oldest first. */
  readonly history: readonly { pos: number; permission: Permission }[];
  /** What the account published to the members about itself, or the account that added it published about it. */
  readonly metadata: SealedMetadata | undefined;
  /** The open invites by which it ever joined, so it knows their secrets. */
  readonly joinedBy: readonly Uint8Array[];
  /** How often it acted without managing the space since the manager's record at `since`. */
  readonly acts: { readonly since: number; readonly count: number } | undefined;
}

interface InviteState {
  readonly key: Uint8Array;
  /** Id of the record or proposal that made it. */
  readonly id: Uint8Array;
  /** The account that minted it, which therefore knows its secret. */
  readonly author: Uint8Array;
  /** The role that its holder gets without approval; `none` for an invite that only lets people ask. */
  readonly permission: "none" | InvitablePermission;
}

export interface RequestState {
  /** Id of the record or proposal that asked. */
  readonly id: Uint8Array;
  readonly account: Uint8Array;
}

export interface EpochState {
  readonly pos: number;
  readonly epoch: EpochOp;
  /** Boxes for accounts that were admitted later. */
  readonly shared: SealedKey[];
}

/** From `pos` on, of what an account wrote under earlier positions, only its writers' chains up to the cut-offs count. */
export interface Revocation {
  readonly pos: number;
  readonly cutOffs: readonly CutOff[];
}

/**
 * The position of a change that names a record: a whole number is an index into the log. A record of a lost branch is
 * between the record that it followed and the next one of the log: `base + the position that gave it its own × 2^-26`.
 */
interface AclPosition {
  readonly pos: number;
  readonly clock: number;
}

/** Everything the log says. Only the reducer changes it. Maps from bytes use their hex. */
export interface AclState {
  readonly members: Map<string, MemberState>;
  /** Live invites by key. */
  readonly invites: Map<string, InviteState>;
  /** Pending requests by id. */
  readonly requests: Map<string, RequestState>;
  readonly epochs: EpochState[];
  /** Positions of epochs by key id. */
  readonly epochPositions: Map<string, number>;
  readonly revocations: Map<string, readonly Revocation[]>;
  /** Every record, and every record of a lost branch that found its position, by id. */
  readonly positions: Map<string, AclPosition>;
  /** Proposals that took effect. */
  readonly sequenced: Map<string, number>;
  /** Keys of all invites and guests there ever were: none may be used twice, and none is a person's account. */
  readonly usedKeys: Map<string, number>;
  readonly clocks: number[];
  /** Digest of the space's header. */
  space: Uint8Array | undefined;
  head: Uint8Array | undefined;
  /** Absent in a one-to-one space, which nobody owns. */
  owner: Uint8Array | undefined;
  guest: { readonly key: Uint8Array; readonly author: Uint8Array } | undefined;
  /** Position of the record that ended the space for everybody. */
  deletedAt: number | undefined;
  /** Position of the last record of the owner or an admin. */
  managedAt: number;
  /** Records of accounts without rights since that one. */
  strangersRecords: number;
}

export function emptyAcl(): AclState {
  return {
    members: new Map(),
    invites: new Map(),
    requests: new Map(),
    epochs: [],
    epochPositions: new Map(),
    revocations: new Map(),
    positions: new Map(),
    sequenced: new Map(),
    usedKeys: new Map(),
    clocks: [],
    space: undefined,
    head: undefined,
    owner: undefined,
    guest: undefined,
    deletedAt: undefined,
    managedAt: 0,
    strangersRecords: 0,
  };
}

/** Copies the state; what is applied to one copy does not show in the other. */
export function copyAclState(state: AclState): AclState {
  return {
    ...state,
    members: new Map(state.members),
    invites: new Map(state.invites),
    requests: new Map(state.requests),
    epochs: state.epochs.map((begun) => ({ ...begun, shared: [...begun.shared] })),
    epochPositions: new Map(state.epochPositions),
    revocations: new Map(state.revocations),
    positions: new Map(state.positions),
    sequenced: new Map(state.sequenced),
    usedKeys: new Map(state.usedKeys),
    clocks: [...state.clocks],
  };
}

const SLOT = 2 ** -26;

/**
 * The position of a lost-branch record: after `base` and before the next record, in the order in which they got their
 * positions.
 */
export function sidePosition(base: number, sequencedAt: number): number {
  return Math.floor(base) + sequencedAt * SLOT;
}

/** Both parts of such a position: the record of the log that it follows, and the record that gave it. */
export function sidePositionParts(pos: number): [base: number, sequencedAt: number] {
  const base = Math.floor(pos);
  return [base, Math.round((pos - base) / SLOT)];
}

/** The positions at which rights are looked up: both parts for a side position, else the position itself. */
export function rightsPositions(pos: number): readonly number[] {
  return Number.isInteger(pos) ? [pos] : sidePositionParts(pos);
}

/** The permission an account held right after the record at `pos`. */
export function permissionAt(state: AclState, account: Uint8Array, pos: number): Permission {
  const history = state.members.get(bytesToHex(account))?.history ?? [];
  for (let i = history.length - 1; i >= 0; i--) if (history[i]!.pos <= pos) return history[i]!.permission;
  return "none";
}

/** The index of this record in the log; undefined if it has no position, or one beside the log. */
export function indexIn(state: AclState, id: Uint8Array): number | undefined {
  const pos = state.positions.get(bytesToHex(id))?.pos;
  return pos !== undefined && Number.isInteger(pos) ? pos : undefined;
}

/** Who owned the space right after the record at `pos`; undefined where nobody does. */
export function ownerAt(state: AclState, pos: number): Uint8Array | undefined {
  for (const { account } of state.members.values()) if (permissionAt(state, account, pos) === "owner") return account;
  return undefined;
}

/** The permission an account holds now. */
export function permissionOf(state: AclState, account: Uint8Array): Permission {
  return state.members.get(bytesToHex(account))?.history.at(-1)?.permission ?? "none";
}

export function pendingRequestOf(state: AclState, account: Uint8Array): RequestState | undefined {
  const name = bytesToHex(account);
  for (const request of state.requests.values()) if (bytesToHex(request.account) === name) return request;
  return undefined;
}

export function currentEpoch(state: AclState): EpochState | undefined {
  return state.epochs.at(-1);
}

/**
 * The accounts and keys to which a new read key is sealed: all that may read, including guests, and open invites. By hex.
 */
export function readKeyHolders(state: AclState): Map<string, Uint8Array> {
  const holders = new Map<string, Uint8Array>();
  for (const [name, member] of state.members)
    if (member.history.at(-1)?.permission !== "none" && member.status === "active") holders.set(name, member.account);
  for (const [name, invite] of state.invites) if (invite.permission !== "none") holders.set(name, invite.key);
  return holders;
}

/** Members who may write now, except the owner. */
export function writingMembers(state: AclState): Uint8Array[] {
  const accounts: Uint8Array[] = [];
  for (const member of state.members.values()) {
    const permission = member.history.at(-1)?.permission ?? "none";
    if (permission !== "owner" && canWrite(permission)) accounts.push(member.account);
  }
  return accounts;
}
