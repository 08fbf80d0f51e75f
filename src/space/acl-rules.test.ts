import { describe, expect, test } from "bun:test";
import { type AclWorld, createAccount, createAclWorld, stateText } from "../../test/support/acl-world.ts";
import { bytesToHex } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { createSigner } from "../crypto/sign.ts";
import type { Account } from "./account.ts";
import { addAccounts, joinByInvite, leaveSpace, mintGuestKey, mintInvite, removeAccounts } from "./acl-actions.ts";
import type { AclOp } from "./acl-op.ts";
import { joinProofBytes } from "./acl-record.ts";
import { canRead, canWrite, type GrantablePermission, type Permission } from "./acl-rights.ts";
import { pendingRequestOf, permissionOf, readKeyHolders } from "./acl-state.ts";

type Role = "owner" | "admin" | "writer" | "reader" | "guest" | "stranger";
const ROLES: readonly Role[] = ["owner", "admin", "writer", "reader", "guest", "stranger"];

/** A space with everybody in it: who acts, and another of each role to act upon. */
function createCast() {
  const world = createAclWorld();
  const guestSeed = randomBytes(32);
  const actors: Record<Role, Account> = {
    owner: world.owner,
    admin: createAccount(),
    writer: createAccount(),
    reader: createAccount(),
    guest: createAccount(guestSeed),
    stranger: createAccount(),
  };
  const others = { admin: createAccount(), writer: createAccount(), reader: createAccount() };
  const asker = createAccount();
  const inviteSeed = randomBytes(32);
  const add = (account: Account, permission: GrantablePermission) =>
    world.act(world.owner, (context) => addAccounts(context, [{ identity: account.id, permission }]));
  for (const role of ["admin", "writer", "reader"] as const) {
    add(actors[role], role);
    add(others[role], role);
  }
  world.act(world.owner, (context) => mintInvite(context, inviteSeed, { mode: "request" }));
  world.act(asker, (context) => joinByInvite(context, inviteSeed, undefined));
  return { world, actors, others, asker, inviteSeed, guestSeed };
}
type Cast = ReturnType<typeof createCast>;

const key = (account: Account) => account.signer.publicKey;
const requestOf = ({ world, asker }: Cast) => pendingRequestOf(world.state, key(asker))!.id;

interface MatrixRow {
  title: string;
  allowed: readonly Role[];
  /** Ops that are right in everything but, perhaps, in who signs them. Keys are added. */
  ops(cast: Cast, role: Role): AclOp[];
  guestKey?: boolean;
  /** What the owner cannot do either is not completed with keys by the owner. */
  bare?: boolean;
}

/** Reasons that speak of who may, and of nothing else that could be wrong with a record. */
const RIGHTS = /^(only |an admin |this member|nobody |the owner |a guest key )/;

const MANAGERS: readonly Role[] = ["owner", "admin"];
const fresh = () => createSigner(randomBytes(32)).publicKey;

