/**
 * Sync as it is, rounds, sessions, statuses and databases, on links in memory and a virtual clock. A schedule says who writes
 * what when, who is let in where, which links are cut, slow and lossy, who restarts and who is put back to an older copy.
 * Whatever it was: `synced` was never said of what nobody else had, and once everybody is reached all have the same.
 */
import { describe, expect } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import type { Account } from "../../src/crypto/account.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { digestOf, headOf, roleOf } from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import {
  createSnapshots,
  openSyncWorld,
  rowsOf,
  type SyncDevice,
  type SyncWorld,
} from "../support/worlds/sync-world.ts";

/** Worlds of devices, and schedules that each of them goes through. */
const WORLDS = Number(process.env["WORLDS"] ?? 16);
const SCHEDULES = 25;
const STEPS = 10;
/** In which everybody has to be synced once all links are there. What another owner's device is waited for takes ten. */
const HEALED_MS = 30 * 60_000;
const firstSeed = runSeed("sync schedules");
/** Worlds in which something once went wrong, kept by name. */
const PAST_SEEDS: { name: string; seed: number }[] = [
  { name: "what lost its place for a while was not asked for when it counted again", seed: 3020449934 },
  { name: "records of a branch that had taken effect were handed to and fro for ever", seed: 1015 },
  { name: "a record waited for one before it that had been forgotten", seed: 1023 },
  { name: "what a change named no longer went on waiting on a member's device", seed: 2002 },
];

describe("sync on a virtual clock", () => {
  const beginFrom = useSeededRandomness();
  const runWorld = async (seed: number, putsOwnersBack: boolean): Promise<void> => {
    beginFrom(seed);
    await runSchedules(seed, putsOwnersBack);
  };
  for (let at = 0; at < WORLDS; at++) {
    const seed = (firstSeed + at) >>> 0;
    rule(
      `[convergence] [status] world ${at}: ${SCHEDULES} schedules, and all have the same`,
      () => runWorld(seed, at % 2 === 0),
      60_000,
    );
  }
  for (const { name, seed } of PAST_SEEDS)
    rule(`[convergence] [status] past failure: ${name}`, () => runWorld(seed, true), 60_000);
});

interface Course {
  readonly world: SyncWorld;
  readonly rng: Rng;
  readonly snapshots: ReturnType<typeof createSnapshots>;
  /** Ids of changes that were acknowledged and that no device was put back behind since. */
  readonly acknowledged: Set<string>;
  /** Accounts that were let in, and that no device was put back behind. */
  readonly added: Map<Account, SyncDevice>;
  /** Changes that a device lost by being put back, and the others may think it keeps. */
  readonly lost: Set<string>;
  /** Whether the owner's devices are put back, too: then their account forks the ACL log against itself. */
  readonly putsOwnersBack: boolean;
  readonly log: string[];
  readonly faults: string[];
}

async function runSchedules(seed: number, putsOwnersBack: boolean): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-schedules", memoryDir());
  await using world = await openSyncWorld(dir.path, rng, { owners: 2, members: 1 });
  const course: Course = {
    world,
    rng,
    snapshots: createSnapshots(),
    acknowledged: new Set(),
    added: new Map(),
    lost: new Set(),
    putsOwnersBack,
    log: [],
    faults: [],
  };
  world.onStatus((device, state) => {
    if (state === "synced") noteUntruth(course, device);
  });
  try {
    for (let schedule = 0; schedule < SCHEDULES; schedule++) {
      course.log.splice(0, course.log.length, `schedule ${schedule}`);
      await runSchedule(course);
      await heal(course);
      expectSame(course);
      expect(course.faults).toEqual([]);
    }
  } catch (error) {
    console.error(`SEED=${seed} WORLDS=1\n${course.log.join("\n")}`);
    throw error;
  }
}

async function runSchedule(course: Course): Promise<void> {
  const { world, rng, log } = course;
  const { devices, links, time } = world;
  links.weather = { delayMs: rng.pick([2, 40, 400]), loss: rng.pick([0, 0, 0.05, 0.2]) };
  log.push(`weather ${JSON.stringify(links.weather)}`);
  for (let step = 0; step < STEPS; step++) {
    log.push(`${time.elapsedMs()} ${await takeStep(course)}`);
    await time.runFor(rng.pick([1, 20, 300, 3_000]));
    for (const device of devices) if (await device.isSynced()) noteUntruth(course, device);
  }
}

