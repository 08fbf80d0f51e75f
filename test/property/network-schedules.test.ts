/**
 * Devices of an owner and of members, on a network in memory and a virtual clock. A schedule says who writes,
 * who is put out, whose way to the network is cut, who restarts, and at which message somebody is killed.
 * Whatever it was: in the end all who stay have one log and the same bytes, nothing acknowledged is lost, the network holds each
 * record once, and who was put out has asked for no place that came after.
 */
import { describe, expect } from "bun:test";
import type { EpochState } from "../../src/acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../src/base/bytes.ts";
import { randomBytes } from "../../src/base/random.ts";
import { deriveChannelKeys, logSubject } from "../../src/sync/network/subjects.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { headOf, roleOf } from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { faultsOnNetwork } from "../support/worlds/rotations.ts";
import { openSyncWorld, rowsOf, type SyncDevice, type SyncWorld } from "../support/worlds/sync-world.ts";

/** Worlds of devices, and schedules that each of them goes through. */
const WORLDS = rounds(2);
const SCHEDULES = 12;
const STEPS = 10;
/** In which everybody has to be synced once the network is there. */
const HEALED_MS = 30 * 60_000;
/** More than any step of what devices do asks for. */
const MESSAGES = 25;
const firstSeed = runSeed("network schedules");
interface WorldKind {
  readonly comeAgain?: boolean;
  readonly forks?: boolean;
  /** How many, if not all. */
  readonly schedules?: number;
}
const KINDS: WorldKind[] = [{ forks: true, comeAgain: true }, { comeAgain: true }, { forks: true }, {}];
/** By turns, or those of one kind: `FORKS=1` lets owners' devices act apart, `COME_AGAIN=1` lets in again who was put out. */
const kindOf = (at: number): WorldKind => {
  const { FORKS: forks, COME_AGAIN: comeAgain } = process.env;
  return forks || comeAgain ? { forks: forks === "1", comeAgain: comeAgain === "1" } : KINDS[at % KINDS.length]!;
};
/** Worlds in which something once went wrong, kept by name. */
const PAST_SEEDS: { name: string; seed: number; how: WorldKind }[] = [
  { name: "an owner's device that rotated twice on a branch that lost stayed there", seed: 5001, how: { forks: true } },
  { name: "a channel that was closed while it published never ended", seed: 5010, how: { forks: true } },
  { name: "nobody told those on a branch that lost", seed: 5010, how: { forks: true, comeAgain: true } },
  {
    name: "the keys of what a record of a lost branch had sequenced were not passed on",
    seed: 121,
    how: { forks: true },
  },
  {
    name: "the round of somebody who was put out meanwhile never ended",
    seed: 9016,
    how: { forks: true, comeAgain: true, schedules: 2 },
  },
  {
    name: "what stood in a log and was no longer known to was published for ever",
    seed: 9017,
    how: { forks: true, comeAgain: true, schedules: 4 },
  },
  {
    name: "a round waited for news that it had heard, and left nobody a turn",
    seed: 9315,
    how: { forks: true, comeAgain: true, schedules: 3 },
  },
  {
    name: "nobody got the change of somebody who did not count that one which counted followed",
    seed: 9531,
    how: { forks: true, comeAgain: true },
  },
  {
    name: "an owner's device kept a record of a lost branch waiting for ever",
    seed: 81,
    how: { forks: true, comeAgain: true },
  },
  {
    name: "a place whose end lost with its branch was taken for one that had ended",
    seed: 5015,
    how: { forks: true, comeAgain: true },
  },
  {
    name: "an account that only a branch that lost had put out looked no further, and what was put behind a place's end was waited for",
    seed: 5033,
    how: { forks: true, comeAgain: true },
  },
];

interface Course {
  readonly world: SyncWorld;
  readonly rng: Rng;
  /** Ids of changes that were acknowledged to who was a member all the while. */
  readonly acknowledged: Set<string>;
  /** Who is perhaps put out: an owner's device died while it did that, and what it had made may stand on the network. */
  readonly undecided: Set<SyncDevice>;
  /** Whether those who were put out are let in again. */
  readonly comeAgain: boolean;
  /** Whether owners' devices act while they are cut off, and so on branches of their own. */
  readonly forks: boolean;
  readonly log: string[];
}

const isMember = ({ device }: SyncDevice, judge: SyncDevice): boolean =>
  roleOf(judge.device, device.account) !== "none";

/** When an account became a member and ceased to be one, as somebody knows it. */
const comingAndGoing = ({ device }: SyncDevice, judge: SyncDevice) =>
  judge.device.space.acl.state.members.get(bytesToHex(device.account.signer.publicKey))?.history;

describe("rotations on a network in memory", () => {
  const beginFrom = useSeededRandomness();
  const runWorld = async (seed: number, how: WorldKind): Promise<void> => {
    beginFrom(seed);
    await runSchedules(seed, how);
  };
  for (let at = 0; at < WORLDS; at++) {
    const seed = (firstSeed + at) >>> 0;
    rule(
      `[ACL-7] [SYNC-3] world ${at}: ${SCHEDULES} schedules, and all have one log`,
      () => runWorld(seed, kindOf(at)),
      60_000,
    );
  }
  for (const { name, seed, how } of PAST_SEEDS)
    rule(`[ACL-7] [SYNC-3] past failure: ${name}`, () => runWorld(seed, how), 60_000);
});