const MATRIX: readonly MatrixRow[] = [
  { title: "mint a request invite", allowed: MANAGERS, ops: () => [{ op: "invite", key: fresh(), mode: "request" }] },
  {
    title: "mint an open invite",
    allowed: MANAGERS,
    ops: () => [{ op: "invite", key: fresh(), mode: "open", permission: "writer" }],
  },
  {
    title: "revoke an invite",
    allowed: MANAGERS,
    ops: ({ inviteSeed }) => [{ op: "inviteRevoke", key: createSigner(inviteSeed).publicKey }],
  },
  {
    title: "accept a request",
    allowed: MANAGERS,
    ops: (cast) => [{ op: "requestAccept", request: requestOf(cast), permission: "writer" }],
  },
  {
    title: "accept a request, granting admin",
    allowed: ["owner"],
    ops: (cast) => [{ op: "requestAccept", request: requestOf(cast), permission: "admin" }],
  },
  {
    title: "decline a request",
    allowed: MANAGERS,
    ops: (cast) => [{ op: "requestDecline", request: requestOf(cast) }],
  },
  {
    title: "cancel somebody's request",
    allowed: [],
    ops: (cast) => [{ op: "requestCancel", request: requestOf(cast) }],
    bare: true,
  },
  {
    title: "add an account",
    allowed: MANAGERS,
    ops: () => [{ op: "accountAdd", account: fresh(), permission: "writer" }],
  },
  {
    title: "add an account as admin",
    allowed: ["owner"],
    ops: () => [{ op: "accountAdd", account: fresh(), permission: "admin" }],
  },
  {
    title: "make a reader a writer",
    allowed: MANAGERS,
    ops: ({ others }) => [{ op: "permissionChange", account: key(others.reader), permission: "writer" }],
  },
  {
    title: "make a writer a reader",
    allowed: MANAGERS,
    ops: ({ others }) => [{ op: "permissionChange", account: key(others.writer), permission: "reader", pins: [] }],
  },
  {
    title: "make a writer an admin",
    allowed: ["owner"],
    ops: ({ others }) => [{ op: "permissionChange", account: key(others.writer), permission: "admin" }],
  },
  {
    title: "make an admin a writer",
    allowed: ["owner"],
    ops: ({ others }) => [{ op: "permissionChange", account: key(others.admin), permission: "writer" }],
  },
  {
    title: "change the owner's permission",
    allowed: [],
    ops: ({ actors }) => [{ op: "permissionChange", account: key(actors.owner), permission: "admin" }],
    bare: true,
  },
  {
    title: "change a guest's permission",
    allowed: [],
    guestKey: true,
    ops: ({ actors }) => [{ op: "permissionChange", account: key(actors.guest), permission: "reader" }],
    bare: true,
  },
  {
    title: "change one's own permission",
    allowed: [],
    ops: ({ actors }, role) => [
      { op: "permissionChange", account: key(actors[role]), permission: role === "writer" ? "reader" : "writer" },
    ],
    bare: true,
  },
  {
    title: "remove a writer",
    allowed: MANAGERS,
    ops: ({ others }) => [{ op: "accountRemove", account: key(others.writer), pins: [] }],
  },
  {
    title: "remove an admin",
    allowed: ["owner"],
    ops: ({ others }) => [{ op: "accountRemove", account: key(others.admin), pins: [] }],
  },
  {
    title: "remove the owner",
    allowed: [],
    ops: ({ actors }) => [{ op: "accountRemove", account: key(actors.owner), pins: [] }],
    bare: true,
  },
  {
    title: "remove oneself as others are removed",
    allowed: [],
    ops: ({ actors }, role) => [{ op: "accountRemove", account: key(actors[role]), pins: [] }],
    bare: true,
  },
  {
    title: "remove the guests as members are removed",
    allowed: [],
    guestKey: true,
    ops: ({ actors }) => [{ op: "accountRemove", account: key(actors.guest), pins: [] }],
    bare: true,
  },
  {
    title: "transfer ownership",
    allowed: ["owner"],
    ops: ({ others }) => [{ op: "ownershipChange", account: key(others.writer), oldPermission: "admin" }],
  },
  { title: "make a guest key", allowed: ["owner"], ops: () => [{ op: "guestKey", key: fresh() }] },
  { title: "revoke the guest key", allowed: ["owner"], guestKey: true, ops: () => [{ op: "guestRevoke" }] },
  {
    title: "stop sharing",
    allowed: ["owner"],
    ops: ({ actors, others }) => [
      {
        op: "stopSharing",
        cuts: [actors.admin, actors.writer, others.admin, others.writer].map((account) => ({
          account: key(account),
          pins: [],
        })),
      },
    ],
  },
  { title: "delete the space", allowed: ["owner"], ops: () => [{ op: "spaceDelete" }] },
  { title: "leave", allowed: ["admin", "writer", "reader"], ops: () => [{ op: "selfRemove" }], bare: true },
  {
    title: "sequence somebody else's proposal",
    allowed: ["owner"],
    ops: ({ world, others }) => [
      { op: "sequenced", unit: world.propose(others.admin, [{ op: "invite", key: fresh(), mode: "request" }]).bytes },
    ],
  },
  {
    title: "sequence one's own proposal of what one may",
    allowed: MANAGERS,
    ops: ({ world, actors }, role) => [
      { op: "sequenced", unit: world.propose(actors[role], [{ op: "invite", key: fresh(), mode: "request" }]).bytes },
    ],
    bare: true,
  },
  {
    title: "place a record of a lost branch",
    allowed: ["owner"],
    ops: ({ world }) => [{ op: "alias", id: randomBytes(32), prev: world.records[1]!.id, clock: 0 }],
  },
];

