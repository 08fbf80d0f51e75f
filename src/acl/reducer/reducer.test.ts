import { describe, expect, test } from "bun:test";
import {
  type AclWorld,
  addMember,
  createAccount,
  createAclWorld,
  expectRefused,
  keyOffTheCurve,
} from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { keyIdOf } from "../../crypto/seal.ts";
import { createSigner } from "../../crypto/sign.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { derivedSpaceGenesis } from "../../space/space.ts";
import { joinByInvite, mintGuestKey, mintInvite, transferOwnership } from "../compose/actions.ts";
import { makeEpoch, sealReadKey } from "../record/epoch.ts";
import type { AclOp, EpochOp } from "../record/op.ts";
import type { GrantablePermission } from "../record/permission.ts";
import { decodeAclRecord, encodeAclRecord, joinProofBytes } from "../record/record.ts";
import { decodeSpaceHeader, encodeSpaceHeader, SPACE_TYPE } from "../record/space-header.ts";
import { applyAclRecord } from "./reducer.ts";
import { currentEpoch, emptyAcl, pendingRequestOf, permissionOf, readKeyHolders } from "./state.ts";

const key = (account: Account) => account.signer.publicKey;
const fresh = () => createSigner(randomBytes(32)).publicKey;

describe("keys", () => {
  /** A space with a writer, and the epoch that its removal calls for. */
  function removal() {
    const world = createAclWorld();
    const [gone, stays] = [createAccount(), createAccount()];
    addMember(world, gone);
    addMember(world, stays);
    const remove: AclOp = { op: "accountRemove", account: key(gone), cutOffs: [] };
    const current = world.keysOf(world.owner).current()!;
    const epoch = (change: Partial<EpochOp> = {}, holders = [key(world.owner), key(stays)]): AclOp => ({
      op: "readKeyChange",
      epoch: { ...makeEpoch(world.genesis.spaceId, randomBytes(32), holders, [current]), ...change },
    });
    return { world, gone, stays, remove, epoch, current };
  }

  test("[ACL-6] a removal brings a new key, sealed to exactly those who remain", () => {
    const { world, gone, stays, remove, epoch } = removal();
    const owner = key(world.owner);
    const exactly = "acl.key_holders";
    expectRefused(world, "acl.key_stays", [remove]);
    expectRefused(world, exactly, [remove, epoch({}, [owner])]);
    expectRefused(world, exactly, [remove, epoch({}, [owner, key(stays), key(gone)])]);
    expectRefused(world, exactly, [remove, epoch({}, [owner, key(stays), key(stays)])]);
    expectRefused(world, exactly, [remove, epoch({}, [owner, key(gone)])]);
    expectRefused(world, exactly, [remove, epoch({}, [])]);
    expectRefused(world, exactly, [epoch(), remove]);
    expect(world.forge(world.owner.signer, [remove, epoch()])).toBeUndefined();
  });

  test("[ACL-6] the key before is sealed under the new one, and no key comes twice", () => {
    const { world, remove, epoch, current } = removal();
    const before = "acl.key_before";
    const made = epoch() as { epoch: EpochOp };
    const [previous] = made.epoch.previous;
    expectRefused(world, before, [remove, epoch({ previous: [] })]);
    expectRefused(world, before, [remove, epoch({ previous: [{ keyId: randomBytes(16), sealed: previous!.sealed }] })]);
    expectRefused(world, "acl.key_twice", [remove, epoch({ previous: [previous!, previous!] })]);
    expectRefused(world, "acl.key_used", [remove, epoch({ keyId: current.id })]);
  });

  test("[ACL-2] a key to which nothing can be sealed is nobody's: no member's, no invite's, no guest's, no epoch's", () => {
    const { world, remove, epoch } = removal();
    const nobody = keyOffTheCurve();
    const box = new Uint8Array(100);
    const shared: AclOp = {
      op: "shareKey",
      keyId: currentEpoch(world.state)!.epoch.keyId,
      sealed: [{ to: nobody, box }],
    };
    expectRefused(world, "acl.account_key", [{ op: "accountAdd", account: nobody, permission: "reader" }, shared]);
    expectRefused(world, "acl.invite_key", [{ op: "invite", key: nobody, mode: "request" }]);
    expectRefused(world, "acl.invite_key", [{ op: "guestKey", key: nobody }, shared]);
    expectRefused(world, "acl.metadata_key", [remove, epoch({ metadataKey: nobody })]);
  });

  test("[ACL-14] whoever may read since a record is given the current key in it, and nobody else", () => {
    const { world, current } = removal();
    const account = fresh();
    const op: AclOp = { op: "accountAdd", account, permission: "reader" };
    const share = (to: Uint8Array[], keyId = current.id): AclOp => ({
      op: "shareKey",
      keyId,
      sealed: sealReadKey(world.genesis.spaceId, current.key, to),
    });
    expectRefused(world, "acl.key_owed", [op]);
    expectRefused(world, "acl.key_owed_holders", [op, share([])]);
    expectRefused(world, "acl.key_owed_holders", [op, share([account, fresh()])]);
    expectRefused(world, "acl.key_owed_holders", [op, share([fresh()])]);
    expectRefused(world, "acl.key_not_current", [op, share([account], keyIdOf(randomBytes(32)))]);
    expectRefused(world, "acl.key_not_owed", [share([account])]);
    expectRefused(world, "acl.key_not_owed", [op, share([account]), share([account])]);
    expect(world.forge(world.owner.signer, [op, share([account])])).toBeUndefined();
  });

  test("[ACL-6] revoking or replacing an open invite, or revoking the guest key, brings a new key; revoking another invite does not", () => {
    const world = createAclWorld();
    const [open, closed] = [randomBytes(32), randomBytes(32)];
    world.act(world.owner, (context) => mintInvite(context, open, { mode: "open", permission: "reader" }));
    world.act(world.owner, () => [{ op: "invite", key: createSigner(closed).publicKey, mode: "request" }]);
    world.act(world.owner, (context) => mintGuestKey(context, randomBytes(32)));
    const stays = "acl.key_stays";
    expectRefused(world, stays, [{ op: "inviteRevoke", key: createSigner(open).publicKey }]);
    expectRefused(world, stays, [{ op: "guestRevoke" }]);
    expect(
      world.forge(world.owner.signer, [{ op: "inviteRevoke", key: createSigner(closed).publicKey }]),
    ).toBeUndefined();
    const seed = randomBytes(32);
    world.act(world.owner, (context) => mintInvite(context, seed, { mode: "open", permission: "writer" }));
    const { epoch } = currentEpoch(world.state)!;
    expect(world.state.epochs).toHaveLength(2);
    const holders = [...world.state.invites.values(), world.state.guest!, { key: key(world.owner) }];
    expect(holders).toHaveLength(3);
    const sealed = [...epoch.sealed, ...world.state.epochs.at(-1)!.shared];
    expect(sealed.map(({ to }) => bytesToHex(to)).sort()).toEqual(holders.map((one) => bytesToHex(one.key)).sort());
  });

  test("[ACL-6] who is removed takes the open invites and the guest key along whose secrets it knows", () => {
    const world = createAclWorld();
    const [heir, admin] = [createAccount(), createAccount()];
    for (const account of [heir, admin]) addMember(world, account, "admin");
    world.act(world.owner, (context) => mintGuestKey(context, randomBytes(32)));
    world.act(admin, () => [{ op: "invite", key: fresh(), mode: "open", permission: "reader" }]);
    world.act(heir, () => [{ op: "invite", key: fresh(), mode: "open", permission: "reader" }]);
    world.act(admin, () => [{ op: "invite", key: fresh(), mode: "request" }]);
    world.act(world.owner, (context) => transferOwnership(context, heir.id, "admin"));
    const remove = (account: Account): AclOp => ({ op: "accountRemove", account: key(account), cutOffs: [] });
    const epochWith = (op: AclOp) => world.completed([op], heir);
    expect(world.forge(heir.signer, epochWith(remove(admin)))).toBeUndefined();
    expect([...world.state.invites.values()].map(({ permission }) => permission)).toEqual(["reader", "none"]);
    expect(world.state.guest).toBeDefined();
    expect(world.forge(heir.signer, epochWith(remove(world.owner)))).toBeUndefined();
    expect(world.state.guest).toBeUndefined();
    expect(readKeyHolders(world.state).size).toBe(2);
  });

  test("[ACL-18] a space has a bounded number of members and open invites", () => {
    const world = createAclWorld();
    const accounts = Array.from({ length: LIMITS.spaceMembers - 1 }, fresh);
    const adds = accounts.map((account): AclOp => ({ op: "accountAdd", account, permission: "reader" }));
    expect(world.forge(world.owner.signer, world.completed(adds))).toBeUndefined();
    expect(readKeyHolders(world.state).size).toBe(LIMITS.spaceMembers);
    const one: AclOp = { op: "accountAdd", account: fresh(), permission: "reader" };
    expect(() => world.completed([one])).toThrow(/at most 1000 members/);
    const current = world.keysOf(world.owner).current()!;
    const sealed = sealReadKey(world.genesis.spaceId, current.key, [one.account]);
    expectRefused(world, "acl.space_full", [one, { op: "shareKey", keyId: current.id, sealed }]);
  });
});