async function runSchedules(seed: number, how: WorldKind): Promise<void> {
  const { comeAgain = false, forks = false, schedules = SCHEDULES } = how;
  const rng = createRng(seed);
  using dir = scratchDir("svc-network-schedules", memoryDir());
  await using world = await openSyncWorld(dir.path, rng, { owners: 2, members: 2, onNetwork: true });
  const course: Course = { world, rng, acknowledged: new Set(), undecided: new Set(), comeAgain, forks, log: [] };
  try {
    for (const device of world.devices) device.client!.connect(true);
    for (let schedule = 0; schedule < schedules; schedule++) {
      course.log.splice(0, course.log.length, `schedule ${schedule}`);
      course.undecided.clear();
      await runSchedule(course);
      await heal(course);
      // What came too late to an old place is left to others to publish again for a while.
      await world.time.runFor(60_000);
      await untilAgreed(course); // who was out by a lost branch may be reading the log that won
      expectOne(course);
    }
  } catch (error) {
    console.error(
      `${forks ? "FORKS=1 " : ""}${comeAgain ? "COME_AGAIN=1 " : ""}SEED=${seed} ROUNDS=1\n${course.log.join("\n")}`,
    );
    throw error;
  }
}

async function runSchedule(course: Course): Promise<void> {
  const { world, rng, log } = course;
  world.network.delayMs = rng.pick([2, 40, 400]);
  for (let step = 0; step < STEPS; step++) {
    log.push(`${world.time.elapsedMs()} ${await takeStep(course)}`);
    await world.time.runFor(rng.pick([1, 20, 300, 3_000]));
  }
}

async function takeStep(course: Course): Promise<string> {
  const { world, rng, log } = course;
  const up = world.devices.filter((device) => !device.isKilled());
  const killed = world.devices.filter((device) => device.isKilled());
  if (killed.length > 0 && (up.length < 2 || rng.chance(0.3))) {
    const device = rng.pick(killed);
    await device.restart();
    return `${device.peerId} is back`;
  }
  const device = rng.pick(up);
  const dice = rng.next();
  if (dice < 0.35) return write(course, device);
  if (dice < 0.6) return moveMembers(course, up);
  if (dice < 0.75) {
    device.client!.connect(!device.client!.isConnected());
    return `${device.client!.isConnected() ? "connect" : "cut"} ${device.peerId}`;
  }
  if (dice < 0.82) {
    await device.restart();
    return `${device.peerId} restarts`;
  }
  if (dice < 0.95) {
    const at = rng.int(1, MESSAGES);
    const isPassed = rng.chance(0.5);
    device.killAt(at, isPassed);
    log.push(`${device.peerId} is to die at message ${at}${isPassed ? ", which passes" : ""}`);
    return moveMembers(course, up);
  }
  return repeat(course);
}

async function write({ world, rng, acknowledged, undecided }: Course, device: SyncDevice): Promise<string> {
  if (device.device.space.replica.role() === "none") return `${device.peerId} is out`;
  const ids = await device.write(`r${rng.int(0, 3)}`, `${device.peerId} ${rng.int(0, 999)}`);
  // Of who is put out meanwhile, what the owner had not heard of does not count.
  // Nor does what somebody wrote who was put out and let in again, and has heard of neither.
  const knownAlike = (owner: SyncDevice) =>
    isMember(device, owner) && Bun.deepEquals(comingAndGoing(device, owner), comingAndGoing(device, device));
  if (!undecided.has(device) && world.devices.slice(0, 2).every(knownAlike)) for (const id of ids) acknowledged.add(id);
  return `${device.peerId} writes`;
}

/** An owner's device puts somebody out, or lets somebody in. */
async function moveMembers(
  { world, rng, acknowledged, undecided, comeAgain, forks }: Course,
  up: readonly SyncDevice[],
): Promise<string> {
  const owners = world.devices
    .slice(0, 2)
    .filter((device) => up.includes(device) && (forks || device.client!.isConnected()));
  if (owners.length === 0) return "no owner is there";
  const owner = rng.pick(owners);
  if (rng.chance(0.4)) {
    const account = createAccount(randomBytes(32));
    const done = (await owner.addMember(account)) && (await owner.removeMember(account));
    return `${owner.peerId} rotates: ${done}`;
  }
  const member = rng.pick(world.devices.slice(2));
  const { account } = member.device;
  if (!isMember(member, owner)) {
    if (!comeAgain) return `${member.peerId} stays out`;
    return `${owner.peerId} lets ${member.peerId} in: ${await owner.addMember(account)}`;
  }
  // What it wrote that the owner has not, does not count from now on.
  const known = owner.changeIds();
  for (const id of member.changeIds()) if (!known.has(id)) acknowledged.delete(id);
  const done = await owner.removeMember(account);
  if (!done) undecided.add(member);
  return `${owner.peerId} puts ${member.peerId} out: ${done}`;
}

