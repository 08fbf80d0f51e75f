import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { accountIdOf, parseAccountId } from "../../crypto/account-id.ts";
import { canSealTo } from "../../crypto/box.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { createSigner } from "../../crypto/sign.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { type MemberMetadata, sealMetadata } from "../record/epoch.ts";
import type { AclOp } from "../record/op.ts";
import {
  canManage,
  canWrite,
  type GrantablePermission,
  type InvitablePermission,
  mayChangeMember,
  mayGrant,
  type Permission,
} from "../record/permission.ts";
import { joinProofBytes } from "../record/record.ts";
import { currentEpoch, type MemberState, pendingRequestOf, permissionOf, writingMembers } from "../reducer/state.ts";
import { type AclContext, roleIn } from "./compose.ts";

/**
 * What people do to a space's ACL, as ops for the current state: rebuild them when the state has changed. An empty list
 * means that nothing has to be done (ACL-19). All throw `acl.forbidden` when the account's role does not allow it, and
 * `space.deleted` once the space is deleted.
 */

type InviteKind = { mode: "request" } | { mode: "open"; permission: InvitablePermission };

/** Mints an invite whose secret is the holder's 32-byte seed. It replaces the existing invites. */
export function mintInvite(context: AclContext, seed: Uint8Array, kind: InviteKind): AclOp[] {
  requireManager(context);
  const { publicKey } = createSigner(seed);
  return [...revokeInvites(context), { op: "invite", key: publicKey, ...kind }];
}

export function revokeInvites(context: AclContext): AclOp[] {
  requireManager(context);
  return [...context.state.invites.values()].map(({ key }) => ({ op: "inviteRevoke", key }));
}

/** Revokes the invite. Throws `invite.not_found`. */
export function revokeInvite(context: AclContext, recordId: string): AclOp[] {
  requireManager(context);
  const id = digestOfCid(recordId);
  const invite = id && [...context.state.invites.values()].find((one) => equalBytes(one.id, id));
  if (!invite) throw svcError("invite.not_found", { recordId });
  return [{ op: "inviteRevoke", key: invite.key }];
}

/**
 * Uses an invite: asks to join, or joins at once when the invite is open. Returns no ops for a member, while a request
 * is pending, and while a leaving is not complete: the log goes on then, and the joining with it. Throws
 * `invite.invalid` when the invite was revoked or replaced.
 */
export function joinByInvite(context: AclContext, seed: Uint8Array, metadata: MemberMetadata | undefined): AclOp[] {
  requireOpen(context);
  const { state, account } = context;
  const { publicKey } = account.signer;
  const signer = createSigner(seed);
  const invite = state.invites.get(bytesToHex(signer.publicKey));
  const member = state.members.get(bytesToHex(publicKey));
  if (member?.status === "active") return [];
  if (!invite) throw refusedAs("invite.invalid", {}, refusal("act.invite_gone"));
  if (member?.status === "removing") return [];
  const pending = pendingRequestOf(state, publicKey);
  if (pending && invite.permission === "none") return [];
  const fields = {
    invite: signer.publicKey,
    proof: signer.sign("invite", joinProofBytes(state.space!, signer.publicKey, publicKey)),
    ...(metadata ? { metadata: sealed(context, publicKey, metadata) } : {}),
  };
  if (invite.permission === "none") return [{ op: "requestJoin", ...fields }];
  return [...(pending ? [{ op: "requestCancel", request: pending.id } as const] : []), { op: "inviteJoin", ...fields }];
}

/** Accepts a request. Throws `request.invalid_field` when the request is not pending. */
export function acceptRequest(context: AclContext, requestRecordId: string, permission: GrantablePermission): AclOp[] {
  requireGrant(context, permission);
  const id = digestOfCid(requestRecordId);
  const request = id && context.state.requests.get(bytesToHex(id));
  if (!request)
    throw refusedPart("request.invalid_field", { field: "requestRecordId" }, refusal("act.no_request"), "colon");
  return [{ op: "requestAccept", request: request.id, permission }];
}

/** Declines the account's request. Throws `identity.not_found` unless it has one pending. */
export function declineRequest(context: AclContext, identity: string): AclOp[] {
  requireManager(context);
  const request = pendingRequestOf(context.state, parse(identity, "identity"));
  if (!request) throw refusedAs("identity.not_found", { identity }, refusal("act.account_without_request"));
  return [{ op: "requestDecline", request: request.id }];
}