describe("cutOffs", () => {
  test("[ACL-14] a cut-off is given for whoever loses the right to write, and for nobody else", () => {
    const world = createAclWorld();
    const [writer, reader] = [createAccount(), createAccount()];
    addMember(world, writer);
    addMember(world, reader, "reader");
    const change = (account: Account, permission: GrantablePermission, cutOffs?: []): AclOp => ({
      op: "permissionChange",
      account: key(account),
      permission,
      ...(cutOffs ? { cutOffs } : {}),
    });
    expectRefused(world, "acl.cut_offs_missing", [change(writer, "reader")]);
    expectRefused(world, "acl.cut_offs_extra", [change(reader, "writer", [])]);
    expectRefused(world, "acl.cut_offs_extra", [change(writer, "admin", [])]);
    const transfer: AclOp = { op: "ownershipChange", account: key(writer), oldPermission: "reader" };
    expectRefused(world, "acl.cut_offs_missing", [transfer]);
    expectRefused(world, "acl.cut_offs_extra", [{ ...transfer, oldPermission: "writer", cutOffs: [] }]);
  });

  test("[ACL-14] stopping to share cutOffs exactly those who may write", () => {
    const world = createAclWorld();
    const [writer, reader] = [createAccount(), createAccount()];
    addMember(world, writer);
    addMember(world, reader, "reader");
    const stop = (...accounts: Uint8Array[]): AclOp => ({
      op: "stopSharing",
      cuts: accounts.map((account) => ({ account, cutOffs: [] })),
    });
    const exactly = "acl.cut_offs_of_writers";
    expectRefused(world, exactly, [stop()]);
    expectRefused(world, exactly, [stop(key(writer), key(reader))]);
    expectRefused(world, exactly, [stop(key(writer), key(writer))]);
    expectRefused(world, exactly, [stop(key(writer), key(world.owner))]);
    expect(world.forge(world.owner.signer, world.completed([stop(key(writer))]))).toBeUndefined();
    expect(world.state.members.get(bytesToHex(key(reader)))!.status).toBe("removed");
  });
});

