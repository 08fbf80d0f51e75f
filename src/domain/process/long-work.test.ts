import { expect, test } from "bun:test";
import { holdTimers } from "../../../test/support/held-timers.ts";
import { silentLog } from "../../base/log.ts";
import { createLongWorks } from "./long-work.ts";

/** A registry that writes down what it is told. */
function setUp(limits: { announceAfterMs?: number; reportEveryMs?: number }) {
  const calls: (readonly unknown[])[] = [];
  const take = (what: string) => async (of: unknown, more?: unknown) => {
    calls.push([what, of, more]);
    return { subscribers: 0 };
  };
  const processes = { start: take("start"), progress: take("progress"), finish: take("finish") };
  const start = createLongWorks({ processes, log: silentLog, ...limits });
  return { calls, start };
}

const WORK = { kind: "index.query", title: "Index on a", target: "space1" };

test("[PROC-2] work that ends soon is not shown", async () => {
  const { calls, start } = setUp({ announceAfterMs: 60_000 });
  const work = start(WORK);
  work.progress(1, 2);
  work.end();
  expect(calls).toEqual([]);
});

test("[PROC-2] work that lasts is shown from then on, with its progress, until it ends", async () => {
  const { calls, start } = setUp({ announceAfterMs: 0, reportEveryMs: 5 });
  const work = start(WORK);
  work.progress(1, 10);
  while (calls.length < 3) await Bun.sleep(1);
  work.progress(10, 10);
  work.end();
  work.end();
  const id = "index.query.space1";
  expect(calls[0]).toEqual(["start", { id, ...WORK, scope: "device" }, undefined]);
  expect(calls.slice(1, 3)).toEqual(Array(2).fill(["progress", id, { done: 1, total: 10 }]));
  expect(calls.slice(-2)).toEqual([
    ["progress", id, { done: 10, total: 10 }],
    ["finish", id, { status: "done" }],
  ]);
  const count = calls.length;
  const later = start({ ...WORK, target: "space2" });
  while (calls.length < count + 3) await Bun.sleep(1);
  later.end();
  expect(calls.slice(count).filter((each) => JSON.stringify(each).includes(id))).toEqual([]);
});

test("[PROC-2] it is shown once it has lasted three seconds, and a sign of life is given every ten", () => {
  using timers = holdTimers();
  const { calls, start } = setUp({});
  const work = start(WORK);
  timers.pass(2_999);
  expect(calls).toEqual([]);
  timers.pass(1);
  expect(calls.map(([what]) => what)).toEqual(["start", "progress"]);
  for (const count of [3, 4]) {
    timers.pass(9_999);
    expect(calls).toHaveLength(count - 1);
    timers.pass(1);
    expect(calls).toHaveLength(count);
  }
  work.end();
});

test("[PROC-2] work that fails says so", async () => {
  const { calls, start } = setUp({ announceAfterMs: 0, reportEveryMs: 5 });
  const work = start(WORK);
  while (calls.length < 1) await Bun.sleep(1);
  work.end(new Error("no space left"));
  expect(calls.at(-1)).toEqual([
    "finish",
    "index.query.space1",
    { status: "failed", error: { message: "no space left" } },
  ]);
});