/** Withdraws the account's own request, if one is pending. */
export function cancelRequest(context: AclContext): AclOp[] {
  requireOpen(context);
  const request = pendingRequestOf(context.state, context.account.signer.publicKey);
  return request ? [{ op: "requestCancel", request: request.id }] : [];
}

/**
 * Changes members' roles. Throws `identity.not_found` for an account that is no active member. Leaves out members who
 * have the role already.
 */
export function changePermissions(
  context: AclContext,
  changes: readonly { identity: string; permission: GrantablePermission }[],
): AclOp[] {
  requireManager(context);
  return changes.flatMap(({ identity, permission }, index): AclOp[] => {
    const { account } = memberOf(context, identity, `changes[${index}].identity`, "active");
    const before = permissionOf(context.state, account);
    requireMayChange(context, before);
    requireGrant(context, permission);
    if (before === permission) return [];
    const cutOffs = canWrite(before) && !canWrite(permission) ? { cutOffs: context.cutOffs(account) } : {};
    return [{ op: "permissionChange", account, permission, ...cutOffs }];
  });
}

/**
 * Makes accounts members at once; a pending request of one is accepted. Throws `request.invalid_field` for an account
 * that is a member already, or for an id that is no account.
 */
export function addAccounts(
  context: AclContext,
  accounts: readonly { identity: string; permission: GrantablePermission; metadata?: MemberMetadata }[],
): AclOp[] {
  requireManager(context);
  return accounts.map(({ identity, permission, metadata }, index): AclOp => {
    requireGrant(context, permission);
    const account = parse(identity, `accounts[${index}].identity`);
    const status = context.state.members.get(bytesToHex(account))?.status;
    const pending = pendingRequestOf(context.state, account);
    if (pending) return { op: "requestAccept", request: pending.id, permission };
    if (status === "active" || status === "removing") {
      const why = refusal(status === "active" ? "acl.member_already" : "act.account_leaving");
      throw refusedPart("request.invalid_field", { field: `accounts[${index}].identity` }, why, "reason");
    }
    const hint = metadata ? { metadata: sealed(context, account, metadata) } : {};
    return { op: "accountAdd", account, permission, ...hint };
  });
}

/**
 * Removes members. Throws `identity.not_found` for an account that is no member. Nobody can remove itself or the owner;
 * guests are removed by revoking their key.
 */
export function removeAccounts(context: AclContext, identities: readonly string[]): AclOp[] {
  requireManager(context);
  return identities.map((identity, index): AclOp => {
    const { account, status } = memberOf(context, identity, `identities[${index}]`, "active", "removing");
    const before = permissionOf(context.state, account);
    if (equalBytes(account, context.account.signer.publicKey)) throw forbidden(context, refusal("act.removes_itself"));
    if (status === "active") requireMayChange(context, before);
    return { op: "accountRemove", account, cutOffs: context.cutOffs(account) };
  });
}

/** Completes the leaving of members who left by themselves: cuts off their changes and changes the read key. */
export function completeRemovals(context: AclContext): AclOp[] {
  requireManager(context);
  const leaving = [...context.state.members.values()].filter(({ status }) => status === "removing");
  return leaving.map(({ account }) => ({ op: "accountRemove", account, cutOffs: context.cutOffs(account) }));
}

/** Gives the space to a new owner. Throws `identity.not_found` unless that is an active member. */
export function transferOwnership(context: AclContext, newOwner: string, oldPermission: GrantablePermission): AclOp[] {
  requireOwner(context);
  const { account } = memberOf(context, newOwner, "newOwner", "active");
  const own = context.account.signer.publicKey;
  if (equalBytes(account, own) || permissionOf(context.state, account) === "guest")
    throw refusedPart("request.invalid_field", { field: "newOwner" }, refusal("act.owner_to_another"), "reason");
  const cutOffs = canWrite(oldPermission) ? {} : { cutOffs: context.cutOffs(own) };
  return [{ op: "ownershipChange", account, oldPermission, ...cutOffs }];
}

/** Makes the guest key whose secret is this seed, unless a guest key exists: then its owner's devices hold its token. */
export function mintGuestKey(context: AclContext, seed: Uint8Array): AclOp[] {
  requireOwner(context);
  return context.state.guest ? [] : [{ op: "guestKey", key: createSigner(seed).publicKey }];
}

/** Revokes the guest key. Throws `guest_key.not_found`. */
export function revokeGuestKey(context: AclContext): AclOp[] {
  requireOwner(context);
  if (!context.state.guest) throw svcError("guest_key.not_found", { spaceId: context.spaceId });
  return [{ op: "guestRevoke" }];
}

