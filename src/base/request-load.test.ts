import { expect, test } from "bun:test";
import { createRequestLoad } from "./request-load.ts";

test("many requests within a tenth of a second are a high load, until there were few for as long", () => {
  let nowMs = 0;
  const load = createRequestLoad(() => nowMs);
  const come = (count: number): void => {
    for (let at = 0; at < count; at++) load.note();
  };
  expect(load.isHigh()).toBe(false);
  come(9);
  expect(load.isHigh()).toBe(false);
  come(1);
  expect(load.isHigh()).toBe(true);
  nowMs = 110;
  expect(load.isHigh()).toBe(true); // what was a moment ago
  come(2);
  nowMs = 220;
  expect(load.isHigh()).toBe(false);
  come(20);
  nowMs = 1_000;
  expect(load.isHigh()).toBe(false);
});
