import type { AclSecrets } from "../../account/own-space/acl-secrets.ts";
import {
  acceptRequest,
  addAccounts,
  changePermissions,
  declineRequest,
  mintGuestKey,
  mintInvite,
  publishProfile,
  removeAccounts,
  revokeGuestKey,
  revokeInvite,
  revokeInvites,
  stopSharing,
  transferOwnership,
} from "../../acl/compose/actions.ts";
import type { AclBuild } from "../../acl/compose/compose.ts";
import type { MemberMetadata } from "../../acl/record/epoch.ts";
import { encodeInviteToken, type InviteToken } from "../../acl/record/invite-token.ts";
import type { GrantablePermission } from "../../acl/record/permission.ts";
import { transportSecretOf } from "../../acl/record/space-keys.ts";
import { invitesOf } from "../../acl/reducer/roster.ts";
import { pendingRequestOf } from "../../acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { createEvents } from "../../base/events.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf, parseAccountId } from "../../crypto/account-id.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import type { Invite, InviteCreateBody, JoinRequest, Member, MemberFrame, MintedToken } from "../../protocol/member.ts";
import { refusal } from "../../protocol/refusals.ts";
import { memberIn, PAIR_PROFILES_DATASET, writePairProfile } from "../../space/pair-profiles.ts";
import type { Space } from "../../space/space.ts";
import { memberFrames, membersOf, requestsIn, viewOf } from "./member-view.ts";

const SEED_BYTES = 32;
const PROFILE_FIELDS = ["name", "description", "iconCid"] as const;

interface Grant {
  identity: string;
  permission: GrantablePermission;
}

interface MemberServiceDeps {
  space: Space;
  account: Account;
  secrets: AclSecrets;
  /**
   * Changes the ACL in the way that is possible now: through the network, at once as the owner, or as a proposal to the owner.
   */
  changeAcl(build: AclBuild): Promise<unknown>;
  /** Notifies accounts that they were added, or let in. */
  announce(identities: readonly string[]): Promise<void>;
  /** Notifies an account that its request was declined. */
  refuse(identity: string, requestId: Uint8Array): Promise<void>;
  /** What this account says of itself. */
  profile(): MemberMetadata | undefined;
}

/**
 * Who may do what in an open space, and its invites. What an owner does takes effect at once; without a network, what
 * somebody else does is put to the owner's devices. All that acts throws `acl.forbidden` where the account's role does not allow it (ACL-2).
 */
export type MemberService = ReturnType<typeof createMemberService>;

