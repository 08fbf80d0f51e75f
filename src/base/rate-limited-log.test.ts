import { expect, test } from "bun:test";
import { type Log, type LogFields, silentLog } from "./log.ts";
import { createRateLimitedLog } from "./rate-limited-log.ts";

function recorded() {
  const lines: [string, LogFields | undefined][] = [];
  let now = 0;
  const log: Log = { ...silentLog, warn: (message, fields) => void lines.push([message, fields]) };
  const pass = (ms: number): void => {
    now += ms;
  };
  return { lines, rateLimited: createRateLimitedLog(log, () => now), pass };
}

test("a subject is told once, and after a while again with how often it was kept back", () => {
  const { lines, rateLimited, pass } = recorded();
  for (let i = 0; i < 5; i++) rateLimited.warn("a", "refused", { i });
  rateLimited.warn("b", "refused");
  expect(lines).toEqual([
    ["refused", { i: 0 }],
    ["refused", {}],
  ]);
  pass(11 * 60_000);
  rateLimited.warn("a", "refused", { i: 5 });
  expect(lines[2]).toEqual(["refused", { i: 5, repeated: 4 }]);
});

test("made-up subjects do not fill the log", () => {
  const { lines, rateLimited } = recorded();
  for (let i = 0; i < 10_000; i++) rateLimited.warn(`subject ${i}`, "refused");
  expect(lines).toHaveLength(100);
});
