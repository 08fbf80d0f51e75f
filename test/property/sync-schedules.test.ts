/**
 * Sync as it is, rounds, sessions, statuses and databases, on links in memory and a virtual clock. A schedule says who writes
 * what when, who is let in where, which links are cut, slow and lossy, who restarts and who is put back to an older copy.
 * Whatever it was: `synced` was never said of what nobody else had, and once everybody is reached all have the same.
 */
import { describe } from "bun:test";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { passTime, putBack, runSchedules, type SyncCourse, takeStep } from "../support/worlds/sync-course.ts";
import type { SyncDevice } from "../support/worlds/sync-world.ts";

/** Worlds of devices, and schedules that each of them goes through. */
const WORLDS = rounds(3);
const SCHEDULES = 25;
const STEPS = 10;
const OWNERS = 2;
const SHARES = { writes: 0.5, letsIn: 0.58, toggles: 0.82, restarts: 0.9 };
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
  /** With `putsOwnersBack` the owner's devices are put back, too: then their account forks the ACL log against itself. */
  const runWorld = async (seed: number, putsOwnersBack: boolean): Promise<void> => {
    beginFrom(seed);
    const run = (course: SyncCourse) => runSchedule(course, putsOwnersBack);
    await runSchedules(createRng(seed), { owners: OWNERS, members: 1, count: SCHEDULES, run });
  };
  for (let at = 0; at < WORLDS; at++) {
    const seed = (firstSeed + at) >>> 0;
    rule(
      `[SYNC-3] [SYNC-2] world ${at}: ${SCHEDULES} schedules, and all have the same`,
      () => runWorld(seed, seed % 2 === 0),
      60_000,
    );
  }
  for (const { name, seed } of PAST_SEEDS)
    rule(`[SYNC-3] [SYNC-2] past failure: ${name}`, () => runWorld(seed, true), 60_000);
});

async function runSchedule(course: SyncCourse, putsOwnersBack: boolean): Promise<void> {
  const { world, rng, snapshots, log } = course;
  const { devices, links, time } = world;
  const copyOrPutBack = async (device: SyncDevice): Promise<string> => {
    const copied = putsOwnersBack ? device : devices.at(-1)!;
    if (!snapshots.has(copied)) {
      await snapshots.take(copied);
      return `${copied.peerId} is copied`;
    }
    await putBack(course, copied);
    return `${copied.peerId} is put back`;
  };
  links.weather = { delayMs: rng.pick([2, 40, 400]), loss: rng.pick([0, 0, 0.05, 0.2]) };
  log.push(`weather ${JSON.stringify(links.weather)}`);
  for (let step = 0; step < STEPS; step++) {
    log.push(`${time.elapsedMs()} ${await takeStep(course, OWNERS, SHARES, copyOrPutBack)}`);
    await passTime(course, rng.pick([1, 20, 300, 3_000]));
  }
}
