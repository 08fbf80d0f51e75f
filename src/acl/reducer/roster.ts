import { bytesToHex } from "../../base/bytes.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { KeyRing } from "../../change/codec/ports.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { type MemberMetadata, openMetadata } from "../record/epoch.ts";
import type { InvitablePermission, Permission } from "../record/permission.ts";
import type { AclState, MemberState, MemberStatus } from "./state.ts";

/** A member as the roster shows it (ACL-4). */
export interface RosterMember {
  identity: AccountId;
  permission: Permission;
  status: MemberStatus;
  /** What it published to the members about itself; absent while the key to it is not here. */
  metadata?: MemberMetadata;
  /** Present while a request is pending. */
  requestRecordId?: string;
}

export interface RosterInvite {
  recordId: string;
  /** `none`: the holder asks to join, and the role is chosen then. */
  permission: "none" | InvitablePermission;
  /** Public half of the key in its token. */
  key: Uint8Array;
}

/** Every account that ever had a status in the space, including the guests' shared key, in the order of the log. */
export function rosterOf(spaceId: SpaceId, state: AclState, keys: KeyRing): RosterMember[] {
  const requestByAccount = new Map<string, string>();
  for (const request of state.requests.values())
    requestByAccount.set(bytesToHex(request.account), cidFromDigest(request.id));
  return [...state.members].map(([name, member]) => rowOf(spaceId, member, keys, requestByAccount.get(name)));
}

export function rosterMember(
  spaceId: SpaceId,
  state: AclState,
  keys: KeyRing,
  account: Uint8Array,
): RosterMember | undefined {
  const name = bytesToHex(account);
  const member = state.members.get(name);
  if (!member) return undefined;
  const request = [...state.requests.values()].find((one) => bytesToHex(one.account) === name);
  return rowOf(spaceId, member, keys, request && cidFromDigest(request.id));
}

export function invitesOf(state: AclState): RosterInvite[] {
  return [...state.invites.values()].map(({ id, key, permission }) => ({
    recordId: cidFromDigest(id),
    permission,
    key,
  }));
}

function rowOf(
  spaceId: SpaceId,
  member: MemberState,
  keys: KeyRing,
  requestRecordId: string | undefined,
): RosterMember {
  const identity = accountIdOf(member.account);
  const key = member.metadata && keys.byId(member.metadata.keyId);
  const metadata = member.metadata && key && openMetadata(spaceId, key, identity, member.metadata);
  return {
    identity,
    permission: member.history.at(-1)?.permission ?? "none",
    status: member.status,
    ...(metadata ? { metadata } : {}),
    ...(requestRecordId === undefined ? {} : { requestRecordId }),
  };
}
