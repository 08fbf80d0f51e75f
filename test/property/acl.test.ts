/**
 * Random histories of a space's ACL. One log and many people who try what they may and may not: after every record
 * the invariants hold. Then several devices that act apart, forks included: once everybody has met, all hold one log,
 * one roster and the same rows.
 */
import { describe, expect } from "bun:test";
import {
  acceptRequest,
  addAccounts,
  cancelRequest,
  changePermissions,
  completeRemovals,
  declineRequest,
  joinByInvite,
  leaveSpace,
  mintGuestKey,
  mintInvite,
  publishProfile,
  removeAccounts,
  revokeGuestKey,
  revokeInvites,
  stopSharing,
  transferOwnership,
} from "../../src/acl/compose/actions.ts";
import type { AclContext } from "../../src/acl/compose/compose.ts";
import type { AclOp } from "../../src/acl/record/op.ts";
import type { GrantablePermission } from "../../src/acl/record/permission.ts";
import { applyAclRecord } from "../../src/acl/reducer/reducer.ts";
import { rosterOf } from "../../src/acl/reducer/roster.ts";
import { type AclState, emptyAcl, permissionOf, readKeyHolders } from "../../src/acl/reducer/state.ts";
import { bytesToHex } from "../../src/base/bytes.ts";
import { randomBytes } from "../../src/base/random.ts";
import type { Account } from "../../src/crypto/account.ts";
import { SvcError } from "../../src/protocol/errors.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { createDevices, type Device, exchange, fetchFrom, sameHead } from "../support/worlds/acl-devices.ts";
import { type AclWorld, createAccount, createAclWorld, stateText } from "../support/worlds/acl-world.ts";

const HISTORIES = rounds(12);
const firstSeed = runSeed("acl");
const key = (account: Account) => account.signer.publicKey;
const GRANTS: readonly GrantablePermission[] = ["reader", "writer", "admin"];

interface People {
  accounts: Account[];
  inviteSeeds: Uint8Array[];
}

/** Something that somebody might do, allowed or not. */
function randomBuild(rng: Rng, people: People, context: AclContext): () => readonly AclOp[] {
  const someone = () => rng.pick(people.accounts).id;
  const grant = () => rng.pick(GRANTS);
  const roster = () => rosterOf(context.spaceId, context.state, context.keys);
  const newInvite = () => {
    const seed = randomBytes(32);
    people.inviteSeeds.push(seed);
    return seed;
  };
  return rng.pick<() => readonly AclOp[]>([
    () => mintInvite(context, newInvite(), { mode: "request" }),
    () => mintInvite(context, newInvite(), { mode: "open", permission: rng.pick(["reader", "writer"]) }),
    () => revokeInvites(context),
    () => addAccounts(context, [{ identity: someone(), permission: grant() }]),
    () => addAccounts(context, [{ identity: someone(), permission: grant(), metadata: { name: "somebody" } }]),
    () => changePermissions(context, [{ identity: someone(), permission: grant() }]),
    () => changePermissions(context, [{ identity: someone(), permission: grant() }]),
    () => removeAccounts(context, [someone()]),
    () => completeRemovals(context),
    () => leaveSpace(context),
    () => cancelRequest(context),
    () => declineRequest(context, someone()),
    () => acceptRequest(context, roster().find((row) => row.requestRecordId)?.requestRecordId ?? "none", grant()),
    () => transferOwnership(context, someone(), grant()),
    () => mintGuestKey(context, randomBytes(32)),
    () => revokeGuestKey(context),
    () => publishProfile(context, { name: `name ${rng.int(0, 9)}`, profileKey: "a2V5" }),
    () => (rng.chance(0.1) ? stopSharing(context) : []),
  ]);
}

describe("one log", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(`[ACL-2] history ${i}: invariants hold after every record`, () => runLog(seed));
  }
});

