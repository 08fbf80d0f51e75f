/**
 * What was done so far in a world of devices on links in memory, and what has to hold of it: `synced` was never said of what
 * nobody else had, and once everybody is reached all have the same.
 */
import { expect } from "bun:test";
import { randomBytes } from "../../../src/base/random.ts";
import type { Account } from "../../../src/crypto/account.ts";
import type { Rng } from "../rng.ts";
import { memoryDir, scratchDir } from "../scratch.ts";
import { digestOf, headOf, roleOf } from "./acl-devices.ts";
import { createAccount } from "./acl-world.ts";
import { createSnapshots, openSyncWorld, rowsOf, type SyncDevice, type SyncWorld } from "./sync-world.ts";

/** In which everybody has to be synced once all links are there. What another owner's device is waited for takes ten. */
const HEALED_MS = 30 * 60_000;

export interface SyncCourse {
  readonly world: SyncWorld;
  readonly rng: Rng;
  readonly snapshots: ReturnType<typeof createSnapshots>;
  /** Ids of changes that were acknowledged and that no device was put back behind since. */
  readonly acknowledged: Set<string>;
  /** Accounts that were let in, and that no device was put back behind. */
  readonly added: Map<Account, SyncDevice>;
  /** Changes that a device lost by being put back, and the others may think it keeps. */
  readonly lost: Set<string>;
  /** What was done in this schedule. */
  readonly log: string[];
  readonly faults: string[];
}

/** Who is in a world, and how many schedules it goes through. */
export interface Schedules {
  readonly owners: number;
  readonly members: number;
  readonly count: number;
  /** One of them. */
  readonly run: (course: SyncCourse) => Promise<void>;
}

/** A fresh world goes through its schedules, one after the other; what was done in the one that failed is printed. */
export async function runSchedules(rng: Rng, { owners, members, count, run }: Schedules): Promise<void> {
  using dir = scratchDir("svc-schedules", memoryDir());
  await using world = await openSyncWorld(dir.path, rng, { owners, members });
  const course = beginCourse(world, rng);
  try {
    for (let at = 0; at < count; at++)
      await runCourse(course, `schedule ${at} of ${owners} and ${members}`, () => run(course));
  } catch (error) {
    console.error(`SEED=${rng.seed} WORLDS=1\n${course.log.join("\n")}`);
    throw error;
  }
}

/** Of steps, the part at which the next thing begins: until the first somebody writes. */
interface StepShares {
  readonly writes: number;
  readonly letsIn: number;
  readonly toggles: number;
  readonly restarts: number;
}

/**
 * Some device does something, and what it did is answered. What is left of the shares is for `remaining`, which gets the device
 * and where between 0 and 1 the dice came to lie.
 */
export async function takeStep(
  course: SyncCourse,
  owners: number,
  shares: StepShares,
  remaining: (device: SyncDevice, dice: number) => Promise<string>,
): Promise<string> {
  const { world, rng, added } = course;
  const { devices } = world;
  const device = rng.pick(devices);
  const other = rng.pick(devices.filter((each) => each !== device));
  const dice = rng.next();
  if (dice < shares.writes) {
    await writeRecord(course, device);
    return `${device.peerId} writes`;
  }
  if (dice < shares.letsIn) {
    const owner = rng.pick(devices.slice(0, owners));
    const account = createAccount(randomBytes(32));
    await owner.addMember(account);
    added.set(account, owner);
    return `${owner.peerId} lets somebody in`;
  }
  if (dice < shares.toggles) return toggleLink(course, device, other);
  if (dice < shares.restarts) {
    await device.restart();
    return `${device.peerId} restarts`;
  }
  return remaining(device, dice);
}

function beginCourse(world: SyncWorld, rng: Rng): SyncCourse {
  const course: SyncCourse = {
    world,
    rng,
    snapshots: createSnapshots(),
    acknowledged: new Set(),
    added: new Map(),
    lost: new Set(),
    log: [],
    faults: [],
  };
  world.onStatus((device, state) => {
    if (state === "synced") noteUntruth(course, device);
  });
  return course;
}

/** One schedule: what is done in it, then all links, until everybody has the same. */
async function runCourse(course: SyncCourse, name: string, run: () => Promise<void>): Promise<void> {
  course.log.splice(0, course.log.length, name);
  await run();
  await heal(course);
  expectSame(course);
  expect(course.faults).toEqual([]);
}

/** Time goes on, and whoever says that it is synced by then has to be. */
export async function passTime(course: SyncCourse, ms: number): Promise<void> {
  await course.world.time.runFor(ms);
  for (const device of course.world.devices) if (await device.isSynced()) noteUntruth(course, device);
}

/** A record, one of four. */
async function writeRecord({ rng, acknowledged }: SyncCourse, device: SyncDevice): Promise<void> {
  for (const id of await device.write(`r${rng.int(0, 3)}`, `${device.peerId} ${rng.int(0, 999)}`)) acknowledged.add(id);
}

/** Cuts the link of two, or connects them. Answers what was done. */
function toggleLink({ world: { links } }: SyncCourse, one: SyncDevice, other: SyncDevice): string {
  if (links.isConnected(one.peerId, other.peerId)) {
    links.cut(one.peerId, other.peerId);
    return `cut ${one.peerId} ${other.peerId}`;
  }
  links.connect(one.peerId, other.peerId);
  return `connect ${one.peerId} ${other.peerId}`;
}

/** What a device alone had is gone then, and what others had of it they may take it to have still. */
export async function putBack(course: SyncCourse, device: SyncDevice): Promise<void> {
  const { snapshots, world, acknowledged, added, lost } = course;
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
function noteUntruth({ world, acknowledged, lost, faults, log }: SyncCourse, device: SyncDevice): void {
  const others = world.devices.filter((each) => each !== device).map((each) => each.changeIds());
  for (const id of device.changeIds()) {
    if (!acknowledged.has(id) || lost.has(id) || others.some((ids) => ids.has(id))) continue;
    faults.push(`${device.peerId} says synced, and ${id} is nowhere else (${log.at(-1)})`);
  }
}

/** All links are there and good, for as long as it takes until everybody says synced. */
async function heal({ world, log }: SyncCourse): Promise<void> {
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

function expectSame({ world, acknowledged, added, lost }: SyncCourse): void {
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
