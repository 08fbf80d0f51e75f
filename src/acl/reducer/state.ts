import { bytesToHex } from "../../base/bytes.ts";
import type { CutOff, EpochOp, SealedKey, SealedMetadata } from "../record/op.ts";
import { canWrite, type InvitablePermission, type Permission } from "../record/permission.ts";

/** Status of an account in the space (ACL-3). Who never had to do with it has none. */
export type MemberStatus = "joining" | "active" | "declined" | "canceled" | "removing" | "removed";

/** A member's standing over time: append-only, so that what someone wrote while allowed stays valid for ever. */
export interface MemberState {
  readonly account: Uint8Array;
  readonly status: MemberStatus;
  /** From which position of the log which permission held, oldest first. */
  readonly history: readonly { pos: number; permission: Permission }[];
  /** What it told the members about itself, or who added it told about it. */
  readonly metadata: SealedMetadata | undefined;
  /** The open invites it ever came by, whose secrets it therefore knows. */
  readonly joinedBy: readonly Uint8Array[];
  /** How often it acted without managing the space, behind the manager's record at `since`. */
  readonly acts: { readonly since: number; readonly count: number } | undefined;
}

interface InviteState {
  readonly key: Uint8Array;
  /** The record or proposal that made it. */
  readonly id: Uint8Array;
  /** Who minted it, and so knows its secret. */
  readonly author: Uint8Array;
  /** What its holder becomes without anybody's approval; `none` for an invite that only lets people ask. */
  readonly permission: "none" | InvitablePermission;
}

export interface RequestState {
  /** The record or proposal that asked. */
  readonly id: Uint8Array;
  readonly account: Uint8Array;
}

export interface EpochState {
  readonly pos: number;
  readonly epoch: EpochOp;
  /** Boxes for those who came later. */
  readonly shared: SealedKey[];
}

/** From `pos` on, of what an account wrote under earlier positions only its writers' chains up to the cut-offs count. */
export interface Cut {
  readonly pos: number;
  readonly cutOffs: readonly CutOff[];
}

/**
 * Where a change stands that names a record: a whole number is an index into the log. A record of a branch that lost
 * stands between the record that it followed and the next one there: `base + the position that took its place × 2^-26`.
 */
interface AclPosition {
  readonly pos: number;
  readonly clock: number;
}

/** Everything the log says. Changed by the reducer alone; lookups by bytes are by their hex. */
export interface AclState {
  readonly members: Map<string, MemberState>;
  /** Live invites by key. */
  readonly invites: Map<string, InviteState>;
  /** Pending requests by id. */
  readonly requests: Map<string, RequestState>;
  readonly epochs: EpochState[];
  /** By the ids of their keys. */
  readonly epochPositions: Map<string, number>;
  readonly cuts: Map<string, readonly Cut[]>;
  /** Every record, and every record of a lost branch that found its place, by id. */
  readonly positions: Map<string, AclPosition>;
  /** Proposals that took effect. */
  readonly sequenced: Map<string, number>;
  /** Keys of all invites and guests there ever were: none is used twice, and none is a person. */
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
    cuts: new Map(),
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

/** A state of its own: what is applied to one of the two does not show in the other. */
export function copyAclState(state: AclState): AclState {
  return {
    ...state,
    members: new Map(state.members),
    invites: new Map(state.invites),
    requests: new Map(state.requests),
    epochs: state.epochs.map((begun) => ({ ...begun, shared: [...begun.shared] })),
    epochPositions: new Map(state.epochPositions),
    cuts: new Map(state.cuts),
    positions: new Map(state.positions),
    sequenced: new Map(state.sequenced),
    usedKeys: new Map(state.usedKeys),
    clocks: [...state.clocks],
  };
}

const SLOT = 2 ** -26;

/** The place of a record of a lost branch: after `base`, before the next, in the order in which they took effect. */
export function sidePosition(base: number, sequencedAt: number): number {
  return Math.floor(base) + sequencedAt * SLOT;
}

/** Both parts of such a place: after which record of the log, and which one gave it. */
export function sidePlace(pos: number): [base: number, sequencedAt: number] {
  const base = Math.floor(pos);
  return [base, Math.round((pos - base) / SLOT)];
}

/** The positions at which rights are looked up for a place: of a side position both ends, else the position itself. */
export function rightsPositions(pos: number): readonly number[] {
  return Number.isInteger(pos) ? [pos] : sidePlace(pos);
}

/** The permission an account held right after the record at `pos`. */
export function permissionAt(state: AclState, account: Uint8Array, pos: number): Permission {
  const history = state.members.get(bytesToHex(account))?.history ?? [];
  for (let i = history.length - 1; i >= 0; i--) if (history[i]!.pos <= pos) return history[i]!.permission;
  return "none";
}

/** Which record of the log this one is; undefined where it has no place, or one beside the log. */
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

/** Those to whom a new read key is sealed: all who may read, guests among them, and open invites. Keys by hex. */
export function readKeyHolders(state: AclState): Map<string, Uint8Array> {
  const holders = new Map<string, Uint8Array>();
  for (const [name, member] of state.members)
    if (member.history.at(-1)?.permission !== "none" && member.status === "active") holders.set(name, member.account);
  for (const [name, invite] of state.invites) if (invite.permission !== "none") holders.set(name, invite.key);
  return holders;
}

/** Members who may write now, the owner apart. */
export function writingMembers(state: AclState): Uint8Array[] {
  const accounts: Uint8Array[] = [];
  for (const member of state.members.values()) {
    const permission = member.history.at(-1)?.permission ?? "none";
    if (permission !== "owner" && canWrite(permission)) accounts.push(member.account);
  }
  return accounts;
}