function runLog(seed: number): void {
  const rng = createRng(seed);
  const world = createAclWorld();
  const people: People = {
    accounts: [world.owner, ...Array.from({ length: 6 }, () => createAccount())],
    inviteSeeds: [],
  };
  const removedAt = new Map<string, number>();
  let taken = 0;
  try {
    for (let step = 0; taken < 25 && step < 800; step++) {
      const actor = rng.pick(rng.chance(0.4) ? [ownerOf(world, people)] : people.accounts);
      const text = stateText(world.state);
      const histories = historiesOf(world.state);
      const made = attempt(rng, world, people, actor);
      if (made) {
        taken++;
        checkInvariants(world, people, histories, removedAt);
      } else expect(stateText(world.state)).toBe(text);
    }
    const replayed = emptyAcl();
    for (const record of world.records)
      expect(applyAclRecord(replayed, record, world.header)).not.toHaveProperty("fault");
    expect(stateText(replayed)).toBe(stateText(world.state));
    expect(taken).toBeGreaterThan(9);
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1 after ${world.records.length} records`);
    throw error;
  }
}

function ownerOf(world: AclWorld, people: People): Account {
  return people.accounts.find((account) => bytesToHex(key(account)) === bytesToHex(world.state.owner!))!;
}

/** True when a record was taken. A builder refuses with an error of the interface, and what it builds is valid. */
function attempt(rng: Rng, world: AclWorld, people: People, actor: Account): boolean {
  const before = world.records.length;
  const inviteSeed = people.inviteSeeds.length > 0 && rng.chance(0.3) ? rng.pick(people.inviteSeeds) : undefined;
  try {
    world.act(
      actor,
      (context) => {
        const build = inviteSeed
          ? () => joinByInvite(context, inviteSeed, { name: actor.id })
          : randomBuild(rng, people, context);
        const ops = build();
        if (ops.length === 0) throw new SvcError("acl.forbidden");
        return ops;
      },
      inviteSeed ? { inviteSeed } : {},
    );
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
  }
  return world.records.length > before;
}

const historiesOf = (state: AclState) =>
  new Map([...state.members].map(([name, member]) => [name, JSON.stringify(member.history).slice(0, -1)]));

function checkInvariants(
  world: AclWorld,
  people: People,
  before: ReadonlyMap<string, string>,
  removedAt: Map<string, number>,
): void {
  const { state } = world;
  const owners = [...state.members.values()].filter(({ history }) => history.at(-1)?.permission === "owner");
  expect(owners.map(({ account, status }) => [bytesToHex(account), status])).toEqual([
    [bytesToHex(state.owner!), "active"],
  ]);
  // Nothing that held is ever taken back.
  for (const [name, text] of before) expect(JSON.stringify(state.members.get(name)!.history)).toStartWith(text);

  const holders = readKeyHolders(state);
  const epoch = state.epochs.length - 1;
  for (const account of people.accounts) {
    const name = bytesToHex(key(account));
    const permission = permissionOf(state, key(account));
    const status = state.members.get(name)?.status;
    expect(status === "active").toBe(permission !== "none");
    expect(holders.has(name)).toBe(permission !== "none");
    const keys = world.keysOf(account);
    expect(keys.broken()).toEqual([]);
    if (permission !== "none") {
      removedAt.delete(name);
      // Who may read unwinds every epoch there ever was.
      for (const { epoch: one } of state.epochs) expect(keys.byId(one.keyId)).toBeDefined();
    } else if (status === "removed") {
      if (!removedAt.has(name)) removedAt.set(name, epoch);
      for (const { epoch: one } of state.epochs.slice(removedAt.get(name)!))
        expect(keys.byId(one.keyId)).toBeUndefined();
    } else if (!state.members.get(name)?.history.length) expect(keys.current()).toBeUndefined();
  }
}

describe("several devices", () => {
  for (let i = 0; i < Math.max(1, Math.floor(HISTORIES / 2)); i++) {
    const seed = (firstSeed + 1000 + i) >>> 0;
    rule(`[ACL-11] meeting ${i}: one log, one roster, the same rows`, () => runDevices(seed), 60_000);
  }
});

async function runDevices(seed: number): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  const [admin, writer, ...others] = Array.from({ length: 5 }, () => createAccount());
  const people: People = { accounts: [devices.owner, admin!, writer!, ...others], inviteSeeds: [] };
  const one = devices.open("one", devices.owner);
  await one.space.aclService.act((context) => addAccounts(context, [{ identity: admin!.id, permission: "admin" }]));
  await one.space.aclService.act((context) => addAccounts(context, [{ identity: writer!.id, permission: "writer" }]));
  const all = [one, devices.open("two", devices.owner), devices.open("admin", admin!), devices.open("writer", writer!)];
  await exchange(all);
  const log: string[] = [];
  try {
    for (let step = 0; step < 24; step++) log.push(await takeStep(rng, people, all));
    await exchange(all, () => rng.chance(0.5));
    const owners = all.slice(0, 2);
    for (const device of all.slice(1)) {
      expect([device.name, sameHead(all[0]!, device)]).toEqual([device.name, true]);
      expect(stateText(device.space.acl.state)).toBe(stateText(all[0]!.space.acl.state));
    }
    const members = all.filter((device) => device.space.role() !== "none");
    for (const device of members) {
      expect([device.name, await device.rows()]).toEqual([device.name, await all[0]!.rows()]);
      expect([device.name, device.space.store.parked.usage().count]).toEqual([device.name, 0]);
    }
    for (const device of owners) {
      await keepSnapshot(device);
      const text = stateText(device.space.acl.state);
      await device.reopen();
      expect(stateText(device.space.acl.state)).toBe(text);
      await device.space.engine.rebuildProjection();
      expect(await device.rows()).toEqual(await all[0]!.rows());
    }
    const late = devices.open("late", devices.owner);
    await fetchFrom(late, rng.pick(members));
    expect(await late.rows()).toEqual(await all[0]!.rows());
    for (const device of all) expect(device.space.acl.alarms.list()).toEqual([]);
  } catch (error) {
    console.error(`SEED=${seed - 1000} ROUNDS=2\n${log.join("\n")}`);
    throw error;
  }
}

/** What its log says is kept now, however short it is: it is opened from there, and forks are judged from there. */
const keepSnapshot = ({ space }: Device): Promise<void> =>
  space.engine.changeAcl((scope) => ({ result: space.acl.keepSnapshot(scope) }));

async function takeStep(rng: Rng, people: People, all: readonly Device[]): Promise<string> {
  const device = rng.pick(all);
  if (rng.chance(0.1)) await keepSnapshot(device);
  if (rng.chance(0.4)) {
    if (!["owner", "admin", "writer"].includes(device.space.role())) return `${device.name} may not write`;
    const [id, text] = [`r${rng.int(0, 5)}`, `${device.name} ${rng.int(0, 999)}`];
    await device.write(id, text);
    return `${device.name} writes ${id}`;
  }
  if (rng.chance(0.5)) {
    const from = rng.pick(all.filter((other) => other !== device));
    await fetchFrom(device, from, rng.chance(0.5));
    return `${device.name} fetches from ${from.name}`;
  }
  let kinds = "";
  const build = (context: AclContext): readonly AclOp[] => {
    const ops = randomBuild(rng, people, context)();
    // Ownership stays, so that the owner's two devices keep forking.
    const allowed = ops.some((op) => op.op === "ownershipChange" || op.op === "stopSharing") ? [] : ops;
    kinds = allowed.map((op) => op.op).join("+");
    return allowed;
  };
  try {
    const { aclService } = device.space;
    await (device.space.role() === "owner" ? aclService.act(build) : aclService.propose(build));
    return `${device.name} acts: ${kinds}`;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return `${device.name} may not act: ${error.code}`;
  }
}
