/**
 * Thousands of short schedules on links in memory and a virtual clock: a few steps of two or three devices that are mostly apart,
 * each followed by the proof that all have the same and that nobody said `synced` too early. `sync-schedules.test.ts` goes
 * through long ones, in bad weather.
 */
import { describe } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import {
  beginCourse,
  passTime,
  putBack,
  runCourse,
  type SyncCourse,
  toggleLink,
  writeRecord,
} from "../support/worlds/sync-course.ts";
import { openSyncWorld } from "../support/worlds/sync-world.ts";

/** Worlds of devices, and schedules that each of them goes through. */
const WORLDS = Number(process.env["WORLDS"] ?? 50);
const SCHEDULES = 40;
/** Worlds of one test. */
const WORLDS_SHOWN = 10;
const SHAPES = [
  { owners: 2, members: 0 },
  { owners: 1, members: 1 },
  { owners: 2, members: 1 },
];
const firstSeed = runSeed("small schedules");
/** Worlds in which something once went wrong, kept by name. */
const PAST_SEEDS: { name: string; seed: number }[] = [];

describe("short schedules on a virtual clock", () => {
  const beginFrom = useSeededRandomness();
  const runWorld = async (seed: number): Promise<void> => {
    beginFrom(seed, true);
    await runSchedules(seed);
  };
  for (let from = 0; from < WORLDS; from += WORLDS_SHOWN) {
    const upto = Math.min(from + WORLDS_SHOWN, WORLDS);
    rule(
      `[convergence] [status] worlds ${from} to ${upto - 1}: ${SCHEDULES} short schedules each, and all have the same`,
      async () => {
        for (let at = from; at < upto; at++) await runWorld((firstSeed + at) >>> 0);
      },
      120_000,
    );
  }
  for (const { name, seed } of PAST_SEEDS) rule(`[convergence] [status] past failure: ${name}`, () => runWorld(seed));
});

async function runSchedules(seed: number): Promise<void> {
  const rng = createRng(seed);
  const shape = rng.pick(SHAPES);
  using dir = scratchDir("svc-small-schedules", memoryDir());
  await using world = await openSyncWorld(dir.path, rng, shape);
  const course = beginCourse(world, rng);
  try {
    for (let schedule = 0; schedule < SCHEDULES; schedule++)
      await runCourse(course, `schedule ${schedule} of ${JSON.stringify(shape)}`, () =>
        runSchedule(course, shape.owners),
      );
  } catch (error) {
    console.error(`SEED=${seed} WORLDS=1\n${course.log.join("\n")}`);
    throw error;
  }
}

async function runSchedule(course: SyncCourse, owners: number): Promise<void> {
  const { world, rng, log } = course;
  const { devices, links, time } = world;
  links.weather = { delayMs: rng.pick([2, 40]), loss: rng.pick([0, 0, 0.1]) };
  log.push(`weather ${JSON.stringify(links.weather)}`);
  for (const [at, one] of devices.entries())
    for (const other of devices.slice(at + 1)) if (rng.chance(0.8)) links.cut(one.peerId, other.peerId);
  for (let left = rng.int(2, 5); left > 0; left--) {
    log.push(`${time.elapsedMs()} ${await takeStep(course, owners)}`);
    await passTime(course, stepMs(rng));
  }
}

const stepMs = (rng: Rng): number => rng.pick([1, 1, 60, 300]);

async function takeStep(course: SyncCourse, owners: number): Promise<string> {
  const { world, rng, snapshots, added } = course;
  const { devices } = world;
  const device = rng.pick(devices);
  const other = rng.pick(devices.filter((each) => each !== device));
  const dice = rng.next();
  if (dice < 0.6) {
    await writeRecord(course, device);
    return `${device.peerId} writes`;
  }
  if (dice < 0.66) {
    const owner = rng.pick(devices.slice(0, owners));
    const account = createAccount(randomBytes(32));
    await owner.addMember(account);
    added.set(account, owner);
    return `${owner.peerId} lets somebody in`;
  }
  if (dice < 0.86) return toggleLink(course, device, other);
  if (dice < 0.9) {
    await device.restart();
    return `${device.peerId} restarts`;
  }
  if (dice < 0.95 || !snapshots.has(device)) {
    snapshots.copy(device);
    return `${device.peerId} is copied`;
  }
  await putBack(course, device);
  return `${device.peerId} is put back`;
}
