import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { canSealTo } from "../../crypto/box.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { AclOp } from "../record/op.ts";
import { canManage, mayChangeMember, mayGrant, type Permission } from "../record/permission.ts";
import { isProven } from "../record/signed-parts.ts";
import type { Application, OpSource } from "./application.ts";
import {
  activePermission,
  demote,
  dropEverybody,
  dropGuest,
  endRequest,
  letIn,
  remove,
  setMember,
} from "./membership.ts";
import { giveReadKey, startEpoch } from "./read-key.ts";
import { type MemberStatus, pendingRequestOf, permissionOf } from "./state.ts";

/** Bounds on what a space can hold (ACL-18); members and open invites are bounded by `LIMITS.spaceMembers`. */
const MAX_LIVE_INVITES = 64;
const MAX_PENDING_REQUESTS = 1000;

const MAY_COME: ReadonlySet<MemberStatus | undefined> = new Set([undefined, "removed", "declined", "canceled"]);

export type RuleOp = Exclude<AclOp, { op: "root" | "sequenced" | "alias" }>;
type OpOf<K extends RuleOp["op"]> = Extract<RuleOp, { op: K }>;
/** The account that acts, its role, and the id of what it signed. */
type Actor = OpSource & { readonly role: Permission };
/** Why the actor may not do this now; undefined when it was done. */
type Outcome = Refusal | undefined;
type Rule = (app: Application, op: never, actor: Actor) => Outcome;

const RULES: { readonly [K in RuleOp["op"]]: (app: Application, op: OpOf<K>, actor: Actor) => Outcome } = {
  invite,
  inviteRevoke,
  requestJoin,
  inviteJoin,
  requestAccept,
  requestDecline,
  requestCancel,
  permissionChange,
  accountAdd,
  accountRemove,
  selfRemove,
  ownershipChange,
  guestKey,
  guestRevoke,
  readKeyChange,
  shareKey,
  stopSharing,
  spaceDelete,
  profile,
};

/**
 * Applies one op, or returns why its author may not do this now (ACL-2). The caller undoes what was changed before the
 * refusal.
 */
export function applyOp(app: Application, op: RuleOp, source: OpSource): Outcome {
  const rule: Rule = RULES[op.op];
  return rule(app, op as never, { ...source, role: permissionOf(app.state, source.actor) });
}

function invite(app: Application, op: OpOf<"invite">, { actor, role, sourceId }: Actor): Outcome {
  const { state, journal } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "invite" });
  if (state.invites.size >= MAX_LIVE_INVITES) return refusal("acl.invites_full");
  const fault = useKey(app, op.key);
  if (fault) return fault;
  const permission = op.mode === "open" ? op.permission : "none";
  journal.put(state.invites, bytesToHex(op.key), { key: op.key, id: sourceId, author: actor, permission });
  if (op.mode === "open") app.owed.set(bytesToHex(op.key), op.key);
  return undefined;
}

function inviteRevoke(app: Application, op: OpOf<"inviteRevoke">, { role }: Actor): Outcome {
  const { state, journal } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "inviteRevoke" });
  const invite = state.invites.get(bytesToHex(op.key));
  if (!invite) return refusal("acl.invite_not_live");
  journal.drop(state.invites, bytesToHex(op.key));
  app.owed.delete(bytesToHex(op.key));
  if (invite.permission !== "none") app.rotationDue = true;
  return undefined;
}

function requestJoin(app: Application, op: OpOf<"requestJoin">, { actor, sourceId }: Actor): Outcome {
  const { state, journal } = app;
  const fault = joinFault(app, op, actor, "none");
  if (fault) return fault;
  if (state.requests.size >= MAX_PENDING_REQUESTS) return refusal("acl.requests_full");
  setMember(app, actor, { status: "joining", metadata: op.metadata });
  journal.put(state.requests, bytesToHex(sourceId), { id: sourceId, account: actor });
  return undefined;
}

