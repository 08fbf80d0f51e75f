/**
 * Thousands of short schedules on links in memory and a virtual clock: a few steps of two or three devices that are mostly apart,
 * each followed by the proof that all have the same and that nobody said `synced` too early. `sync-schedules.test.ts` goes
 * through long ones, in bad weather.
 */
import { describe } from "bun:test";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { passTime, putBack, runSchedules, type SyncCourse, takeStep } from "../support/worlds/sync-course.ts";
import type { SyncDevice } from "../support/worlds/sync-world.ts";

/** Worlds of devices, and schedules that each of them goes through. */
const WORLDS = rounds(50);
const SCHEDULES = 40;
/** Worlds of one test. */
const WORLDS_SHOWN = 10;
const SHAPES = [
  { owners: 2, members: 0 },
  { owners: 1, members: 1 },
  { owners: 2, members: 1 },
];
const SHARES = { writes: 0.6, letsIn: 0.66, toggles: 0.86, restarts: 0.9 };
/** Up to here a device is copied, and beyond it put back. */
const COPIES = 0.95;
const firstSeed = runSeed("small schedules");
/** Worlds in which something once went wrong, kept by name: the `SEED` that the failing run printed. None has yet. */
const PAST_SEEDS: { name: string; seed: number }[] = [];

describe("short schedules on a virtual clock", () => {
  const beginFrom = useSeededRandomness();
  const runWorld = async (seed: number): Promise<void> => {
    beginFrom(seed, true);
    const rng = createRng(seed);
    const shape = rng.pick(SHAPES);
    const run = (course: SyncCourse) => runSchedule(course, shape.owners);
    await runSchedules(rng, { ...shape, count: SCHEDULES, run });
  };
  for (let from = 0; from < WORLDS; from += WORLDS_SHOWN) {
    const upto = Math.min(from + WORLDS_SHOWN, WORLDS);
    rule(
      `[SYNC-3] [SYNC-2] worlds ${from} to ${upto - 1}: ${SCHEDULES} short schedules each, and all have the same`,
      async () => {
        for (let at = from; at < upto; at++) await runWorld((firstSeed + at) >>> 0);
      },
      120_000,
    );
  }
  for (const { name, seed } of PAST_SEEDS) rule(`[SYNC-3] [SYNC-2] past failure: ${name}`, () => runWorld(seed));
});

async function runSchedule(course: SyncCourse, owners: number): Promise<void> {
  const { world, rng, snapshots, log } = course;
  const { devices, links, time } = world;
  const copyOrPutBack = async (device: SyncDevice, dice: number): Promise<string> => {
    if (dice < COPIES || !snapshots.has(device)) {
      snapshots.copy(device);
      return `${device.peerId} is copied`;
    }
    await putBack(course, device);
    return `${device.peerId} is put back`;
  };
  links.weather = { delayMs: rng.pick([2, 40]), loss: rng.pick([0, 0, 0.1]) };
  log.push(`weather ${JSON.stringify(links.weather)}`);
  for (const [at, one] of devices.entries())
    for (const other of devices.slice(at + 1)) if (rng.chance(0.8)) links.cut(one.peerId, other.peerId);
  for (let left = rng.int(2, 5); left > 0; left--) {
    log.push(`${time.elapsedMs()} ${await takeStep(course, owners, SHARES, copyOrPutBack)}`);
    await passTime(course, stepMs(rng));
  }
}

const stepMs = (rng: Rng): number => rng.pick([1, 1, 60, 300]);
