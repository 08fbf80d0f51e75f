import { bytesToHex, equalBytes } from "../base/bytes.ts";
import { admitPublicKey } from "../crypto/public-key.ts";
import { verify } from "../crypto/sign.ts";
import type { Journal } from "./journal.ts";
import type { AclOp, EpochOp, Pin, SealedKey, SealedMetadata } from "./op.ts";
import { canManage, canWrite, mayGrant, mayTouch, type Permission } from "./permission.ts";
import { joinProofBytes } from "./record.ts";
import type { SpaceHeader } from "./space-header.ts";
import {
  type AclState,
  currentEpoch,
  type MemberStatus,
  pendingRequestOf,
  permissionOf,
  readKeyHolders,
  writingMembers,
} from "./state.ts";

/** One record on its way into the state. */
export interface Application {
  readonly state: AclState;
  readonly journal: Journal;
  readonly header: SpaceHeader;
  readonly space: Uint8Array;
  /** Position that the record takes. */
  readonly pos: number;
  /** Who may read since this record and has no box with the current key yet; by hex. */
  readonly owed: Map<string, Uint8Array>;
  /** Somebody lost the right to read: the record must bring a new key. */
  rotationDue: boolean;
  /** Accounts of whose changes only what was pinned counts since this record. */
  readonly cut: Uint8Array[];
}

/** The signed thing an op stands in: by whom, and by which id its invite or request will be known. */
export interface OpSource {
  readonly actor: Uint8Array;
  readonly unitId: Uint8Array;
}

/** Bounds on what a space can hold; members and open invites are bounded by `LIMITS.spaceMembers`. */
const MAX_LIVE_INVITES = 64;
const MAX_PENDING_REQUESTS = 1000;

const MAY_COME: ReadonlySet<MemberStatus | undefined> = new Set([undefined, "removed", "declined", "canceled"]);

type RuleOp = Exclude<AclOp, { op: "root" | "sequenced" | "alias" }>;