export function createMemberService(deps: MemberServiceDeps) {
  const { space, secrets, account } = deps;
  const events = createEvents<{ changed: [frame: MemberFrame] }>();
  const act = async (build: AclBuild): Promise<void> => void (await deps.changeAcl(build));

  let shown = membersOf(space);
  const notify = (): void => {
    const now = membersOf(space);
    const frames = memberFrames(shown, now);
    shown = now;
    for (const frame of frames) events.emit("changed", frame);
  };
  const stopRights = space.events.on("aclChanged", notify);
  const stopProfiles = space.events.on("committed", (batch) => {
    if (batch.touched.some(({ dataset }) => dataset === PAIR_PROFILES_DATASET)) notify();
  });

  /** A dry run: throws what acting would throw, before a secret is kept for the action. */
  const check = (build: AclBuild): void => void build(space.aclService.context());

  const tokenOf = (kind: InviteToken["kind"], seed: Uint8Array): string => {
    const { id: spaceId } = space;
    const { basis, epoch } = mintedAt(space, publicKeyOfSeed(seed));
    if (kind === "request") {
      const { keyId, metadataKey } = epoch;
      return encodeInviteToken({ kind, spaceId, seed, basis, keyId, metadataKey, receivers: receiversIn(space) });
    }
    const key = space.keys.byId(epoch.keyId);
    if (!key) throw svcError("space.not_accepted", { spaceId, status: "active" });
    return encodeInviteToken({ kind, spaceId, seed, transportSecret: transportSecretOf(spaceId, key) });
  };

  /** Sends this account's profile to those who are members or may become members, unless they have it. */
  const introduce = async (): Promise<void> => {
    const role = space.role();
    if (role === "none" || role === "guest") return;
    if (space.header.kind === "onetoone") return writePairProfile(space, deps.profile());
    const profile = deps.profile() ?? {};
    const known = memberIn(space, space.accountKey)?.metadata ?? {};
    if (!PROFILE_FIELDS.every((field) => (profile[field] ?? "") === (known[field] ?? "")))
      await act((context) => publishProfile(context, profile));
  };

  /**
   * Drops secrets of ended invites. A secret is kept before its invite is in the log, so none is dropped while something waits
   * for the owner.
   */
  const dropDeadSecrets = async (): Promise<void> => {
    if (space.acl.pending.list().length > 0) return;
    const live = [...space.acl.state.invites.values()].map(({ key }) => key);
    const { guest } = space.acl.state;
    await secrets.prune(space.id, "invites", live);
    await secrets.prune(space.id, "guests", guest ? [guest.key] : []);
  };

  const invites = (): Invite[] =>
    invitesOf(space.acl.state).map(({ recordId, permission, key }) => {
      const seed = secrets.seedOf(space.id, "invites", key);
      const kind = permission === "none" ? "request" : "member";
      return { recordId, permission, ...(seed ? { inviteToken: tokenOf(kind, seed) } : {}) };
    });

  return {
    list: (): Member[] => membersOf(space),
    requests: (): JoinRequest[] => requestsIn(membersOf(space)),
    /** Returns an account that is, was or asks to be a member of the space. Throws `identity.not_found`. */
    get(identity: string): Member {
      const key = parseAccountId(identity);
      const member = key && memberIn(space, key);
      if (!member) throw svcError("identity.not_found", { identity });
      return viewOf(member);
    },
    /** Returns this account; an account that reads by a guest key is the guest of the roster. */
    me(): Member {
      const member = memberIn(space, space.accountKey);
      return member ? viewOf(member) : { identity: account.id, permission: "none", status: "unknown" };
    },
    /** Calls the listener with every change of the roster. Returns a function that stops this. */
    subscribe: (listener: (frame: MemberFrame) => void): (() => void) => events.on("changed", listener),
    watched: (): boolean => events.isHeard("changed"),
    /** After the account's profile changed: notifies the members of a shared space. */
    async profileChanged(): Promise<void> {
      if (space.acl.state.members.size > 1) await introduce();
    },

    async accept(requestRecordId: string, permission: GrantablePermission): Promise<void> {
      const asking = space.acl.state.requests.get(bytesToHex(digestOfCid(requestRecordId) ?? new Uint8Array(0)));
      await act((context) => acceptRequest(context, requestRecordId, permission));
      if (asking) await deps.announce([accountIdOf(asking.account)]);
      await introduce();
    },
    async decline(identity: string): Promise<void> {
      const key = parseAccountId(identity);
      const asking = key && pendingRequestOf(space.acl.state, key);
      await act((context) => declineRequest(context, identity));
      if (asking) await deps.refuse(identity, asking.id);
    },
    setPermissions: (changes: readonly Grant[]) =>
      act((context) => changePermissions(context, distinct("changes", changes))),
    remove: (identities: readonly string[]) => act((context) => removeAccounts(context, [...new Set(identities)])),
    async add(accounts: readonly (Grant & { metadata?: MemberMetadata })[]): Promise<void> {
      await act((context) => addAccounts(context, distinct("accounts", accounts)));
      await deps.announce(accounts.map(({ identity }) => identity));
      await introduce();
    },
    transferOwnership: (newOwner: string, oldPermission: GrantablePermission) =>
      act((context) => transferOwnership(context, newOwner, oldPermission)),
    stopSharing: () => act(stopSharing),

    invites,
    /** Throws `invite.not_found`. */
    invite(recordId: string): Invite {
      const invite = invites().find((one) => one.recordId === recordId);
      if (!invite) throw svcError("invite.not_found", { recordId });
      return invite;
    },
    /** Makes a new invite that replaces the existing ones. */
    async mintInvite({ mode, permission }: InviteCreateBody): Promise<MintedToken> {
      const seed = randomBytes(SEED_BYTES);
      const kind = inviteKind(mode, permission);
      const build: AclBuild = (context) => mintInvite(context, seed, kind);
      check(build);
      const tokenKind = kind.mode === "open" ? "member" : "request";
      tokenOf(tokenKind, seed); // throws before a secret is kept for it
      await secrets.keep(space.id, "invites", seed);
      await act(build);
      const inviteToken = tokenOf(tokenKind, seed);
      await dropDeadSecrets();
      await introduce();
      return { spaceId: space.id, inviteToken };
    },
    async revokeInvite(recordId: string): Promise<void> {
      await act((context) => revokeInvite(context, recordId));
      await dropDeadSecrets();
    },
    async revokeInvites(): Promise<void> {
      await act(revokeInvites);
      await dropDeadSecrets();
    },

    /** Returns the space's guest key; makes one if there is none. */
    async guestKey(): Promise<MintedToken> {
      const fresh = randomBytes(SEED_BYTES);
      check((context) => mintGuestKey(context, fresh));
      const { guest } = space.acl.state;
      const known = guest && secrets.seedOf(space.id, "guests", guest.key);
      if (known) return { spaceId: space.id, inviteToken: tokenOf("guest", known) };
      tokenOf("guest", fresh); // throws before a secret is kept for it
      await secrets.keep(space.id, "guests", fresh);
      // The secret of this key is with a former owner, or with a device that has not been heard of, so the key cannot be shown
      // again.
      if (guest) await act(revokeGuestKey);
      await act((context) => mintGuestKey(context, fresh));
      const minted = space.acl.state.guest;
      const seed = minted && secrets.seedOf(space.id, "guests", minted.key);
      return { spaceId: space.id, inviteToken: tokenOf("guest", seed ?? fresh) };
    },
    async revokeGuestKey(): Promise<void> {
      await act(revokeGuestKey);
      await dropDeadSecrets();
    },

    close(): void {
      stopRights();
      stopProfiles();
    },
  };
}