function inviteJoin(app: Application, op: OpOf<"inviteJoin">, { actor }: Actor): Outcome {
  const { state } = app;
  const fault = joinFault(app, op, actor, "open");
  if (fault) return fault;
  const { permission } = state.invites.get(bytesToHex(op.invite))!;
  letIn(app, actor, { permission, metadata: op.metadata, joinedBy: op.invite });
  return undefined;
}

function requestAccept(app: Application, op: OpOf<"requestAccept">, { role }: Actor): Outcome {
  const { state, journal } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "requestAccept" });
  if (!mayGrant(role, op.permission)) return refusal("acl.admin_grants_admin");
  const request = state.requests.get(bytesToHex(op.request));
  if (!request) return refusal("acl.request_not_pending");
  journal.drop(state.requests, bytesToHex(op.request));
  letIn(app, request.account, { permission: op.permission });
  return undefined;
}

function requestDecline(app: Application, op: OpOf<"requestDecline">, { role }: Actor): Outcome {
  if (!canManage(role)) return refusal("acl.managers_only", { act: "requestDecline" });
  return endRequest(app, op.request, "declined");
}

function requestCancel(app: Application, op: OpOf<"requestCancel">, { actor }: Actor): Outcome {
  const { state } = app;
  const request = state.requests.get(bytesToHex(op.request));
  if (request && !equalBytes(request.account, actor)) return refusal("acl.request_of_another");
  return endRequest(app, op.request, "canceled");
}

function permissionChange(app: Application, op: OpOf<"permissionChange">, { role }: Actor): Outcome {
  const { state } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "permissionChange" });
  const before = activePermission(state, op.account);
  if (before === undefined) return refusal("acl.not_active");
  if (!mayChangeMember(role, before)) return refusal("acl.may_not_change");
  if (!mayGrant(role, op.permission)) return refusal("acl.admin_grants_admin");
  if (before === op.permission) return refusal("acl.same_permission");
  return demote(app, op.account, before, op.permission, op.cutOffs);
}

function accountAdd(app: Application, op: OpOf<"accountAdd">, { role }: Actor): Outcome {
  const { state } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "accountAdd" });
  if (!mayGrant(role, op.permission)) return refusal("acl.admin_grants_admin");
  if (!MAY_COME.has(state.members.get(bytesToHex(op.account))?.status)) return refusal("acl.member_or_joining");
  if (state.usedKeys.has(bytesToHex(op.account))) return refusal("acl.account_is_invite_key");
  if (!canSealTo(op.account)) return refusal("acl.account_key");
  letIn(app, op.account, { permission: op.permission, metadata: op.metadata });
  return undefined;
}

function accountRemove(app: Application, op: OpOf<"accountRemove">, { actor, role }: Actor): Outcome {
  const { state } = app;
  if (!canManage(role)) return refusal("acl.managers_only", { act: "accountRemove" });
  if (equalBytes(op.account, actor)) return refusal("acl.removes_itself");
  const status = state.members.get(bytesToHex(op.account))?.status;
  if (status !== "active" && status !== "removing") return refusal("acl.no_member");
  if (status === "active" && !mayChangeMember(role, permissionOf(state, op.account)))
    return refusal("acl.may_not_remove");
  remove(app, op.account, op.cutOffs);
  app.rotationDue = true;
  return undefined;
}

function selfRemove(app: Application, _op: OpOf<"selfRemove">, { actor }: Actor): Outcome {
  const { state } = app;
  const permission = activePermission(state, actor);
  if (permission === undefined) return refusal("acl.leave_not_active");
  if (permission === "owner") return refusal("acl.leave_owner");
  if (permission === "guest") return refusal("acl.leave_guest");
  setMember(app, actor, { status: "removing", permission: "none" });
  return undefined;
}

