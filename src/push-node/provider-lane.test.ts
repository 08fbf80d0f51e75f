import { expect, test } from "bun:test";
import type { Outcome } from "./provider.ts";
import { createProviderLane } from "./provider-lane.ts";

const ACCEPTED: Outcome = { kind: "accepted" };
const SILENT: Outcome = { kind: "later", everyone: false, unreachable: true, reason: "no answer" };

function lane(slots: number) {
  const clock = { atMs: 1_000, nowMs: () => clock.atMs };
  const made = createProviderLane(clock, slots);
  const ask = (outcome: Outcome): void => {
    expect(made.waitMs()).toBe(0);
    made.begun();
    made.ended(outcome);
  };
  return { clock, lane: made, ask };
}

test("[PUSH-7] a provider has so many slots, and what finds none waits a moment", () => {
  const { lane: one } = lane(2);
  one.begun();
  expect(one.waitMs()).toBe(0);
  one.begun();
  expect(one.waitMs()).toBeGreaterThan(0);
  one.ended(ACCEPTED);
  expect(one.waitMs()).toBe(0);
});

test("[PUSH-7] one that is not heard of three times is asked by one request at a time, less and less often, until it answers", () => {
  const { clock, lane: one, ask } = lane(8);
  ask(SILENT);
  ask(SILENT);
  ask(SILENT);
  const pauses: number[] = [];
  for (let round = 0; round < 10; round++) {
    pauses.push(one.waitMs());
    clock.atMs += one.waitMs();
    one.begun();
    expect(one.waitMs()).toBeGreaterThan(0); // no other delivery may start meanwhile
    one.ended(SILENT);
  }
  expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect(pauses.at(-1)).toBe(60_000);
  clock.atMs += 60_000;
  ask(ACCEPTED);
  one.begun();
  expect(one.waitMs()).toBe(0);
});

test("[PUSH-7] a provider's own delay holds for everybody where it says so, and else for nobody else", () => {
  const { clock, lane: one, ask } = lane(8);
  ask({ kind: "later", everyone: false, delayMs: 60_000, reason: "429" });
  expect(one.waitMs()).toBe(0);
  ask({ kind: "later", everyone: true, delayMs: 5_000, reason: "503" });
  expect(one.waitMs()).toBe(5_000);
  clock.atMs += 5_000;
  expect(one.waitMs()).toBe(0);
});
