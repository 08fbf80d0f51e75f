import { afterEach, expect, test } from "bun:test";
import { errorOf } from "../../test/support/errors-of.ts";
import { createWorkerPool, WorkerLost, type WorkerPool, WorkerRefused } from "./worker-pool.ts";

type Pool = WorkerPool<string, string>;
let pool: Pool | undefined;
let spawned = 0;
afterEach(() => pool?.close());

/** Answers what it is told, but for `throw`, `exit` and `hang`, which it does. */
const ENTRY = `
  self.onmessage = ({ data }) => {
    if (data === "throw") throw new Error("it broke");
    if (data === "exit") process.exit(0);
    while (data === "hang");
    postMessage(data);
  };`;

function createPool(size = 1, deadlineMs = 30_000): Pool {
  spawned = 0;
  pool = createWorkerPool<string, string>({
    spawn() {
      spawned++;
      return new Worker(URL.createObjectURL(new Blob([ENTRY], { type: "application/javascript" })));
    },
    size,
    idleMs: 30_000,
    deadlineMs,
  });
  return pool;
}

test("requests are answered in their order by no more threads than allowed", async () => {
  const workers = createPool(2);
  const many = Array.from({ length: 50 }, (_, n) => `${n}`);
  expect(await Promise.all(many.map((one) => workers.run(one)))).toEqual(many);
  expect(spawned).toBe(2);
});

for (const end of ["throw", "exit"]) {
  test(`one that ends (${end}) loses what it was at, and what waited goes to another`, async () => {
    const workers = createPool();
    const [lost, next] = [workers.run(end), workers.run("next")];
    expect(await errorOf(lost)).toBeInstanceOf(WorkerLost);
    expect(await next).toBe("next");
    expect(spawned).toBe(2);
  });
}

test("one that hangs is given up on, and what waited goes to another", async () => {
  const workers = createPool(1, 1_500);
  const [lost, next] = [workers.run("hang"), workers.run("next")];
  expect(await errorOf(lost)).toBeInstanceOf(WorkerLost);
  expect(await next).toBe("next");
});

test("what nobody wants any more when its turn comes is not begun", async () => {
  const workers = createPool();
  const [first, second] = [workers.run("a"), workers.run("b", { isWanted: () => false })];
  expect(await first).toBe("a");
  expect(await errorOf(second)).toBeInstanceOf(WorkerRefused);
});

test("closing refuses what runs, what waits and what comes", async () => {
  const workers = createPool();
  const faults = [workers.run("hang"), workers.run("next")].map(errorOf);
  workers.close();
  faults.push(errorOf(workers.run("later")));
  for (const fault of await Promise.all(faults)) expect(fault).toBeInstanceOf(WorkerRefused);
});

test("one that does not heed its stop is given up on after the grace, and one that does is kept", async () => {
  const workers = createPool();
  const stop = new AbortController();
  const heeds = workers.run("fine", { stop: stop.signal });
  stop.abort();
  expect(await heeds).toBe("fine");
  const lost = workers.run("hang", { stop: stop.signal });
  expect(await errorOf(lost)).toBeInstanceOf(WorkerLost);
  expect(await workers.run("next")).toBe("next");
  expect(spawned).toBe(2);
});
