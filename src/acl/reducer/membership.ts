import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { CutOff, SealedMetadata } from "../record/op.ts";
import { canWrite, type Permission } from "../record/permission.ts";
import type { Application } from "./application.ts";
import { sameKeys } from "./read-key.ts";
import { type AclState, type MemberStatus, permissionOf, writingMembers } from "./state.ts";

/** The permission of an active member; undefined for every other account. */
export function activePermission(state: AclState, account: Uint8Array): Permission | undefined {
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

export function setMember(app: Application, account: Uint8Array, change: MemberChange): void {
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
    acts: before?.acts,
  });
}

export function letIn(app: Application, account: Uint8Array, change: Omit<MemberChange, "status">): void {
  setMember(app, account, { status: "active", ...change });
  app.owed.set(bytesToHex(account), account);
}

export function endRequest(app: Application, id: Uint8Array, status: "declined" | "canceled"): Refusal | undefined {
  const request = app.state.requests.get(bytesToHex(id));
  if (!request) return refusal("acl.request_not_pending");
  app.journal.drop(app.state.requests, bytesToHex(id));
  setMember(app, request.account, { status });
  return undefined;
}

/** Changes a member's role. A cut-off is given for a member that loses the right to write, and for nobody else. */
export function demote(
  app: Application,
  account: Uint8Array,
  before: Permission,
  after: Permission,
  cutOffs: readonly CutOff[] | undefined,
): Refusal | undefined {
  const loses = canWrite(before) && !canWrite(after);
  if (loses && !cutOffs) return refusal("acl.cut_offs_missing");
  if (!loses && cutOffs) return refusal("acl.cut_offs_extra");
  setMember(app, account, { status: "active", permission: after });
  if (cutOffs) revokeWriting(app, account, cutOffs);
  return undefined;
}

function revokeWriting(app: Application, account: Uint8Array, cutOffs: readonly CutOff[]): void {
  const name = bytesToHex(account);
  app.journal.put(app.state.revocations, name, [...(app.state.revocations.get(name) ?? []), { pos: app.pos, cutOffs }]);
  app.revoked.push(account);
}

/**
 * Ends a membership. For a member who did not leave by itself, this also ends the open invites and the guest key whose
 * secrets it knows, because the new key is sealed to those that remain (ACL-6).
 */
export function remove(app: Application, account: Uint8Array, cutOffs: readonly CutOff[]): void {
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
  revokeWriting(app, account, cutOffs);
}

export function dropGuest(app: Application): void {
  const { key } = app.state.guest!;
  setMember(app, key, { status: "removed", permission: "none" });
  app.owed.delete(bytesToHex(key));
  app.journal.assign(app.state, { guest: undefined });
}

/** Ends every membership but the owner's, and with them all invites, requests and the guest key. */
export function dropEverybody(
  app: Application,
  cuts: readonly { account: Uint8Array; cutOffs: readonly CutOff[] }[],
): Refusal | undefined {
  const { state, journal } = app;
  const expected = new Map(writingMembers(state).map((account) => [bytesToHex(account), account]));
  if (
    !sameKeys(
      expected,
      cuts.map(({ account }) => ({ to: account, box: account })),
    )
  )
    return refusal("acl.cut_offs_of_writers");
  for (const { account, cutOffs } of cuts) remove(app, account, cutOffs);
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