describe("the log", () => {
  test("[ACL-12] a record follows the head, in its own space, and the clock never runs back or away", () => {
    const world = createAclWorld();
    const reader = createAccount();
    addMember(world, reader, "reader");
    const ops: AclOp[] = [{ op: "invite", key: fresh(), mode: "request" }];
    const forge = (over: object, by = world.owner) => world.forge(by.signer, ops, over);
    expect(forge({ clock: 100 })).toBeUndefined();
    ops[0] = { op: "invite", key: fresh(), mode: "request" };
    expect(forge({ clock: 99 })).toBe("acl.clock_back");
    expect(forge({ clock: 101 + 2 ** 32 })).toBe("acl.clock_ahead");
    expect(forge({ prev: randomBytes(32) })).toBe("acl.not_next");
    expect(forge({ prev: null })).toBe("acl.not_next");
    expect(forge({ prev: world.records[0]!.id })).toBe("acl.not_next");
    expect(forge({ space: randomBytes(32) })).toBe("acl.another_space");
    ops[0] = { op: "selfRemove" };
    expect(forge({ clock: 101 }, reader)).toBe("acl.managers_only");
    expect(forge({ clock: 100 }, reader)).toBeUndefined();
  });

  test("[ACL-12] a log begins with the root of its space's author, and with nothing else", () => {
    const [owner, other] = [createAccount(), createAccount()];
    const encoded = encodeSpaceHeader(
      { kind: "created", spaceType: SPACE_TYPE, author: key(owner), time: 1, seed: randomBytes(16) },
      owner.signer,
    );
    const { header } = decodeSpaceHeader(encoded.bytes)!;
    const epoch = makeEpoch(encoded.spaceId, randomBytes(32), [key(owner)], []);
    const root: AclOp = { op: "root", header: encoded.bytes, epoch };
    const faultOf = (ops: AclOp[], signer = owner.signer, space = encoded.digest) => {
      const record = { space, prev: null, time: 1, clock: 0, ops };
      const { bytes } = encodeAclRecord(record, signer);
      const world = emptyAcl();
      const decoded = decodeRecord(bytes);
      const applied = applyAclRecord(world, decoded, header);
      return "fault" in applied ? applied.fault.code : undefined;
    };
    expect(faultOf([root])).toBeUndefined();
    expect(faultOf([root], other.signer)).toBe("acl.root_author");
    expect(faultOf([root, { op: "selfRemove" }])).toBe("acl.root_alone");
    expect(faultOf([{ op: "selfRemove" }])).toBe("acl.root_alone");
    expect(faultOf([root], owner.signer, randomBytes(32))).toBe("acl.root_header");
    const withOther = makeEpoch(encoded.spaceId, randomBytes(32), [key(owner), key(other)], []);
    expect(faultOf([{ ...root, epoch: withOther }])).toBe("acl.root_key_holders");
    const before = makeEpoch(
      encoded.spaceId,
      randomBytes(32),
      [key(owner)],
      [{ id: randomBytes(16), key: randomBytes(32) }],
    );
    expect(faultOf([{ ...root, epoch: before }])).toBe("acl.root_key_before");
    const world = createAclWorld();
    expectRefused(world, "acl.root_again", [root]);
  });

  test("[ACL-12] a record takes effect as a whole or not at all", () => {
    const world = createAclWorld();
    const account = createAccount();
    addMember(world, account);
    expectRefused(world, "acl.invite_not_live", [
      { op: "invite", key: fresh(), mode: "request" },
      { op: "permissionChange", account: key(account), permission: "admin" },
      { op: "inviteRevoke", key: fresh() },
    ]);
    expectRefused(world, "acl.one_invite_or_request", [
      { op: "invite", key: fresh(), mode: "request" },
      { op: "invite", key: fresh(), mode: "request" },
    ]);
  });

  test("[SPACE-3] [SPACE-7] nothing follows a deletion; derived spaces are neither deleted nor given away", () => {
    const world = createAclWorld();
    expect(world.forge(world.owner.signer, [{ op: "spaceDelete" }])).toBeUndefined();
    expectRefused(world, "acl.space_deleted", [{ op: "invite", key: fresh(), mode: "request" }]);
    const owner = createAccount();
    const derived = createAclWorld({ owner, genesis: derivedSpaceGenesis(owner, "agent") });
    const heir = createAccount();
    addMember(derived, heir);
    expectRefused(derived, "acl.derived_permanent", [{ op: "spaceDelete" }]);
    expectRefused(derived, "acl.derived_ownership", [
      { op: "ownershipChange", account: key(heir), oldPermission: "admin" },
    ]);
  });

  test("[SPACE-3] a derived space's root is the same on every device, and its key with it", () => {
    const owner = createAccount();
    expect(derivedSpaceGenesis(owner, "agent")).toEqual(derivedSpaceGenesis(owner, "agent"));
    expect(derivedSpaceGenesis(owner, "agent").spaceId).not.toBe(derivedSpaceGenesis(owner, "tech").spaceId);
    const world = createAclWorld({ owner, genesis: derivedSpaceGenesis(owner, "agent") });
    expect(world.keysOf(owner).current()).toBeDefined();
    expect(world.keysOf(createAccount()).current()).toBeUndefined();
  });
});

