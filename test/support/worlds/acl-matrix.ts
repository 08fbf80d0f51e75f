/**
 * The rights matrix as forged records: for each action, ops that are right in everything but, perhaps, in who signs
 * them. Judged by the reducer alone, and by running servers.
 */

import { addAccounts, joinByInvite, mintInvite } from "../../../src/acl/compose/actions.ts";
import type { AclOp } from "../../../src/acl/record/op.ts";
import type { GrantablePermission } from "../../../src/acl/record/permission.ts";
import { pendingRequestOf, writingMembers } from "../../../src/acl/reducer/state.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import type { RefusalCode } from "../../../src/protocol/refusals.ts";
import { type AclWorld, createAccount, createAclWorld } from "./acl-world.ts";

export type AclRole = "owner" | "admin" | "writer" | "reader" | "guest" | "stranger";
export const ACL_ROLES: readonly AclRole[] = ["owner", "admin", "writer", "reader", "guest", "stranger"];

/** A space with everybody in it: who acts, and another of each role to act upon. */
export interface AclCast {
  readonly world: AclWorld;
  readonly actors: Record<AclRole, Account>;
  readonly others: Record<"admin" | "writer" | "reader", Account>;
  /** Has asked to join. */
  readonly asker: Account;
  /** Of the live invite, by which one asks to join. */
  readonly inviteSeed: Uint8Array;
  /** The guest's account; its key is in the space once it was made the guest key. */
  readonly guestSeed: Uint8Array;
}

export function createAclCast(world: AclWorld = createAclWorld()): AclCast {
  const guestSeed = randomBytes(32);
  const actors: Record<AclRole, Account> = {
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

const key = (account: Account) => account.signer.publicKey;
const requestOf = ({ world, asker }: AclCast) => pendingRequestOf(world.state, key(asker))!.id;

export interface AclMatrixRow {
  title: string;
  allowed: readonly AclRole[];
  /** Ops that are right in everything but, perhaps, in who signs them. Keys are added. */
  ops(cast: AclCast, role: AclRole): AclOp[];
  guestKey?: boolean;
  /** What the owner cannot do either is not completed with keys by the owner. */
  bare?: boolean;
}

/** What speaks of who may, and of nothing else that could be wrong with a record. */
export const RIGHTS_CODES: ReadonlySet<RefusalCode | undefined> = new Set([
  "acl.managers_only",
  "acl.owner_only",
  "acl.admin_grants_admin",
  "acl.may_not_change",
  "acl.may_not_remove",
  "acl.removes_itself",
  "acl.request_of_another",
  "acl.leave_not_active",
  "acl.leave_owner",
  "acl.leave_guest",
  "acl.profile_not_active",
  "acl.key_not_owed",
]);

const MANAGERS: readonly AclRole[] = ["owner", "admin"];
const fresh = () => createSigner(randomBytes(32)).publicKey;

export const ACL_MATRIX: readonly AclMatrixRow[] = [
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
    ops: ({ others }) => [{ op: "permissionChange", account: key(others.writer), permission: "reader", cutOffs: [] }],
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
    ops: ({ others }) => [{ op: "accountRemove", account: key(others.writer), cutOffs: [] }],
  },
  {
    title: "remove an admin",
    allowed: ["owner"],
    ops: ({ others }) => [{ op: "accountRemove", account: key(others.admin), cutOffs: [] }],
  },
  {
    title: "remove the owner",
    allowed: [],
    ops: ({ actors }) => [{ op: "accountRemove", account: key(actors.owner), cutOffs: [] }],
    bare: true,
  },
  {
    title: "remove oneself as others are removed",
    allowed: [],
    ops: ({ actors }, role) => [{ op: "accountRemove", account: key(actors[role]), cutOffs: [] }],
    bare: true,
  },
  {
    title: "remove the guests as members are removed",
    allowed: [],
    guestKey: true,
    ops: ({ actors }) => [{ op: "accountRemove", account: key(actors.guest), cutOffs: [] }],
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
    ops: ({ world }) => [
      { op: "stopSharing", cuts: writingMembers(world.state).map((account) => ({ account, cutOffs: [] })) },
    ],
  },
  { title: "delete the space", allowed: ["owner"], ops: () => [{ op: "spaceDelete" }] },
  { title: "leave", allowed: ["admin", "writer", "reader"], ops: () => [{ op: "selfRemove" }], bare: true },
  {
    title: "sequence somebody else's proposal",
    allowed: ["owner"],
    ops: ({ world, others }) => [
      {
        op: "sequenced",
        pending: world.propose(others.admin, [{ op: "invite", key: fresh(), mode: "request" }]).bytes,
      },
    ],
  },
  {
    title: "sequence one's own proposal of what one may",
    allowed: MANAGERS,
    ops: ({ world, actors }, role) => [
      {
        op: "sequenced",
        pending: world.propose(actors[role], [{ op: "invite", key: fresh(), mode: "request" }]).bytes,
      },
    ],
    bare: true,
  },
  {
    title: "place a record of a lost branch",
    allowed: ["owner"],
    ops: ({ world }) => [{ op: "alias", id: randomBytes(32), prev: world.records[1]!.id, clock: 0 }],
  },
];