function ownershipChange(app: Application, op: OpOf<"ownershipChange">, { actor, role }: Actor): Outcome {
  const { state, journal } = app;
  if (role !== "owner") return refusal("acl.owner_only", { act: "ownershipChange" });
  if (app.header.kind === "derived") return refusal("acl.derived_ownership");
  const before = activePermission(state, op.account);
  if (before === undefined || before === "guest") return refusal("acl.owner_not_active");
  if (before === "owner") return refusal("acl.owner_already");
  setMember(app, op.account, { status: "active", permission: "owner" });
  journal.assign(state, { owner: op.account });
  return demote(app, actor, "owner", op.oldPermission, op.cutOffs);
}

function guestKey(app: Application, op: OpOf<"guestKey">, { actor, role }: Actor): Outcome {
  const { state, journal } = app;
  if (role !== "owner") return refusal("acl.owner_only", { act: "guestKey" });
  if (state.guest) return refusal("acl.guest_key_exists");
  const fault = useKey(app, op.key);
  if (fault) return fault;
  journal.assign(state, { guest: { key: op.key, author: actor } });
  letIn(app, op.key, { permission: "guest" });
  return undefined;
}

function guestRevoke(app: Application, _op: OpOf<"guestRevoke">, { role }: Actor): Outcome {
  const { state } = app;
  if (role !== "owner") return refusal("acl.owner_only", { act: "guestRevoke" });
  if (!state.guest) return refusal("acl.guest_key_absent");
  dropGuest(app);
  app.rotationDue = true;
  return undefined;
}

function readKeyChange(app: Application, op: OpOf<"readKeyChange">, { role }: Actor): Outcome {
  if (!canManage(role)) return refusal("acl.managers_only", { act: "readKeyChange" });
  return startEpoch(app, op.epoch);
}

function shareKey(app: Application, op: OpOf<"shareKey">): Outcome {
  return giveReadKey(app, op.keyId, op.sealed);
}

function stopSharing(app: Application, op: OpOf<"stopSharing">, { role }: Actor): Outcome {
  if (role !== "owner") return refusal("acl.owner_only", { act: "stopSharing" });
  return dropEverybody(app, op.cuts);
}

function spaceDelete(app: Application, _op: OpOf<"spaceDelete">, { role }: Actor): Outcome {
  const { state, journal, pos } = app;
  if (role !== "owner") return refusal("acl.owner_only", { act: "spaceDelete" });
  if (app.header.kind !== "created") return refusal("acl.derived_permanent");
  journal.assign(state, { deletedAt: pos });
  return undefined;
}

function profile(app: Application, op: OpOf<"profile">, { actor }: Actor): Outcome {
  const { state } = app;
  const permission = activePermission(state, actor);
  if (permission === undefined || permission === "guest") return refusal("acl.profile_not_active");
  setMember(app, actor, { status: "active", metadata: op.metadata });
  return undefined;
}

/**
 * Keys of invites and guests must be fresh: never used before, and no account's, because the read key is sealed to them.
 */
function useKey(app: Application, key: Uint8Array): Outcome {
  if (!canSealTo(key)) return refusal("acl.invite_key");
  const name = bytesToHex(key);
  if (app.state.usedKeys.has(name) || app.state.members.has(name)) return refusal("acl.key_used");
  app.journal.put(app.state.usedKeys, name, app.pos);
  return undefined;
}

function joinFault(
  app: Application,
  op: { invite: Uint8Array; proof: Uint8Array },
  actor: Uint8Array,
  mode: "none" | "open",
): Outcome {
  const { state } = app;
  const invite = state.invites.get(bytesToHex(op.invite));
  if (!invite) return refusal("acl.invite_not_live");
  if ((invite.permission === "none") !== (mode === "none")) return refusal("acl.invite_kind");
  if (pendingRequestOf(state, actor)) return refusal("acl.request_pending");
  if (!MAY_COME.has(state.members.get(bytesToHex(actor))?.status)) return refusal("acl.member_already");
  if (state.usedKeys.has(bytesToHex(actor))) return refusal("acl.account_is_invite_key");
  if (!canSealTo(actor)) return refusal("acl.account_key");
  return isProven(op, app.space, actor) ? undefined : refusal("acl.invite_proof");
}
