/** What the trace of a walk is made of: sources that say when they are entered, left, and go on after they waited. */
import { expect, test } from "bun:test";
import { withEntries } from "./trace-entries.ts";

/** Runs a source that was prepared, and answers what it said. */
async function said(source: string): Promise<string[]> {
  const log: string[] = [];
  let made = 0;
  const name = (frame: unknown): string => (frame as { name: string } | undefined)?.name ?? "nobody";
  const trace = {
    enter(file: string, madeBy: unknown) {
      const frame = { name: `${file}${++made}` };
      log.push(`enter ${frame.name} of ${name(madeBy)}`);
      return frame;
    },
    leave: (frame: unknown) => void log.push(`leave ${name(frame)}`),
    suspend(frame: unknown, value: unknown) {
      log.push(`wait ${name(frame)}`);
      return value;
    },
    resume(frame: unknown, value: unknown) {
      log.push(`go on ${name(frame)}`);
      return value;
    },
  };
  const code = new Bun.Transpiler({ loader: "ts" }).transformSync(withEntries("f", source));
  // oxlint-disable-next-line typescript/no-implied-eval -- the source that was prepared
  await (new Function("__trace", `${code}; return run();`)(trace) as unknown);
  return log;
}

test("a function says that it is entered and left, also by throwing, and which call made it", async () => {
  const log = await said(`
    function run(): void { const inner = (): number => again(1); inner(); try { fail(); } catch {} }
    function again(n = 2): number { return n; }
    function fail(): never { throw new Error("x"); }`);
  expect(log).toEqual([
    "enter f1 of nobody",
    "enter f2 of f1",
    "enter f3 of nobody",
    "leave f3",
    "leave f2",
    "enter f4 of nobody",
    "leave f4",
    "go on f1",
    "leave f1",
  ]);
});

test("a function that waits is left meanwhile, in loops and after failures too", async () => {
  const log = await said(`
    async function run(): Promise<void> {
      await 1;
      try { await Promise.reject(new Error("x")); } catch {}
      for await (const n of [1, 2]) { void n; }
    }`);
  const rounds = ["go on f1", "wait f1", "go on f1", "wait f1"];
  expect(log).toEqual([
    "enter f1 of nobody",
    "wait f1",
    "go on f1",
    "wait f1",
    "go on f1",
    "wait f1",
    ...rounds,
    "go on f1",
    "leave f1",
  ]);
});