/** Applies one op, or answers why its author may not do this now (ACL-2). What it changed before stays to be undone. */
export function applyOp(app: Application, op: RuleOp, source: OpSource): string | undefined {
  const { state, journal, pos } = app;
  const { actor } = source;
  const role = permissionOf(state, actor);
  switch (op.op) {
    case "invite": {
      if (!canManage(role)) return "only the owner and admins mint invites";
      if (state.invites.size >= MAX_LIVE_INVITES) return "the space has too many live invites";
      const fault = useKey(app, op.key);
      if (fault) return fault;
      const permission = op.mode === "open" ? op.permission : "none";
      journal.put(state.invites, bytesToHex(op.key), { key: op.key, id: source.unitId, author: actor, permission });
      if (op.mode === "open") app.owed.set(bytesToHex(op.key), op.key);
      return undefined;
    }
    case "inviteRevoke": {
      if (!canManage(role)) return "only the owner and admins revoke invites";
      const invite = state.invites.get(bytesToHex(op.key));
      if (!invite) return "no such invite is live";
      journal.drop(state.invites, bytesToHex(op.key));
      app.owed.delete(bytesToHex(op.key));
      if (invite.permission !== "none") app.rotationDue = true;
      return undefined;
    }
    case "requestJoin": {
      const fault = joinFault(app, op, actor, "none");
      if (fault) return fault;
      if (state.requests.size >= MAX_PENDING_REQUESTS) return "too many requests are pending";
      setMember(app, actor, { status: "joining", metadata: op.metadata });
      journal.put(state.requests, bytesToHex(source.unitId), { id: source.unitId, account: actor });
      return undefined;
    }
    case "inviteJoin": {
      const fault = joinFault(app, op, actor, "open");
      if (fault) return fault;
      const { permission } = state.invites.get(bytesToHex(op.invite))!;
      letIn(app, actor, { permission, metadata: op.metadata, joinedBy: op.invite });
      return undefined;
    }
    case "requestAccept": {
      if (!canManage(role)) return "only the owner and admins accept requests";
      if (!mayGrant(role, op.permission)) return "an admin grants no admin";
      const request = state.requests.get(bytesToHex(op.request));
      if (!request) return "no such request is pending";
      journal.drop(state.requests, bytesToHex(op.request));
      letIn(app, request.account, { permission: op.permission });
      return undefined;
    }
    case "requestDecline": {
      if (!canManage(role)) return "only the owner and admins decline requests";
      return endRequest(app, op.request, "declined");
    }
    case "requestCancel": {
      const request = state.requests.get(bytesToHex(op.request));
      if (request && !equalBytes(request.account, actor)) return "only who asked cancels a request";
      return endRequest(app, op.request, "canceled");
    }
    case "permissionChange": {
      if (!canManage(role)) return "only the owner and admins change permissions";
      const before = activePermission(state, op.account);
      if (before === undefined) return "the account is no active member";
      if (!mayTouch(role, before)) return "this member's permission is not the author's to change";
      if (!mayGrant(role, op.permission)) return "an admin grants no admin";
      if (before === op.permission) return "the member has this permission already";
      return demote(app, op.account, before, op.permission, op.pins);
    }
    case "accountAdd": {
      if (!canManage(role)) return "only the owner and admins add accounts";
      if (!mayGrant(role, op.permission)) return "an admin grants no admin";
      if (!MAY_COME.has(state.members.get(bytesToHex(op.account))?.status))
        return "the account is a member already, or asks to be one";
      if (state.usedKeys.has(bytesToHex(op.account))) return "the account is the key of an invite";
      letIn(app, op.account, { permission: op.permission, metadata: op.metadata });
      return undefined;
    }
    case "accountRemove": {
      if (!canManage(role)) return "only the owner and admins remove members";
      if (equalBytes(op.account, actor)) return "nobody removes itself";
      const status = state.members.get(bytesToHex(op.account))?.status;
      if (status !== "active" && status !== "removing") return "the account is no member";
      if (status === "active" && !mayTouch(role, permissionOf(state, op.account)))
        return "this member is not the author's to remove";
      remove(app, op.account, op.pins);
      app.rotationDue = true;
      return undefined;
    }
    case "selfRemove": {
      const permission = activePermission(state, actor);
      if (permission === undefined) return "only an active member leaves";
      if (permission === "owner") return "the owner leaves only after a transfer of ownership";
      if (permission === "guest") return "a guest key does not leave";
      setMember(app, actor, { status: "removing", permission: "none" });
      return undefined;
    }
    case "ownershipChange": {
      if (role !== "owner") return "only the owner transfers ownership";
      if (app.header.kind === "derived") return "a derived space stays its account's";
      const before = activePermission(state, op.account);
      if (before === undefined || before === "guest") return "ownership goes to an active member";
      if (before === "owner") return "the account is the owner already";
      setMember(app, op.account, { status: "active", permission: "owner" });
      journal.assign(state, { owner: op.account });
      return demote(app, actor, "owner", op.oldPermission, op.pins);
    }
    case "guestKey": {
      if (role !== "owner") return "only the owner makes a guest key";
      if (state.guest) return "the space has a guest key";
      const fault = useKey(app, op.key);
      if (fault) return fault;
      journal.assign(state, { guest: { key: op.key, author: actor } });
      letIn(app, op.key, { permission: "guest" });
      return undefined;
    }
    case "guestRevoke": {
      if (role !== "owner") return "only the owner revokes the guest key";
      if (!state.guest) return "the space has no guest key";
      dropGuest(app);
      app.rotationDue = true;
      return undefined;
    }
    case "readKeyChange":
      if (!canManage(role)) return "only the owner and admins change the read key";
      return startEpoch(app, op.epoch);
    case "shareKey":
      return shareKey(app, op.keyId, op.sealed);
    case "stopSharing": {
      if (role !== "owner") return "only the owner stops sharing";
      return dropEverybody(app, op.cuts);
    }
    case "spaceDelete": {
      if (role !== "owner") return "only the owner deletes the space";
      if (app.header.kind !== "created") return "derived spaces are permanent";
      journal.assign(state, { deletedAt: pos });
      return undefined;
    }
    case "profile": {
      const permission = activePermission(state, actor);
      if (permission === undefined || permission === "guest") return "only an active member has a profile here";
      setMember(app, actor, { status: "active", metadata: op.metadata });
      return undefined;
    }
  }
}

