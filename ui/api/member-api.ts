import type { Invite, Member, MintedToken } from "../../src/protocol/member.ts";
import { call, spacePath } from "./api-client.ts";

export const PERMISSIONS = ["reader", "writer", "admin"] as const;

/** Requests on the members of one space. */
export function memberApi(spaceId: string) {
  const path = (...segments: string[]) => spacePath(spaceId, ...segments);
  return {
    streamPath: path("members", "subscribe"),
    list: async () => (await call<{ members: Member[] }>("GET", path("members"))).members,
    accept: (requestRecordId: string, permission: string) =>
      call<void>("POST", path("acl", "accept"), { requestRecordId, permission }),
    decline: (identity: string) => call<void>("POST", path("acl", "decline"), { identity }),
    setPermission: (identity: string, permission: string) =>
      call<void>("POST", path("acl", "permissions"), { changes: [{ identity, permission }] }),
    remove: (identity: string) => call<void>("POST", path("acl", "remove"), { identities: [identity] }),
    add: (identity: string, permission: string) =>
      call<void>("POST", path("acl", "add"), { accounts: [{ identity, permission }] }),
    invites: async () => (await call<{ invites: Invite[] }>("GET", path("invites"))).invites,
    /** Without a permission, people who use the invite must ask first. */
    invite: (permission: string) =>
      call<MintedToken>("POST", path("invites"), permission === "" ? {} : { mode: "open", permission }),
    revokeInvite: (recordId: string) => call<void>("DELETE", path("invites", recordId)),
    makeGuestKey: () => call<MintedToken>("POST", path("guest-key")),
    revokeGuestKey: () => call<void>("DELETE", path("guest-key")),
    leave: () => call<void>("POST", path("acl", "self-remove")),
  };
}

export type MemberApi = ReturnType<typeof memberApi>;

export const joinApi = {
  /** Those who decide see the name; when it is empty, they see the profile's. */
  join: (inviteToken: string, name: string) =>
    call<{ id: string; status: string }>("POST", "/v1/spaces/join", {
      inviteToken,
      ...(name === "" ? {} : { metadata: { name } }),
    }),
  startOneToOne: (otherIdentity: string) => call<{ id: string }>("POST", "/v1/spaces/one-to-one", { otherIdentity }),
  acceptOneToOne: (spaceId: string) => call<{ id: string }>("POST", spacePath(spaceId, "one-to-one", "accept")),
  declineOneToOne: (spaceId: string) => call<void>("POST", spacePath(spaceId, "one-to-one", "decline")),
  acceptInvite: (spaceId: string) => call<{ id: string }>("POST", spacePath(spaceId, "invite", "accept")),
  declineInvite: (spaceId: string) => call<void>("POST", spacePath(spaceId, "invite", "decline")),
  cancel: (spaceId: string) => call<void>("POST", spacePath(spaceId, "acl", "cancel-join")),
};
