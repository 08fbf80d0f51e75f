import { expect, test } from "bun:test";
import { holdTimers } from "../../../test/support/held-timers.ts";
import { systemClock } from "../../base/clock.ts";
import { createTicker } from "./ticker.ts";

test("[AGENT-2] ticks come as the seconds begin, so that none has two of them and the next none", async () => {
  using timers = holdTimers(10_640);
  const ticksMs: number[] = [];
  const ticker = createTicker({
    clock: systemClock,
    records: { onChanged: () => () => {} },
    changed: () => {},
    tick: () => void ticksMs.push(Date.now()),
    everySecond: () => {},
  });
  await ticker.start();
  timers.pass(3_000);
  await ticker.stop();
  timers.pass(3_000);
  expect(ticksMs).toEqual([10_640, 11_000, 12_000, 13_000]);
});