async function takeStep(course: Course): Promise<string> {
  const { world, rng, snapshots, putsOwnersBack } = course;
  const { devices, links } = world;
  const device = rng.pick(devices);
  const other = rng.pick(devices.filter((each) => each !== device));
  const dice = rng.next();
  if (dice < 0.5) {
    for (const id of await device.write(`r${rng.int(0, 3)}`, `${device.peerId} ${rng.int(0, 999)}`))
      course.acknowledged.add(id);
    return `${device.peerId} writes`;
  }
  if (dice < 0.58) {
    const owner = rng.pick(devices.slice(0, 2));
    const account = createAccount(randomBytes(32));
    await owner.addMember(account);
    course.added.set(account, owner);
    return `${owner.peerId} lets somebody in`;
  }
  if (dice < 0.82) {
    if (links.isConnected(device.peerId, other.peerId)) {
      links.cut(device.peerId, other.peerId);
      return `cut ${device.peerId} ${other.peerId}`;
    }
    links.connect(device.peerId, other.peerId);
    return `connect ${device.peerId} ${other.peerId}`;
  }
  if (dice < 0.9) {
    await device.restart();
    return `${device.peerId} restarts`;
  }
  const copied = putsOwnersBack ? device : devices.at(-1)!;
  if (!snapshots.has(copied)) {
    await snapshots.take(copied);
    return `${copied.peerId} is copied`;
  }
  await putBack(course, copied);
  return `${copied.peerId} is put back`;
}

/** What a device alone had is gone then, and what others had of it they may take it to have still. */
async function putBack({ snapshots, world, acknowledged, added, lost }: Course, device: SyncDevice): Promise<void> {
  const before = device.changeIds();
  await snapshots.putBack(device);
  const after = device.changeIds();
  const others = world.devices.filter((each) => each !== device).map((each) => each.changeIds());
  for (const id of before) {
    if (after.has(id)) continue;
    lost.add(id);
    if (!others.some((ids) => ids.has(id))) acknowledged.delete(id);
  }
  for (const [account] of added)
    if (!world.devices.some((each) => roleOf(each.device, account) !== "none")) added.delete(account);
}

/** Whoever says `synced` has nothing acknowledged that no other device has. */
function noteUntruth({ world, acknowledged, lost, faults, log }: Course, device: SyncDevice): void {
  const others = world.devices.filter((each) => each !== device).map((each) => each.changeIds());
  for (const id of device.changeIds()) {
    if (!acknowledged.has(id) || lost.has(id) || others.some((ids) => ids.has(id))) continue;
    faults.push(`${device.peerId} says synced, and ${id} is nowhere else (${log.at(-1)})`);
  }
}

/** All links are there and good, for as long as it takes until everybody says synced. */
async function heal({ world, log }: Course): Promise<void> {
  const { devices, links, time } = world;
  links.weather = { delayMs: 5, loss: 0 };
  for (const one of devices) for (const other of devices) if (one !== other) links.connect(one.peerId, other.peerId);
  const endMs = time.elapsedMs() + HEALED_MS;
  for (;;) {
    await time.runFor(1_000);
    const states = await Promise.all(devices.map(({ service, device }) => service.status(device.space.id)));
    if (states.every(({ state }) => state === "synced") && areSame(world)) return;
    if (time.elapsedMs() < endMs) continue;
    const debugs = await Promise.all(devices.map(({ service, device }) => service.debug(device.space.id)));
    log.push(JSON.stringify(states), JSON.stringify(debugs, null, 1));
    throw new Error(`not synced after ${HEALED_MS / 1_000} s of good links`);
  }
}

/** All have the same, and nothing waits for an owner's device any more. */
const areSame = ({ devices }: SyncWorld): boolean =>
  devices.every(
    (each) =>
      digestOf(each) === digestOf(devices[0]!) &&
      headOf(each) === headOf(devices[0]!) &&
      !each.device.space.replica.acl.hasPending(),
  );

function expectSame({ world, acknowledged, added, lost }: Course): void {
  const [first, ...others] = world.devices;
  const rows = rowsOf(first!);
  for (const device of others) expect(rowsOf(device)).toEqual(rows);
  for (const device of world.devices) {
    const ids = device.changeIds();
    expect([...acknowledged].filter((id) => !ids.has(id))).toEqual([]);
    expect([...added.keys()].filter((account) => roleOf(device.device, account) === "none")).toEqual([]);
  }
  lost.clear();
}
