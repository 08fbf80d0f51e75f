import { expect, test } from "bun:test";
import { createTurns } from "./turns.ts";

test("alone there is nothing to wait for", () => {
  const turns = createTurns();
  using one = turns.join();
  expect(one.turn()).toBeUndefined();
  {
    using two = turns.join();
    expect(two.turn()).toBeInstanceOf(Promise);
  }
  expect(one.turn()).toBeUndefined();
});

test("one piece in a turn of the loop, in the order of asking, and others have theirs between", async () => {
  const turns = createTurns();
  const seen: string[] = [];
  let over = false;
  const work = async (name: string): Promise<void> => {
    using participant = turns.join();
    for (let piece = 0; piece < 3; piece++) {
      await participant.turn();
      seen.push(name);
    }
  };
  const tick = (): void => {
    seen.push("|");
    if (!over) setImmediate(tick);
  };
  setImmediate(tick);
  await Promise.all(["a", "b", "c"].map(work));
  over = true;
  const perTurn = seen
    .join("")
    .split("|")
    .filter((pieces) => pieces !== "");
  expect(perTurn.every((pieces) => pieces.length === 1)).toBe(true);
  expect(seen.filter((one) => one !== "|").join("")).toMatch(/^abcabc/);
});

test("who leaves while others wait keeps nobody waiting", async () => {
  const turns = createTurns();
  using one = turns.join();
  const two = turns.join();
  const waiting = one.turn();
  two[Symbol.dispose]();
  two[Symbol.dispose]();
  await waiting;
  expect(one.turn()).toBeUndefined();
});

test("after a piece that took its time the loop is left to others", async () => {
  const turns = createTurns();
  const startedMs = performance.now();
  const pieces = Array.from({ length: 4 }, async () => {
    await turns.turn();
    for (const until = performance.now() + 1.5; performance.now() < until; );
  });
  await Promise.all(pieces);
  // Three pauses, in whole milliseconds of timers.
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(4 * 1.5 + 3 * 0.8);
});

test("the smaller its share, the longer the loop is left to others", async () => {
  const turns = createTurns({ share: () => 1 / 6 });
  const startedMs = performance.now();
  const pieces = Array.from({ length: 3 }, async () => {
    await turns.turn();
    for (const until = performance.now() + 1; performance.now() < until; );
  });
  await Promise.all(pieces);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(3 * 1 + 2 * 4);
});

test("what takes next to nothing waits for its turn alone", async () => {
  let nowMs = 0;
  const turns = createTurns({ elapsedMs: () => nowMs });
  for (let index = 0; index < 1_000; index++) {
    await turns.turn();
    nowMs += 0.0005;
  }
  expect(nowMs).toBeCloseTo(0.5);
});