/** Somebody who is admitted repeats what there is, or adds something, wherever that is. */
function repeat({ world: { network }, rng }: Course): string {
  if (network.messages.length === 0) return "nothing to repeat";
  const { subject, data } = rng.pick(network.messages);
  const { subject: other } = rng.pick(network.messages);
  for (const bytes of [data, randomBytes(rng.int(1, 2_000))]) {
    network.append(subject, bytes);
    network.append(other, bytes);
  }
  return `${subject} is repeated`;
}

/** All are up and connected, for as long as it takes until they agree. */
async function heal(course: Course): Promise<void> {
  const { devices, network, time } = course.world;
  network.delayMs = 5;
  for (const device of devices) {
    if (device.isKilled()) await device.restart();
    device.client!.connect(true);
  }
  await time.runFor(60_000);
  await passSecond(course);
  await untilAgreed(course);
}

async function passSecond({ world: { devices, time } }: Course): Promise<void> {
  await time.runFor(1_000);
  for (const device of devices) if (device.isKilled()) await device.restart();
}

/** Until each knows whether it is a member, and all who are say synced; at once where that is so. */
async function untilAgreed(course: Course): Promise<void> {
  const { devices, time } = course.world;
  const endMs = time.elapsedMs() + HEALED_MS;
  while (!(await areAgreed(course.world))) {
    if (time.elapsedMs() >= endMs) {
      const staying = stayingIn(course.world);
      const debugs = await Promise.all(staying.map(({ service, device }) => service.debug(device.space.id)));
      const states = await Promise.all(staying.map(({ service, device }) => service.status(device.space.id)));
      course.log.push(JSON.stringify(states), JSON.stringify(debugs, null, 1), ...devices.map(viewOf));
      throw new Error(`not synced after ${HEALED_MS / 1_000} s on the network`);
    }
    await passSecond(course);
  }
}

async function areAgreed(world: SyncWorld): Promise<boolean> {
  const staying = stayingIn(world);
  if (world.devices.some((device) => isMember(device, device) !== staying.includes(device))) return false;
  const states = await Promise.all(staying.map(({ service, device }) => service.status(device.space.id)));
  return states.every(({ state }) => state === "synced") && areOne(world);
}

const viewOf = (one: SyncDevice): string => {
  const { replica } = one.device.space;
  const places = replica.places().map(({ keyId, secret, to }) => `${keyId.slice(0, 6)}${secret ? "" : "?"} to ${to}`);
  const changes = one.device.changes().map(({ id, counts }) => `${bytesToHex(id).slice(0, 6)}${counts ? "" : "-"}`);
  return `${one.peerId} ${replica.role()} at ${headOf(one).slice(0, 6)}: ${places.join(", ")}; ${changes.slice(-8).join()}`;
};
const stayingIn = ({ devices }: SyncWorld): SyncDevice[] => devices.filter((device) => isMember(device, devices[0]!));

const areOne = (world: SyncWorld): boolean =>
  stayingIn(world).every(
    (each) =>
      // Of what does not count, some have more than others.
      Bun.deepEquals(rowsOf(each), rowsOf(world.devices[0]!)) &&
      headOf(each) === headOf(world.devices[0]!) &&
      // A member keeps what lost and cannot take effect any more.
      !(each.device.space.replica.role() === "owner" && each.device.space.replica.acl.hasPending()),
  );

function expectOne({ world, acknowledged }: Course): void {
  const { devices, network } = world;
  const [first] = devices as [SyncDevice];
  const staying = stayingIn(world);
  for (const device of staying) {
    expect(rowsOf(device)).toEqual(rowsOf(first));
    const ids = device.changeIds();
    expect([...acknowledged].filter((id) => !ids.has(id))).toEqual([]);
  }
  expect(faultsOnNetwork(network.messages, first.device.space)).toEqual([]);
  for (const device of devices.filter((each) => !staying.includes(each))) {
    expect(device.device.space.replica.role()).toBe("none");
    expect(laterPlaces(first, device).length).toBeGreaterThan(0);
    expect(laterPlaces(first, device).filter((subject) => device.client!.asked.has(subject))).toEqual([]);
  }
}

/** The ACL logs of the places that came after the last one whose key was given to an account. */
function laterPlaces({ device: { space } }: SyncDevice, { device: { account } }: SyncDevice): string[] {
  const places = space.replica.places();
  const isGiven = ({ epoch, shared }: EpochState) =>
    [...epoch.sealed, ...shared].some(({ to }) => equalBytes(to, account.signer.publicKey));
  const given = space.acl.state.epochs.findLast(isGiven);
  const last = places.findLastIndex(({ keyId }) => given !== undefined && keyId === bytesToHex(given.epoch.keyId));
  return places.slice(last + 1).map(({ secret }) => logSubject(deriveChannelKeys(secret!), "a"));
}
