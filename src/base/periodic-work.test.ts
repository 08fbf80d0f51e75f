import { expect, test } from "bun:test";
import { holdTimers } from "../../test/support/held-timers.ts";
import type { Log } from "./log.ts";
import { createPeriodicWork } from "./periodic-work.ts";

const errors: string[] = [];
const log = { error: (message: string) => void errors.push(message) } as unknown as Log;

/** What is only waiting for promises that are settled goes on. */
const aMoment = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
};

test("work at an interval is done again after it failed, never twice at once, and its end is waited for", async () => {
  using timers = holdTimers();
  const ends: PromiseWithResolvers<void>[] = [];
  let begun = 0;
  const work = createPeriodicWork({
    name: "work",
    everyMs: 100,
    log,
    run() {
      begun++;
      if (begun === 1) throw new Error("the first time it fails");
      const end = Promise.withResolvers<void>();
      ends.push(end);
      return end.promise;
    },
  });
  await work.start();
  expect(begun).toBe(0);
  timers.pass(100);
  await aMoment();
  expect([begun, errors.length]).toEqual([1, 1]);
  timers.pass(300);
  expect(begun).toBe(2);
  ends[0]!.resolve();
  await aMoment();
  timers.pass(100);
  expect(begun).toBe(3);

  let stopped = false;
  const stopping = Promise.resolve(work.stop()).then(() => (stopped = true));
  timers.pass(500);
  await aMoment();
  expect([begun, stopped]).toEqual([3, false]);
  ends[1]!.resolve();
  await stopping;
});
