import { describe, expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import { type AclWorld, createAccount, createAclWorld } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { createSigner } from "../../crypto/sign.ts";
import { derivedSpaceGenesis } from "../../space/space.ts";
import { MAX_METADATA_BYTES, openMetadata, sealMetadata } from "../record/epoch.ts";
import type { AclOp } from "../record/op.ts";
import type { GrantablePermission } from "../record/permission.ts";
import { invitesOf, rosterMember, rosterOf } from "../reducer/roster.ts";
import { currentEpoch } from "../reducer/state.ts";
import {
  acceptRequest,
  addAccounts,
  cancelRequest,
  changePermissions,
  completeRemovals,
  declineRequest,
  deleteSpace,
  joinByInvite,
  leaveSpace,
  mintGuestKey,
  mintInvite,
  publishProfile,
  removeAccounts,
  revokeGuestKey,
  revokeInvite,
  revokeInvites,
  stopSharing,
  transferOwnership,
} from "./actions.ts";
import type { AclContext } from "./compose.ts";

type Build = (context: AclContext) => readonly AclOp[];

/** A space with one account of each role, and a request of `asker`. */
function createCast() {
  const world = createAclWorld();
  const [admin, writer, reader, asker] = [createAccount(), createAccount(), createAccount(), createAccount()];
  const grants: [Account, GrantablePermission][] = [
    [admin, "admin"],
    [writer, "writer"],
    [reader, "reader"],
  ];
  for (const [account, permission] of grants)
    world.act(world.owner, (c) => addAccounts(c, [{ identity: account.id, permission }]));
  const invite = randomBytes(32);
  world.act(world.owner, (c) => mintInvite(c, invite, { mode: "request" }));
  world.act(asker, (c) => joinByInvite(c, invite, { name: "Asker" }));
  return { world, owner: world.owner, admin, writer, reader, asker, stranger: createAccount(), invite };
}

const refusalBy = (world: AclWorld, by: Account, build: Build) => refusalOf(() => build(world.contextOf(by)));

describe("what cannot be done is refused with its code", () => {
  const { world, owner, admin, writer, reader, asker, stranger, invite } = createCast();
  const request = rosterMember(world.genesis.spaceId, world.state, world.keysOf(owner), asker.signer.publicKey)!;
  const seed = randomBytes(32);
  const grant = (identity: string, permission: GrantablePermission = "writer") => [{ identity, permission }];
  const managed: [string, Build][] = [
    ["mint an invite", (c) => mintInvite(c, seed, { mode: "request" })],
    ["revoke an invite", (c) => revokeInvite(c, "x")],
    ["revoke all invites", revokeInvites],
    ["accept", (c) => acceptRequest(c, request.requestRecordId!, "reader")],
    ["decline", (c) => declineRequest(c, asker.id)],
    ["add", (c) => addAccounts(c, grant(stranger.id))],
    ["change permissions", (c) => changePermissions(c, grant(reader.id))],
    ["remove", (c) => removeAccounts(c, [reader.id])],
    ["complete removals", completeRemovals],
  ];
  const owned: [string, Build][] = [
    ["transfer ownership", (c) => transferOwnership(c, writer.id, "admin")],
    ["make a guest key", (c) => mintGuestKey(c, seed)],
    ["revoke the guest key", revokeGuestKey],
    ["stop sharing", stopSharing],
    ["delete the space", deleteSpace],
    ["accept as admin", (c) => acceptRequest(c, request.requestRecordId!, "admin")],
    ["add as admin", (c) => addAccounts(c, grant(stranger.id, "admin"))],
    ["make an admin", (c) => changePermissions(c, grant(writer.id, "admin"))],
    ["change an admin", (c) => changePermissions(c, grant(admin.id, "reader"))],
    ["remove an admin", (c) => removeAccounts(c, [admin.id])],
  ];
  const forbidden: [string, Account, Build][] = [
    ...managed.flatMap(([title, build]) =>
      [writer, reader, stranger].map((by): [string, Account, Build] => [title, by, build]),
    ),
    ...owned.flatMap(([title, build]) => [admin, writer].map((by): [string, Account, Build] => [title, by, build])),
    ["remove the owner", admin, (c) => removeAccounts(c, [owner.id])],
    ["remove oneself", owner, (c) => removeAccounts(c, [owner.id])],
    ["change the owner", owner, (c) => changePermissions(c, grant(owner.id))],
    ["leave one's own space", owner, leaveSpace],
    ["publish a profile", stranger, (c) => publishProfile(c, { name: "x" })],
  ];
  const roles = new Map([owner, admin, writer, reader, stranger].map((account, index) => [account, index]));
  for (const [title, by, build] of forbidden) {
    const role = ["owner", "admin", "writer", "reader", "none"][roles.get(by)!]!;
    test(`[ACL-2] ${role}: ${title}: acl.forbidden`, () => {
      const error = refusalBy(world, by, build);
      expect([error.code, error.details]).toEqual(["acl.forbidden", { spaceId: world.genesis.spaceId, role }]);
    });
  }

  const others: [string, string, Account, Build][] = [
    ["invite.not_found", "revoke an unknown invite", owner, (c) => revokeInvite(c, cidFromDigest(randomBytes(32)))],
    ["invite.not_found", "revoke what is no id", owner, (c) => revokeInvite(c, "nonsense")],
    ["invite.invalid", "join by a revoked token", stranger, (c) => joinByInvite(c, randomBytes(32), undefined)],
    ["request.invalid_field", "accept an unknown request", owner, (c) => acceptRequest(c, "nonsense", "reader")],
    ["identity.not_found", "decline who did not ask", owner, (c) => declineRequest(c, reader.id)],
    ["identity.not_found", "change who is no member", owner, (c) => changePermissions(c, grant(stranger.id))],
    ["identity.not_found", "change who only asked", owner, (c) => changePermissions(c, grant(asker.id))],
    ["identity.not_found", "remove who is no member", owner, (c) => removeAccounts(c, [stranger.id])],
    ["identity.not_found", "transfer to who is no member", owner, (c) => transferOwnership(c, stranger.id, "admin")],
    ["request.invalid_field", "transfer to oneself", owner, (c) => transferOwnership(c, owner.id, "admin")],
    ["request.invalid_field", "add a member", owner, (c) => addAccounts(c, grant(reader.id))],
    ["request.invalid_field", "add what is no account id", owner, (c) => addAccounts(c, grant("A"))],
    ["request.invalid_field", "remove what is no account id", owner, (c) => removeAccounts(c, ["A"])],
    ["guest_key.not_found", "revoke no guest key", owner, revokeGuestKey],
    ["space.not_joined", "leave what one is not in", stranger, leaveSpace],
  ];
  for (const [code, title, by, build] of others)
    test(`[ACL-19] ${title}: ${code}`, () => expect(refusalBy(world, by, build).code).toBe(code));

  test("[ACL-19] what is so already needs nothing", () => {
    const context = (by: Account) => world.contextOf(by);
    expect(changePermissions(context(owner), grant(reader.id, "reader"))).toEqual([]);
    expect(joinByInvite(context(asker), invite, undefined)).toEqual([]);
    expect(joinByInvite(context(writer), invite, undefined)).toEqual([]);
    expect(cancelRequest(context(reader))).toEqual([]);
    expect(completeRemovals(context(owner))).toEqual([]);
    expect(addAccounts(context(owner), grant(asker.id)).map(({ op }) => op)).toEqual(["requestAccept"]);
  });

  test("[ACL-17] who has left and comes again waits until the leaving is complete", () => {
    const { world: one, owner: other, writer: leaver } = createCast();
    const open = randomBytes(32);
    one.act(other, (c) => mintInvite(c, open, { mode: "open", permission: "reader" }));
    one.act(leaver, leaveSpace);
    const join: Build = (c) => joinByInvite(c, open, undefined);
    expect(join(one.contextOf(leaver))).toEqual([]);
    one.act(other, completeRemovals);
    expect(join(one.contextOf(leaver)).map(({ op }) => op)).toEqual(["inviteJoin"]);
  });

  test("[SPACE-3] [SPACE-7] nothing is done to a space that is deleted; a derived one is not deleted", () => {
    const gone = createAclWorld();
    gone.act(gone.owner, deleteSpace);
    for (const build of [revokeInvites, leaveSpace, cancelRequest, stopSharing])
      expect(refusalBy(gone, gone.owner, build).code).toBe("space.deleted");
    const account = createAccount();
    const derived = createAclWorld({ owner: account, genesis: derivedSpaceGenesis(account, "agent") });
    expect(refusalBy(derived, account, deleteSpace).code).toBe("space.derived_undeletable");
  });
});

describe("rosters", () => {
  test("[ACL-4] members show what they told of themselves to those who read, and to nobody else", () => {
    const { world, owner, admin, writer, asker, stranger } = createCast();
    world.act(writer, (c) => publishProfile(c, { name: "Wren", iconCid: "cid", profileKey: "a2V5" }));
    const rows = rosterOf(world.genesis.spaceId, world.state, world.keysOf(admin));
    expect(rows.map(({ permission, status }) => `${permission} ${status}`)).toEqual([
      "owner active",
      "admin active",
      "writer active",
      "reader active",
      "none joining",
    ]);
    expect(rows[2]!.metadata).toEqual({ name: "Wren", iconCid: "cid", profileKey: "a2V5" });
    expect(rows[4]!.metadata).toEqual({ name: "Asker" });
    expect(rows[4]!.requestRecordId).toStartWith("bafyrei");
    for (const row of rosterOf(world.genesis.spaceId, world.state, world.keysOf(stranger)))
      expect(row.metadata).toBeUndefined();
    const one = rosterMember(world.genesis.spaceId, world.state, world.keysOf(owner), asker.signer.publicKey);
    expect(one).toEqual(rows[4]!);
    expect(
      rosterMember(world.genesis.spaceId, world.state, world.keysOf(owner), stranger.signer.publicKey),
    ).toBeUndefined();
  });

  test("[ACL-16] invites show their role and their id, and go with their revocation", () => {
    const { world, owner } = createCast();
    const seed = randomBytes(32);
    const made = world.act(owner, (c) => mintInvite(c, seed, { mode: "open", permission: "writer" }));
    const [row, ...more] = invitesOf(world.state);
    expect(more).toEqual([]);
    expect([row!.recordId, row!.permission, bytesToHex(row!.key)]).toEqual([
      cidFromDigest(made.id),
      "writer",
      bytesToHex(createSigner(seed).publicKey),
    ]);
    world.act(owner, (c) => revokeInvite(c, row!.recordId));
    expect(invitesOf(world.state)).toEqual([]);
  });

  test("[ACL-4] metadata opens for the account and the space it was sealed for, and is bounded", () => {
    const { world, owner, writer, reader } = createCast();
    const { spaceId } = world.genesis;
    const { epoch } = currentEpoch(world.state)!;
    const { key } = world.keysOf(owner).current()!;
    const sealed = sealMetadata(spaceId, epoch, writer.id, { name: "Wren" });
    expect(openMetadata(spaceId, key, writer.id, sealed)).toEqual({ name: "Wren" });
    expect(openMetadata(spaceId, key, reader.id, sealed)).toBeUndefined();
    expect(openMetadata(spaceId, randomBytes(32), writer.id, sealed)).toBeUndefined();
    const long = (bytes: number) => sealMetadata(spaceId, epoch, writer.id, { name: "x".repeat(bytes) });
    const frame = JSON.stringify({ name: "" }).length;
    expect(long(MAX_METADATA_BYTES - frame).box.length).toBeGreaterThan(0);
    expect(() => long(MAX_METADATA_BYTES - frame + 1)).toThrow(
      expect.objectContaining({ code: "request.invalid_field" }),
    );
    // The longest profile still fits into a record.
    world.act(writer, (c) => publishProfile(c, { name: "x".repeat(MAX_METADATA_BYTES - frame) }));
  });
});