/** The permission of an active member; undefined for everybody else. */
function activePermission(state: AclState, account: Uint8Array): Permission | undefined {
  const member = state.members.get(bytesToHex(account));
  return member?.status === "active" ? member.history.at(-1)!.permission : undefined;
}

interface MemberChange {
  status: MemberStatus;
  /** Holds from this record's position on. */
  permission?: Permission;
  metadata?: SealedMetadata | undefined;
  joinedBy?: Uint8Array;
}

function setMember(app: Application, account: Uint8Array, change: MemberChange): void {
  const name = bytesToHex(account);
  const before = app.state.members.get(name);
  const history = before?.history ?? [];
  const { permission } = change;
  app.journal.put(app.state.members, name, {
    account: before?.account ?? account,
    status: change.status,
    history: permission === undefined ? history : [...history, { pos: app.pos, permission }],
    metadata: change.metadata ?? before?.metadata,
    joinedBy: change.joinedBy ? [...(before?.joinedBy ?? []), change.joinedBy] : (before?.joinedBy ?? []),
  });
}

function letIn(app: Application, account: Uint8Array, change: Omit<MemberChange, "status">): void {
  setMember(app, account, { status: "active", ...change });
  app.owed.set(bytesToHex(account), account);
}

/** Keys of invites and guests are fresh: never seen before, and nobody's account. */
function useKey(app: Application, key: Uint8Array): string | undefined {
  const name = bytesToHex(key);
  if (app.state.usedKeys.has(name) || app.state.members.has(name)) return "the key was used before";
  app.journal.put(app.state.usedKeys, name, app.pos);
  return undefined;
}

function joinFault(
  app: Application,
  op: { invite: Uint8Array; proof: Uint8Array },
  actor: Uint8Array,
  mode: "none" | "open",
): string | undefined {
  const { state } = app;
  const invite = state.invites.get(bytesToHex(op.invite));
  if (!invite) return "the invite is not live";
  if ((invite.permission === "none") !== (mode === "none")) return "the invite is of another kind";
  if (pendingRequestOf(state, actor)) return "a request of this account is pending";
  if (!MAY_COME.has(state.members.get(bytesToHex(actor))?.status)) return "the account is a member already";
  if (state.usedKeys.has(bytesToHex(actor))) return "the account is the key of an invite";
  if (!admitPublicKey(actor)) return "the account's key is not admissible";
  return verify(op.invite, "invite", joinProofBytes(app.space, op.invite, actor), op.proof)
    ? undefined
    : "the proof is not the invite's";
}

function endRequest(app: Application, id: Uint8Array, status: "declined" | "canceled"): string | undefined {
  const request = app.state.requests.get(bytesToHex(id));
  if (!request) return "no such request is pending";
  app.journal.drop(app.state.requests, bytesToHex(id));
  setMember(app, request.account, { status });
  return undefined;
}

/** Changes a member's role. Whoever loses the right to write is pinned, and nobody else. */
function demote(
  app: Application,
  account: Uint8Array,
  before: Permission,
  after: Permission,
  pins: readonly Pin[] | undefined,
): string | undefined {
  const loses = canWrite(before) && !canWrite(after);
  if (loses && !pins) return "whoever may no longer write is pinned";
  if (!loses && pins) return "whoever may still write is not pinned";
  setMember(app, account, { status: "active", permission: after });
  if (pins) cut(app, account, pins);
  return undefined;
}

function cut(app: Application, account: Uint8Array, pins: readonly Pin[]): void {
  const name = bytesToHex(account);
  app.journal.put(app.state.cuts, name, [...(app.state.cuts.get(name) ?? []), { pos: app.pos, pins }]);
  app.cut.push(account);
}

/**
 * Ends a membership. Of who did not leave by itself, the open invites and the guest key end too whose secrets it knows:
 * the new key will be sealed to those that remain.
 */
