import { bytesToHex, equalBytes } from "../base/bytes.ts";
import { admitPublicKey } from "../crypto/public-key.ts";
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
import type { AclOp } from "./op.ts";
import { canManage, mayGrant, mayTouch, type Permission } from "./permission.ts";
import { giveReadKey, startEpoch } from "./read-key.ts";
import { isProven } from "./signed-parts.ts";
import { type MemberStatus, pendingRequestOf, permissionOf } from "./state.ts";

/** Bounds on what a space can hold; members and open invites are bounded by `LIMITS.spaceMembers`. */
const MAX_LIVE_INVITES = 64;
const MAX_PENDING_REQUESTS = 1000;

const MAY_COME: ReadonlySet<MemberStatus | undefined> = new Set([undefined, "removed", "declined", "canceled"]);

type RuleOp = Exclude<AclOp, { op: "root" | "sequenced" | "alias" }>;
type OpOf<K extends RuleOp["op"]> = Extract<RuleOp, { op: K }>;
/** Who acts, as what, and the id of what it signed. */
type Actor = OpSource & { readonly role: Permission };
/** Why the actor may not do this now; undefined when it was done. */
type Refusal = string | undefined;
type Rule = (app: Application, op: never, actor: Actor) => Refusal;

const RULES: { readonly [K in RuleOp["op"]]: (app: Application, op: OpOf<K>, actor: Actor) => Refusal } = {
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

/** Applies one op, or answers why its author may not do this now (ACL-2). What it changed before stays to be undone. */
export function applyOp(app: Application, op: RuleOp, source: OpSource): Refusal {
  const rule: Rule = RULES[op.op];
  return rule(app, op as never, { ...source, role: permissionOf(app.state, source.actor) });
}

function invite(app: Application, op: OpOf<"invite">, { actor, role, sourceId }: Actor): Refusal {
  const { state, journal } = app;
  if (!canManage(role)) return "only the owner and admins mint invites";
  if (state.invites.size >= MAX_LIVE_INVITES) return "the space has too many live invites";
  const fault = useKey(app, op.key);
  if (fault) return fault;
  const permission = op.mode === "open" ? op.permission : "none";
  journal.put(state.invites, bytesToHex(op.key), { key: op.key, id: sourceId, author: actor, permission });
  if (op.mode === "open") app.owed.set(bytesToHex(op.key), op.key);
  return undefined;
}

function inviteRevoke(app: Application, op: OpOf<"inviteRevoke">, { role }: Actor): Refusal {
  const { state, journal } = app;
  if (!canManage(role)) return "only the owner and admins revoke invites";
  const invite = state.invites.get(bytesToHex(op.key));
  if (!invite) return "no such invite is live";
  journal.drop(state.invites, bytesToHex(op.key));
  app.owed.delete(bytesToHex(op.key));
  if (invite.permission !== "none") app.rotationDue = true;
  return undefined;
}

function requestJoin(app: Application, op: OpOf<"requestJoin">, { actor, sourceId }: Actor): Refusal {
  const { state, journal } = app;
  const fault = joinFault(app, op, actor, "none");
  if (fault) return fault;
  if (state.requests.size >= MAX_PENDING_REQUESTS) return "too many requests are pending";
  setMember(app, actor, { status: "joining", metadata: op.metadata });
  journal.put(state.requests, bytesToHex(sourceId), { id: sourceId, account: actor });
  return undefined;
}

function inviteJoin(app: Application, op: OpOf<"inviteJoin">, { actor }: Actor): Refusal {
  const { state } = app;
  const fault = joinFault(app, op, actor, "open");
  if (fault) return fault;
  const { permission } = state.invites.get(bytesToHex(op.invite))!;
  letIn(app, actor, { permission, metadata: op.metadata, joinedBy: op.invite });
  return undefined;
}

function requestAccept(app: Application, op: OpOf<"requestAccept">, { role }: Actor): Refusal {
  const { state, journal } = app;
  if (!canManage(role)) return "only the owner and admins accept requests";
  if (!mayGrant(role, op.permission)) return "an admin grants no admin";
  const request = state.requests.get(bytesToHex(op.request));
  if (!request) return "no such request is pending";
  journal.drop(state.requests, bytesToHex(op.request));
  letIn(app, request.account, { permission: op.permission });
  return undefined;
}

function requestDecline(app: Application, op: OpOf<"requestDecline">, { role }: Actor): Refusal {
  if (!canManage(role)) return "only the owner and admins decline requests";
  return endRequest(app, op.request, "declined");
}

function requestCancel(app: Application, op: OpOf<"requestCancel">, { actor }: Actor): Refusal {
  const { state } = app;
  const request = state.requests.get(bytesToHex(op.request));
  if (request && !equalBytes(request.account, actor)) return "only who asked cancels a request";
  return endRequest(app, op.request, "canceled");
}

function permissionChange(app: Application, op: OpOf<"permissionChange">, { role }: Actor): Refusal {
  const { state } = app;
  if (!canManage(role)) return "only the owner and admins change permissions";
  const before = activePermission(state, op.account);
  if (before === undefined) return "the account is no active member";
  if (!mayTouch(role, before)) return "this member's permission is not the author's to change";
  if (!mayGrant(role, op.permission)) return "an admin grants no admin";
  if (before === op.permission) return "the member has this permission already";
  return demote(app, op.account, before, op.permission, op.pins);
}

function accountAdd(app: Application, op: OpOf<"accountAdd">, { role }: Actor): Refusal {
  const { state } = app;
  if (!canManage(role)) return "only the owner and admins add accounts";
  if (!mayGrant(role, op.permission)) return "an admin grants no admin";
  if (!MAY_COME.has(state.members.get(bytesToHex(op.account))?.status))
    return "the account is a member already, or asks to be one";
  if (state.usedKeys.has(bytesToHex(op.account))) return "the account is the key of an invite";
  letIn(app, op.account, { permission: op.permission, metadata: op.metadata });
  return undefined;
}

function accountRemove(app: Application, op: OpOf<"accountRemove">, { actor, role }: Actor): Refusal {
  const { state } = app;
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

function selfRemove(app: Application, _op: OpOf<"selfRemove">, { actor }: Actor): Refusal {
  const { state } = app;
  const permission = activePermission(state, actor);
  if (permission === undefined) return "only an active member leaves";
  if (permission === "owner") return "the owner leaves only after a transfer of ownership";
  if (permission === "guest") return "a guest key does not leave";
  setMember(app, actor, { status: "removing", permission: "none" });
  return undefined;
}

function ownershipChange(app: Application, op: OpOf<"ownershipChange">, { actor, role }: Actor): Refusal {
  const { state, journal } = app;
  if (role !== "owner") return "only the owner transfers ownership";
  if (app.header.kind === "derived") return "a derived space stays its account's";
  const before = activePermission(state, op.account);
  if (before === undefined || before === "guest") return "ownership goes to an active member";
  if (before === "owner") return "the account is the owner already";
  setMember(app, op.account, { status: "active", permission: "owner" });
  journal.assign(state, { owner: op.account });
  return demote(app, actor, "owner", op.oldPermission, op.pins);
}

function guestKey(app: Application, op: OpOf<"guestKey">, { actor, role }: Actor): Refusal {
  const { state, journal } = app;
  if (role !== "owner") return "only the owner makes a guest key";
  if (state.guest) return "the space has a guest key";
  const fault = useKey(app, op.key);
  if (fault) return fault;
  journal.assign(state, { guest: { key: op.key, author: actor } });
  letIn(app, op.key, { permission: "guest" });
  return undefined;
}

function guestRevoke(app: Application, _op: OpOf<"guestRevoke">, { role }: Actor): Refusal {
  const { state } = app;
  if (role !== "owner") return "only the owner revokes the guest key";
  if (!state.guest) return "the space has no guest key";
  dropGuest(app);
  app.rotationDue = true;
  return undefined;
}

function readKeyChange(app: Application, op: OpOf<"readKeyChange">, { role }: Actor): Refusal {
  if (!canManage(role)) return "only the owner and admins change the read key";
  return startEpoch(app, op.epoch);
}

function shareKey(app: Application, op: OpOf<"shareKey">): Refusal {
  return giveReadKey(app, op.keyId, op.sealed);
}

function stopSharing(app: Application, op: OpOf<"stopSharing">, { role }: Actor): Refusal {
  if (role !== "owner") return "only the owner stops sharing";
  return dropEverybody(app, op.cuts);
}

function spaceDelete(app: Application, _op: OpOf<"spaceDelete">, { role }: Actor): Refusal {
  const { state, journal, pos } = app;
  if (role !== "owner") return "only the owner deletes the space";
  if (app.header.kind !== "created") return "derived spaces are permanent";
  journal.assign(state, { deletedAt: pos });
  return undefined;
}

function profile(app: Application, op: OpOf<"profile">, { actor }: Actor): Refusal {
  const { state } = app;
  const permission = activePermission(state, actor);
  if (permission === undefined || permission === "guest") return "only an active member has a profile here";
  setMember(app, actor, { status: "active", metadata: op.metadata });
  return undefined;
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
  return isProven(op, app.space, actor) ? undefined : "the proof is not the invite's";
}
