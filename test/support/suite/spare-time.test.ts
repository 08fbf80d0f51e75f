import { expect, test } from "bun:test";
import { createSpareTime, processorUse, usedShare } from "./spare-time.ts";

test("processors have time left where less than 85 % of a second or more was used, and that is said once", () => {
  let use = { atMs: 0, busyMs: 0 };
  const hasTime = createSpareTime(() => use, 2);
  const after = (ms: number, busyMs: number): boolean => {
    use = { atMs: use.atMs + ms, busyMs: use.busyMs + busyMs };
    return hasTime();
  };
  expect(after(500, 0)).toBe(false); // too short to tell
  expect(after(500, 1_000)).toBe(true);
  expect(after(0, 0)).toBe(false); // what was begun just now does not show yet
  expect(after(1_000, 1_900)).toBe(false);
  expect(after(1_000, 1_600)).toBe(true);
});

test("work shows in the use of the machine", () => {
  const from = processorUse();
  const untilMs = performance.now() + 200;
  while (performance.now() < untilMs);
  expect(usedShare(from, processorUse(), 1)).toBeGreaterThan(0);
});
