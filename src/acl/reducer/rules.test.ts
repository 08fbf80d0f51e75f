import { describe, expect, test } from "bun:test";
import { ACL_MATRIX, ACL_ROLES, createAclCast, RIGHTS_CODES } from "../../../test/support/worlds/acl-matrix.ts";
import { type AclWorld, createAccount, createAclWorld, stateText } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import { addAccounts, joinByInvite, leaveSpace, mintGuestKey, mintInvite, removeAccounts } from "../compose/actions.ts";
import type { AclOp } from "../record/op.ts";
import { canRead, canWrite, type GrantablePermission, type Permission } from "../record/permission.ts";
import { joinProofBytes } from "../record/record.ts";
import { pendingRequestOf, permissionOf, readKeyHolders } from "./state.ts";

const key = (account: Account) => account.signer.publicKey;
const fresh = () => createSigner(randomBytes(32)).publicKey;

describe("the rights matrix, by a forged record", () => {
  for (const row of ACL_MATRIX) {
    for (const role of ACL_ROLES) {
      const allowed = row.allowed.includes(role);
      test(`[ACL-2] ${role} ${allowed ? "may" : "may not"} ${row.title}`, () => {
        const cast = createAclCast();
        const { world, actors, guestSeed } = cast;
        // The guest key must exist even where it is not the target, for the guest's own attempts.
        if (row.guestKey || (role === "guest" && row.title !== "make a guest key"))
          world.act(world.owner, (context) => mintGuestKey(context, guestSeed));
        const ops = row.ops(cast, role);
        const forged = row.bare ? ops : world.completed(ops);
        const before = stateText(world.state);
        const code = world.forge(actors[role].signer, forged);
        if (allowed) expect(code).toBeUndefined();
        else {
          expect([code, RIGHTS_CODES.has(code)]).toEqual([code, true]);
          expect(stateText(world.state)).toBe(before);
        }
      });
    }
  }

  test("[ACL-1] a role that cannot be given is no record at all", () => {
    const { world } = createAclCast();
    for (const permission of ["owner", "none", "guest"] as unknown as GrantablePermission[]) {
      const add: AclOp = { op: "accountAdd", account: fresh(), permission };
      expect(world.forge(world.owner.signer, [add])).toBe("acl.record_malformed");
    }
    const open = { op: "invite", key: fresh(), mode: "open", permission: "admin" } as unknown as AclOp;
    expect(world.forge(world.owner.signer, [open])).toBe("acl.record_malformed");
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
    test(`[ACL-2] ${permission} ${WRITES[permission] ? "writes" : "does not write"}, ${permission === "none" ? "and reads nothing" : "and reads"}`, () => {
      const { world, actors, guestSeed } = createAclCast();
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

/** Brings an account into a status, through acts of the owner and of the account. */
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
    /** The status after the act, by the status before; from a status not listed the act is refused. */
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
      ops: (_world, account) => [{ op: "accountRemove", account: key(account), cutOffs: [] }],
    },
  ];
  for (const step of STEPS) {
    for (const status of STATUSES) {
      const next = step.to[status];
      test(`[ACL-3] ${status}, ${step.title}: ${next ?? "refused"}`, () => {
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
        const code = world.forge(actor.signer, forged);
        if (next === undefined) {
          expect(code).toBeString();
          expect(stateText(world.state)).toBe(before);
        } else {
          expect(code).toBeUndefined();
          expect(world.state.members.get(bytesToHex(key(account)))?.status ?? "none").toBe(next as "active");
        }
      });
    }
  }
});