function remove(app: Application, account: Uint8Array, pins: readonly Pin[]): void {
  const { state, journal } = app;
  const member = state.members.get(bytesToHex(account))!;
  if (member.status === "active") {
    for (const [name, invite] of [...state.invites]) {
      const knows = equalBytes(invite.author, account) || member.joinedBy.some((key) => equalBytes(key, invite.key));
      if (invite.permission !== "none" && knows) journal.drop(state.invites, name);
    }
    if (state.guest && equalBytes(state.guest.author, account)) dropGuest(app);
  }
  const lost = permissionOf(state, account) === "none" ? {} : { permission: "none" as const };
  setMember(app, account, { status: "removed", ...lost });
  app.owed.delete(bytesToHex(account));
  cut(app, account, pins);
}

function dropGuest(app: Application): void {
  const { key } = app.state.guest!;
  setMember(app, key, { status: "removed", permission: "none" });
  app.owed.delete(bytesToHex(key));
  app.journal.assign(app.state, { guest: undefined });
}

function sameKeys(expected: ReadonlyMap<string, Uint8Array>, sealed: readonly SealedKey[]): boolean {
  if (sealed.length !== expected.size) return false;
  const given = new Set(sealed.map(({ to }) => bytesToHex(to)));
  return given.size === sealed.length && [...given].every((name) => expected.has(name));
}

function startEpoch(app: Application, epoch: EpochOp): string | undefined {
  const { state, journal } = app;
  const known = new Set(state.epochs.map((entry) => bytesToHex(entry.epoch.keyId)));
  if (known.has(bytesToHex(epoch.keyId))) return "the key was used before";
  const [current] = epoch.previous;
  if (!current || !equalBytes(current.keyId, currentEpoch(state)!.epoch.keyId))
    return "the key before is not sealed under the new one";
  const previous = new Set(epoch.previous.map(({ keyId }) => bytesToHex(keyId)));
  if (previous.size !== epoch.previous.length || previous.has(bytesToHex(epoch.keyId)))
    return "a key before is given twice";
  if (!sameKeys(readKeyHolders(state), epoch.sealed)) return "the new key is not sealed to exactly those who may read";
  journal.push(state.epochs, { pos: app.pos, epoch, shared: [] });
  for (const member of [...state.members.values()])
    if (member.status === "removing") setMember(app, member.account, { status: "removed" });
  app.owed.clear();
  app.rotationDue = false;
  return undefined;
}

function shareKey(app: Application, keyId: Uint8Array, sealed: readonly SealedKey[]): string | undefined {
  const epoch = currentEpoch(app.state)!;
  if (app.owed.size === 0) return "nobody is owed the key";
  if (!equalBytes(keyId, epoch.epoch.keyId)) return "the key is not the current one";
  if (!sameKeys(app.owed, sealed)) return "the key is not sealed to exactly those who are owed it";
  for (const entry of sealed) app.journal.push(epoch.shared, entry);
  app.owed.clear();
  return undefined;
}

function dropEverybody(
  app: Application,
  cuts: readonly { account: Uint8Array; pins: readonly Pin[] }[],
): string | undefined {
  const { state, journal } = app;
  const expected = new Map(writingMembers(state).map((account) => [bytesToHex(account), account]));
  if (
    !sameKeys(
      expected,
      cuts.map(({ account }) => ({ to: account, box: account })),
    )
  )
    return "exactly those who may write are pinned";
  for (const { account, pins } of cuts) remove(app, account, pins);
  if (state.guest) dropGuest(app);
  for (const member of [...state.members.values()]) {
    const permission = permissionOf(state, member.account);
    if (member.status === "active" && permission !== "owner")
      setMember(app, member.account, { status: "removed", permission: "none" });
    if (member.status === "removing") setMember(app, member.account, { status: "removed" });
  }
  for (const request of [...state.requests.values()]) endRequest(app, request.id, "declined");
  for (const name of [...state.invites.keys()]) journal.drop(state.invites, name);
  app.owed.clear();
  app.rotationDue = true;
  return undefined;
}
