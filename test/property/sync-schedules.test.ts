/**
 * Sync as it is, rounds, sessions, statuses and databases, on links in memory and a virtual clock. A schedule says who writes
 * what when, who is let in where, which links are cut, slow and lossy, who restarts and who is put back to an older copy.
 * Whatever it was: `synced` was never said of what nobody else had, and once everybody is reached all have the same.
 */
import { describe } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import { createRng, runSeed } from "../support/rng.ts";
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
const WORLDS = Number(process.env["WORLDS"] ?? 16);
const SCHEDULES = 25;
const STEPS = 10;
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
      () => runWorld(seed, seed % 2 === 0),
      60_000,
    );
  }
  for (const { name, seed } of PAST_SEEDS)
    rule(`[convergence] [status] past failure: ${name}`, () => runWorld(seed, true), 60_000);
});

interface Course extends SyncCourse {
  /** Whether the owner's devices are put back, too: then their account forks the ACL log against itself. */
  readonly putsOwnersBack: boolean;
}

async function runSchedules(seed: number, putsOwnersBack: boolean): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-schedules", memoryDir());
  await using world = await openSyncWorld(dir.path, rng, { owners: 2, members: 1 });
  const course: Course = { ...beginCourse(world, rng), putsOwnersBack };
  try {
    for (let schedule = 0; schedule < SCHEDULES; schedule++)
      await runCourse(course, `schedule ${schedule}`, () => runSchedule(course));
  } catch (error) {
    console.error(`SEED=${seed} WORLDS=1\n${course.log.join("\n")}`);
    throw error;
  }
}

async function runSchedule(course: Course): Promise<void> {
  const { world, rng, log } = course;
  const { links, time } = world;
  links.weather = { delayMs: rng.pick([2, 40, 400]), loss: rng.pick([0, 0, 0.05, 0.2]) };
  log.push(`weather ${JSON.stringify(links.weather)}`);
  for (let step = 0; step < STEPS; step++) {
    log.push(`${time.elapsedMs()} ${await takeStep(course)}`);
    await passTime(course, rng.pick([1, 20, 300, 3_000]));
  }
}

async function takeStep(course: Course): Promise<string> {
  const { world, rng, snapshots, putsOwnersBack } = course;
  const { devices } = world;
  const device = rng.pick(devices);
  const other = rng.pick(devices.filter((each) => each !== device));
  const dice = rng.next();
  if (dice < 0.5) {
    await writeRecord(course, device);
    return `${device.peerId} writes`;
  }
  if (dice < 0.58) {
    const owner = rng.pick(devices.slice(0, 2));
    const account = createAccount(randomBytes(32));
    await owner.addMember(account);
    course.added.set(account, owner);
    return `${owner.peerId} lets somebody in`;
  }
  if (dice < 0.82) return toggleLink(course, device, other);
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