/** Returns the record with which a token's key came, and its epoch: so the text of a token never changes. */
function mintedAt({ acl }: Space, key: Uint8Array) {
  const { state } = acl;
  const pos = state.usedKeys.get(bytesToHex(key)) ?? acl.head().pos;
  const { epoch } = state.epochs.findLast((entry) => entry.pos <= pos)!;
  return { basis: acl.records()[pos]!.id, epoch };
}

/** Returns the accounts that receive requests to join by an invite of this account. */
function receiversIn({ acl, accountKey }: Space): Uint8Array[] {
  const { owner } = acl.state;
  return [accountKey, ...(owner && !equalBytes(owner, accountKey) ? [owner] : [])];
}

/** Throws `request.invalid_field` for a role without `open`; `request.missing_field` for `open` without a role. */
function inviteKind(mode: InviteCreateBody["mode"], permission: InviteCreateBody["permission"]) {
  if (mode === "open") {
    if (!permission) throw refusedAs("request.missing_field", { field: "permission" }, refusal("invite.no_role"));
    return { mode, permission } as const;
  }
  if (permission)
    throw refusedPart("request.invalid_field", { field: "permission" }, refusal("grant.open_only"), "colon");
  return { mode: "request" } as const;
}

/** Throws `request.invalid_field` when an account is named twice in the list. */
function distinct<T extends Grant>(list: string, grants: readonly T[]): readonly T[] {
  const seen = new Set<string>();
  for (const [index, { identity }] of grants.entries()) {
    if (seen.has(identity)) {
      const field = `${list}[${index}].identity`;
      throw refusedPart("request.invalid_field", { field }, refusal("grant.twice"), "colon");
    }
    seen.add(identity);
  }
  return grants;
}
