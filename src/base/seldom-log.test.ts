import { expect, test } from "bun:test";
import { type Log, type LogFields, silentLog } from "./log.ts";
import { createSeldomLog } from "./seldom-log.ts";

function recorded() {
  const lines: [string, LogFields | undefined][] = [];
  let now = 0;
  const log: Log = { ...silentLog, warn: (message, fields) => void lines.push([message, fields]) };
  const pass = (ms: number): void => {
    now += ms;
  };
  return { lines, seldom: createSeldomLog(log, () => now), pass };
}

test("a subject is told once, and after a while again with how often it was kept back", () => {
  const { lines, seldom, pass } = recorded();
  for (let i = 0; i < 5; i++) seldom.warn("a", "refused", { i });
  seldom.warn("b", "refused");
  expect(lines).toEqual([
    ["refused", { i: 0 }],
    ["refused", {}],
  ]);
  pass(11 * 60_000);
  seldom.warn("a", "refused", { i: 5 });
  expect(lines[2]).toEqual(["refused", { i: 5, repeated: 4 }]);
});

test("made-up subjects do not fill the log", () => {
  const { lines, seldom } = recorded();
  for (let i = 0; i < 10_000; i++) seldom.warn(`subject ${i}`, "refused");
  expect(lines).toHaveLength(100);
});