describe("the rights matrix, by a forged record", () => {
  for (const row of MATRIX) {
    for (const role of ROLES) {
      const allowed = row.allowed.includes(role);
      test(`[acl] ${role} ${allowed ? "may" : "may not"} ${row.title}`, () => {
        const cast = createCast();
        const { world, actors, guestSeed } = cast;
        // Who is not to be revoked or acted upon still has to exist for the guest's own attempts.
        if (row.guestKey || (role === "guest" && row.title !== "make a guest key"))
          world.act(world.owner, (context) => mintGuestKey(context, guestSeed));
        const ops = row.ops(cast, role);
        const forged = row.bare ? ops : world.completed(ops);
        const before = stateText(world.state);
        const reason = world.forge(actors[role].signer, forged);
        if (allowed) expect(reason).toBeUndefined();
        else {
          expect(reason).toMatch(RIGHTS);
          expect(stateText(world.state)).toBe(before);
        }
      });
    }
  }

  test("[acl] a role that cannot be given is no record at all", () => {
    const { world } = createCast();
    for (const permission of ["owner", "none", "guest"] as unknown as GrantablePermission[]) {
      const add: AclOp = { op: "accountAdd", account: fresh(), permission };
      expect(world.forge(world.owner.signer, [add])).toBe("not a record");
    }
    const open = { op: "invite", key: fresh(), mode: "open", permission: "admin" } as unknown as AclOp;
    expect(world.forge(world.owner.signer, [open])).toBe("not a record");
  });

  const WRITES: Record<Permission, boolean> = {
    owner: true,
    admin: true,
    writer: true,
    reader: false,
    guest: false,
    none: false,
  };
  for (const permission of Object.keys(WRITES) as Permission[]) {
    test(`[acl] ${permission} ${WRITES[permission] ? "writes" : "does not write"}, ${permission === "none" ? "and reads nothing" : "and reads"}`, () => {
      const { world, actors, guestSeed } = createCast();
      world.act(world.owner, (context) => mintGuestKey(context, guestSeed));
      const account = actors[permission === "none" ? "stranger" : permission];
      expect(permissionOf(world.state, key(account))).toBe(permission);
      expect(canWrite(permission)).toBe(WRITES[permission]);
      expect(canRead(permission)).toBe(permission !== "none");
      expect(readKeyHolders(world.state).has(bytesToHex(key(account)))).toBe(canRead(permission));
      expect(world.keysOf(account).current() !== undefined).toBe(canRead(permission));
    });
  }
});

/** Brings an account into a status, by the owner and itself. */
function bringTo(world: AclWorld, account: Account, status: string, invite: Uint8Array): void {
  const join = () => world.act(account, (context) => joinByInvite(context, invite, undefined));
  const owner = world.owner;
  const add = () =>
    world.act(owner, (context) => addAccounts(context, [{ identity: account.id, permission: "writer" }]));
  const request = () => pendingRequestOf(world.state, key(account))!.id;
  switch (status) {
    case "none":
      return;
    case "joining":
      join();
      return;
    case "declined":
      join();
      world.act(owner, () => [{ op: "requestDecline", request: request() }]);
      return;
    case "canceled":
      join();
      world.act(account, () => [{ op: "requestCancel", request: request() }]);
      return;
    case "active":
      add();
      return;
    case "removing":
      add();
      world.act(account, leaveSpace);
      return;
    case "removed":
      add();
      world.act(owner, (context) => removeAccounts(context, [account.id]));
      return;
    default:
      throw new Error(status);
  }
}