/**
 * Leaves the space; for the account itself this holds at once. Throws `space.not_joined` for an account that is no active
 * member.
 */
export function leaveSpace(context: AclContext): AclOp[] {
  requireOpen(context);
  const member = context.state.members.get(bytesToHex(context.account.signer.publicKey));
  if (member?.status === "removing") return [];
  if (member?.status !== "active") throw svcError("space.not_joined", { spaceId: context.spaceId });
  const role = roleIn(context);
  if (role === "owner") throw forbidden(context, refusal("act.owner_leaves"));
  if (role === "guest") throw forbidden(context, refusal("act.guest_leaves"));
  return [{ op: "selfRemove" }];
}

/** Removes everybody but the owner, with all requests and invites. Returns no ops for a private space. */
export function stopSharing(context: AclContext): AclOp[] {
  requireOwner(context);
  const { state } = context;
  const others = [...state.members.values()].filter(
    ({ account, status }) => (status === "active" || status === "removing") && !equalBytes(account, state.owner!),
  );
  if (others.length + state.invites.size + state.requests.size === 0) return [];
  const cuts = writingMembers(state).map((account) => ({ account, cutOffs: context.cutOffs(account) }));
  return [{ op: "stopSharing", cuts }];
}

/** Deletes the space for everybody, permanently. Throws `space.derived_undeletable`. */
export function deleteSpace(context: AclContext): AclOp[] {
  requireOwner(context);
  if (context.header.kind !== "created") throw svcError("space.derived_undeletable", { spaceId: context.spaceId });
  return [{ op: "spaceDelete" }];
}

/** Publishes the account's profile to the members. */
export function publishProfile(context: AclContext, metadata: MemberMetadata): AclOp[] {
  requireOpen(context);
  const role = roleIn(context);
  if (role === "none" || role === "guest") throw forbidden(context);
  return [{ op: "profile", metadata: sealed(context, context.account.signer.publicKey, metadata) }];
}

function sealed(context: AclContext, account: Uint8Array, metadata: MemberMetadata) {
  return sealMetadata(context.spaceId, currentEpoch(context.state)!.epoch, accountIdOf(account), metadata);
}

function forbidden(context: AclContext, why?: Refusal) {
  const details = { spaceId: context.spaceId, role: roleIn(context) };
  return why ? refusedAs("acl.forbidden", details, why) : svcError("acl.forbidden", details);
}

/** Throws when the space is deleted or is a one-to-one space, because their ACL cannot change. */
function requireOpen(context: AclContext): void {
  const { spaceId, state, header } = context;
  if (state.deletedAt !== undefined) throw svcError("space.deleted", { spaceId });
  if (header.kind === "onetoone") throw forbidden(context, refusal("act.one_to_one_fixed"));
}

function requireManager(context: AclContext): void {
  requireOpen(context);
  if (!canManage(roleIn(context))) throw forbidden(context, refusal("act.managers_only"));
}

function requireOwner(context: AclContext): void {
  requireOpen(context);
  if (roleIn(context) !== "owner") throw forbidden(context, refusal("act.owner_only"));
}

function requireGrant(context: AclContext, permission: GrantablePermission): void {
  requireManager(context);
  if (!mayGrant(roleIn(context), permission)) throw forbidden(context, refusal("act.owner_makes_admins"));
}

/** Throws unless the account may change or remove a member who has this permission. */
function requireMayChange(context: AclContext, permission: Permission): void {
  if (mayChangeMember(roleIn(context), permission)) return;
  if (permission === "owner") throw forbidden(context, refusal("act.owner_stays"));
  if (permission === "guest") throw forbidden(context, refusal("act.guests_stay"));
  throw forbidden(context, refusal("act.owner_changes_admins"));
}

function parse(identity: string, field: string): Uint8Array {
  const account = parseAccountId(identity);
  if (!account || !canSealTo(account))
    throw refusedPart("request.invalid_field", { field }, refusal("act.no_account"), "is");
  return account;
}

/** `field`: the part of the request that names the account. */
function memberOf(
  context: AclContext,
  identity: string,
  field: string,
  ...statuses: readonly MemberState["status"][]
): MemberState {
  const member = context.state.members.get(bytesToHex(parse(identity, field)));
  if (!member || !statuses.includes(member.status)) throw svcError("identity.not_found", { identity });
  return member;
}
