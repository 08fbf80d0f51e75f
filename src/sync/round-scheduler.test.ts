import { expect, test } from "bun:test";
import { createVirtualTime } from "../../test/support/worlds/virtual-time.ts";
import type { SpaceId } from "../base/ids.ts";
import { silentLog } from "../base/log.ts";
import { createProgressBook } from "./progress.ts";
import { createResting } from "./resting.ts";
import { createRoundScheduler } from "./round-scheduler.ts";

const TECH = "tech" as SpaceId;
const INTERVAL_MS = 10_000;

test("regular rounds follow the first one also when that failed", async () => {
  const time = createVirtualTime(async () => {});
  const book = createProgressBook();
  let rounds = 0;
  const scheduler = createRoundScheduler({
    book,
    resting: createResting({ book, clock: time.clock }),
    transports: [],
    clock: time.clock,
    log: silentLog,
    timers: time,
    intervalMs: INTERVAL_MS,
    techId: TECH,
    held: () => [],
    isHere: () => true,
    async round() {
      rounds++;
      if (rounds === 1) throw new Error("the disk is full");
    },
    during: (run) => run(),
    notifyStatus: () => {},
  });
  scheduler.start();
  await expect(scheduler.firstRound()).rejects.toThrow("the disk is full");
  expect(rounds).toBe(1);
  await time.runWhile(time.sleep(3 * INTERVAL_MS));
  expect(rounds).toBeGreaterThanOrEqual(2);
  scheduler.close();
  await scheduler.ended();
});