describe("invites", () => {
  const proofOf = (world: AclWorld, account: Account, seed: Uint8Array, space = world.state.space!) => {
    const signer = createSigner(seed);
    return {
      invite: signer.publicKey,
      proof: signer.sign("invite", joinProofBytes(space, signer.publicKey, key(account))),
    };
  };

  test("[ACL-16] who joins shows that it holds the secret, for itself and for this space", () => {
    const world = createAclWorld();
    const seed = randomBytes(32);
    world.act(world.owner, (context) => mintInvite(context, seed, { mode: "request" }));
    const [joiner, thief] = [createAccount(), createAccount()];
    const good = proofOf(world, joiner, seed);
    const not = "acl.invite_proof";
    expectRefused(world, not, [{ op: "requestJoin", ...good }], thief);
    expectRefused(world, not, [{ op: "requestJoin", ...proofOf(world, joiner, seed, randomBytes(32)) }], joiner);
    expectRefused(world, not, [{ op: "requestJoin", ...good, proof: randomBytes(64) }], joiner);
    expectRefused(
      world,
      "acl.invite_not_live",
      [{ op: "requestJoin", ...proofOf(world, joiner, randomBytes(32)) }],
      joiner,
    );
    expectRefused(world, "acl.invite_kind", [{ op: "inviteJoin", ...good }], joiner);
    expect(world.forge(joiner.signer, [{ op: "requestJoin", ...good }])).toBeUndefined();
    expect(pendingRequestOf(world.state, key(joiner))).toBeDefined();
  });

  test("[ACL-16] an invite revoked or replaced lets nobody in, and its key never comes back", () => {
    const world = createAclWorld();
    const [first, second] = [randomBytes(32), randomBytes(32)];
    world.act(world.owner, (context) => mintInvite(context, first, { mode: "request" }));
    world.act(world.owner, (context) => mintInvite(context, second, { mode: "request" }));
    expect([...world.state.invites.keys()]).toEqual([bytesToHex(createSigner(second).publicKey)]);
    const joiner = createAccount();
    expectRefused(world, "acl.invite_not_live", [{ op: "requestJoin", ...proofOf(world, joiner, first) }], joiner);
    expectRefused(world, "acl.key_used", [{ op: "invite", key: createSigner(first).publicKey, mode: "request" }]);
    expectRefused(world, "acl.key_used", [{ op: "invite", key: key(world.owner), mode: "request" }]);
    expectRefused(world, "acl.account_is_invite_key", [
      { op: "accountAdd", account: createSigner(first).publicKey, permission: "reader" },
    ]);
  });

  test("[ACL-16] an open invite lets in with its own role and no other", () => {
    const world = createAclWorld();
    const seed = randomBytes(32);
    world.act(world.owner, (context) => mintInvite(context, seed, { mode: "open", permission: "reader" }));
    const joiner = createAccount();
    expectRefused(world, "acl.invite_kind", [{ op: "requestJoin", ...proofOf(world, joiner, seed) }], joiner);
    world.act(joiner, (context) => joinByInvite(context, seed, { name: "Jo" }), { inviteSeed: seed });
    expect(permissionOf(world.state, key(joiner))).toBe("reader");
    expect(world.keysOf(joiner).current()).toEqual(world.keysOf(world.owner).current()!);
  });

  test("[ACL-18] waiting requests are bounded, and one that is answered makes room", () => {
    const world = createAclWorld();
    const seed = randomBytes(32);
    world.act(world.owner, (context) => mintInvite(context, seed, { mode: "request" }));
    const ask = (): string | undefined => {
      const joiner = createAccount();
      return world.forge(joiner.signer, [{ op: "requestJoin", ...proofOf(world, joiner, seed) }]);
    };
    for (let asked = 0; asked < 1000; asked++) expect(ask()).toBeUndefined();
    expect(ask()).toBe("acl.requests_full");
    const [request] = world.state.requests.values();
    expect(world.forge(world.owner.signer, [{ op: "requestDecline", request: request!.id }])).toBeUndefined();
    expect(ask()).toBeUndefined();
  });

  test("[ACL-18] live invites are bounded", () => {
    const world = createAclWorld();
    for (let i = 0; i < 64; i++)
      expect(world.forge(world.owner.signer, [{ op: "invite", key: fresh(), mode: "request" }])).toBeUndefined();
    expectRefused(world, "acl.invites_full", [{ op: "invite", key: fresh(), mode: "request" }]);
  });
});

function decodeRecord(bytes: Uint8Array) {
  const record = decodeAclRecord(bytes);
  if (!record) throw new Error("not a record");
  return record;
}