describe("member status", () => {
  const STATUSES = ["none", "joining", "active", "declined", "canceled", "removing", "removed"];
  interface Step {
    title: string;
    /** Status after it, by the status before; what is not listed is refused. */
    to: Record<string, string>;
    by: "owner" | "self";
    ops(world: AclWorld, account: Account, seeds: { request: Uint8Array; open: Uint8Array }): AclOp[];
  }
  const proofOf = (world: AclWorld, account: Account, seed: Uint8Array) => {
    const signer = createSigner(seed);
    return {
      invite: signer.publicKey,
      proof: signer.sign("invite", joinProofBytes(world.state.space!, signer.publicKey, key(account))),
    };
  };
  const pendingOr = (world: AclWorld, account: Account) =>
    pendingRequestOf(world.state, key(account))?.id ?? new Uint8Array(32);
  const comers = (to: string) => ({ none: to, removed: to, declined: to, canceled: to });
  const STEPS: readonly Step[] = [
    {
      title: "join request",
      by: "self",
      to: comers("joining"),
      ops: (world, account, { request }) => [{ op: "requestJoin", ...proofOf(world, account, request) }],
    },
    {
      title: "accept",
      by: "owner",
      to: { joining: "active" },
      ops: (world, account) => [{ op: "requestAccept", request: pendingOr(world, account), permission: "reader" }],
    },
    {
      title: "decline",
      by: "owner",
      to: { joining: "declined" },
      ops: (world, account) => [{ op: "requestDecline", request: pendingOr(world, account) }],
    },
    {
      title: "own cancel",
      by: "self",
      to: { joining: "canceled" },
      ops: (world, account) => [{ op: "requestCancel", request: pendingOr(world, account) }],
    },
    {
      title: "open invite used",
      by: "self",
      to: comers("active"),
      ops: (world, account, { open }) => [{ op: "inviteJoin", ...proofOf(world, account, open) }],
    },
    {
      title: "added",
      by: "owner",
      to: comers("active"),
      ops: (_world, account) => [{ op: "accountAdd", account: key(account), permission: "writer" }],
    },
    { title: "self-remove", by: "self", to: { active: "removing" }, ops: () => [{ op: "selfRemove" }] },
    {
      title: "key rotated",
      by: "owner",
      to: { ...Object.fromEntries(STATUSES.map((status) => [status, status])), removing: "removed" },
      ops: () => [],
    },
    {
      title: "removed",
      by: "owner",
      to: { active: "removed", removing: "removed" },
      ops: (_world, account) => [{ op: "accountRemove", account: key(account), pins: [] }],
    },
  ];
  for (const step of STEPS) {
    for (const status of STATUSES) {
      const next = step.to[status];
      test(`[acl] ${status}, ${step.title}: ${next ?? "refused"}`, () => {
        const world = createAclWorld();
        const account = createAccount();
        const seeds = { request: randomBytes(32), open: randomBytes(32) };
        world.act(world.owner, (context) => mintInvite(context, seeds.request, { mode: "request" }));
        world.act(world.owner, () => [
          { op: "invite", key: createSigner(seeds.open).publicKey, mode: "open", permission: "reader" },
        ]);
        bringTo(world, account, status, seeds.request);
        const ops = step.ops(world, account, seeds);
        const actor = step.by === "owner" ? world.owner : account;
        const options = { inviteSeed: seeds.open, rotate: step.title === "key rotated" };
        const forged = next === undefined ? ops : world.completed(ops, actor, options);
        const before = stateText(world.state);
        const reason = world.forge(actor.signer, forged);
        if (next === undefined) {
          expect(reason).toBeString();
          expect(stateText(world.state)).toBe(before);
        } else {
          expect(reason).toBeUndefined();
          expect(world.state.members.get(bytesToHex(key(account)))?.status ?? "none").toBe(next as "active");
        }
      });
    }
  }
});
