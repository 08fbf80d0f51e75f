import { afterAll, describe, expect, test } from "bun:test";
import { createTestPrograms, type TestRun } from "../../test/support/server/program-runs.ts";
import type { CallOutcome } from "./program-processes.ts";
import type { ProgramCall, ProgramStart } from "./program-protocol.ts";
import { replayProgram } from "./program-replay.ts";
import { createTraceRecorder, parseTrace, type Trace } from "./program-trace.ts";

const programs = createTestPrograms();
afterAll(() => programs.processes.close());

const run = (body: string, rest: Omit<TestRun, "source"> = {}) =>
  programs.run({ source: `export default async function main(args, ctx) { ${body} }`, ...rest });

describe("[AGENT-9] a program", () => {
  test("gets its arguments and its context, and returns JSON", async () => {
    const end = await run("return { args, ctx, none: undefined }", { args: { a: [1, "ü"] } });
    expect(end).toMatchObject({ status: "ok" });
    expect(JSON.parse((end as { value: string }).value)).toEqual({
      args: { a: [1, "ü"] },
      ctx: { runId: "run_0", signal: { aborted: false } },
    });
  });

  test("may export main by its name, or only declare it", async () => {
    expect(await programs.run({ source: "export function main() { return 1 }" })).toMatchObject({ value: "1" });
    expect(await programs.run({ source: "async function main() { return 2 } // the end" })).toMatchObject({
      value: "2",
    });
    expect(await programs.run({ source: "const x = 1" })).toMatchObject({ status: "failed" });
  });

  test("[AGENT-10] has the time and the random numbers of its host, so that they can be had again", async () => {
    const body = "return [Date.now(), new Date().getTimezoneOffset(), Math.random()]";
    const [one, two] = [await run(body), await run(body)];
    expect(one).toEqual(two);
    const others = await Promise.all([1, 2, 3].map((seed) => run("return Math.random()", { seed })));
    expect(new Set(others.map((end) => "value" in end && end.value)).size).toBe(3);
    expect(JSON.parse((one as { value: string }).value).slice(0, 2)).toEqual([1_700_000_000_000, 0]);
  });

  test("sees a failed call as an error with a code, and its answers side by side", async () => {
    const asked = new Map<number, PromiseWithResolvers<void>>([1, 5, 9].map((i) => [i, Promise.withResolvers()]));
    const call = async ({ name, input }: ProgramCall): Promise<CallOutcome> => {
      if (name === "svc.get")
        return { error: { code: "object.not_found", message: "gone", details: { objectId: "x" } } };
      // The call that was made last is answered first.
      const { i } = JSON.parse(input) as { i: number };
      await asked.get(i + 4)?.promise;
      await Bun.sleep(0);
      asked.get(i)!.resolve();
      return { output: input };
    };
    const body = `try { await svc.get({}) } catch (e) { args.seen = [e instanceof Error, e.code, e.message, e.details] }
      const order = []; await Promise.all([1, 5, 9].map((i) => svc.query({ i }).then((r) => order.push(r.i))));
      return [args.seen, order]`;
    expect(await run(body, { call })).toMatchObject({
      status: "ok",
      value: JSON.stringify([
        [true, "object.not_found", "gone", { objectId: "x" }],
        [9, 5, 1],
      ]),
    });
  });

  test("leaves nothing for the next one", async () => {
    await run("globalThis.left = 1; Array.prototype.left = 2; return 0");
    expect(await run("return [typeof left, [].left === undefined]")).toMatchObject({ value: '["undefined",true]' });
  });
});

describe("[AGENT-9] limits", () => {
  // Of the executable, over a thousand runs: test/scenario/program-fuel.test.ts.
  test("[AGENT-10] fuel is the same over a hundred runs", async () => {
    const body =
      "let s = 0; for (let i = 0; i < 500; i++) s += JSON.stringify({ i, r: Math.random() }).length; return s";
    const first = await run(body);
    expect(first.status).toBe("ok");
    for (let round = 0; round < 25; round++)
      expect(await Promise.all([run(body), run(body), run(body), run(body)])).toEqual([first, first, first, first]);
  }, 60_000);

  test("time ends a run that waits and one that spins, and the process goes on", async () => {
    const never = () => new Promise<CallOutcome>(() => {});
    expect((await run("await svc.query({})", { timeoutMs: 200, call: never })).status).toBe("timeout");
    expect((await run("for (;;);", { timeoutMs: 200, fuel: 1e12 })).status).toBe("timeout");
    expect(await run("return 1")).toMatchObject({
      status: "ok",
      fuel: expect.any(Number),
      memPages: expect.any(Number),
    });
  });

  test("memory ends a run at its own cap", async () => {
    const body = "const all = []; for (let i = 0; i < 24; i++) all.push(new ArrayBuffer(1 << 20)); return 1";
    expect((await run(body)).status).toBe("ok");
    expect(await run(body, { maxPages: 256 })).toMatchObject({ status: "memory_exhausted" });
  });

  test("what is written into the log is bounded, however much fuel there is", async () => {
    const seen: number[] = [];
    const call = async ({ input }: ProgramCall): Promise<CallOutcome> => {
      seen.push(input.length);
      return { output: "" };
    };
    const end = await run("const line = 'x'.repeat(1 << 20); for (;;) log(line)", { fuel: 1e9, call });
    expect(end).toMatchObject({ status: "failed", error: expect.stringContaining("a run may log 8 MiB") });
    expect(seen.length).toBeLessThan(8);
  });

  test("what is asked to end is ended while it loops, and others are not touched", async () => {
    const end = new AbortController();
    const [loops, asks, ended] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const looping = run("log('I loop'); for (;;);", {
      fuel: 1e12,
      signal: end.signal,
      call: async () => {
        loops!.resolve();
        return { output: "" };
      },
    });
    const other = run("await svc.query({}); return 1", {
      call: async () => {
        asks!.resolve();
        await ended!.promise;
        return { output: "1" };
      },
    });
    await Promise.all([loops!.promise, asks!.promise]);
    end.abort();
    expect(await looping).toMatchObject({ status: "lost" });
    ended!.resolve();
    expect(await other).toMatchObject({ status: "ok" });
  });
});

describe("[AGENT-10] a replay", () => {
  const source = `export default async function main(args) {
    const out = [];
    await Promise.all([3, 1, 2].map(async (i) => { out.push([await svc.query({ i, r: Math.random() }), Date.now()]); }));
    log("seen", out.length);
    try { await svc.get({ id: "x" }) } catch (e) { out.push(e.code) }
    svc.query({ never: true });
    return out;
  }`;

  async function record(): Promise<Trace> {
    const start: ProgramStart = {
      source,
      args: "{}",
      context: "{}",
      fuel: 1e8,
      maxPages: 1024,
      timeoutMs: 9000,
      nowMs: 5000,
      seed: 42,
    };
    const writer = createTraceRecorder(start, "p@v1");
    let calls = 0;
    const answered = new Map([1, 2, 3].map((i) => [i, Promise.withResolvers<void>()]));
    const call = async ({ name, input }: ProgramCall): Promise<CallOutcome> => {
      calls++;
      if (name === "svc.get") return { error: { code: "object.not_found", message: "gone" } };
      if (input.includes("never")) return new Promise(() => {});
      if (name === "log") return { output: "" };
      const { i } = JSON.parse(input) as { i: number };
      await answered.get(i - 1)?.promise; // the lowest is answered first
      answered.get(i)!.resolve();
      return { output: `{"was":${input}}` };
    };
    const end = await programs.processes.run({
      start,
      call,
      onSettled: (one, outcome, nowMs) => writer.settled(one, outcome, nowMs, 1),
      signal: new AbortController().signal,
    });
    if (!("engine" in end)) throw new Error(end.error);
    const { status, fuel, memPages } = end;
    return parseTrace(writer.finish(end.engine, { status, fuel, memPages, calls }, end.value)) as Trace;
  }

  test("gives the same result and the same fuel, and does nothing again", async () => {
    const trace = await record();
    const replayed = await replayProgram(programs.processes, trace, source);
    expect(replayed).toMatchObject({
      same: true,
      status: "ok",
      fuel: trace.end.fuel,
      sourceChanged: false,
      engineChanged: false,
    });
    expect(replayed.value).toEqual(trace.end.value);
  });

  test("names the first call that differs, a call that is new, one that is missing, and another end", async () => {
    const trace = await record();
    const replay = (other: string) => replayProgram(programs.processes, trace, other);
    expect(await replay(source.replace("[3, 1, 2]", "[3, 7, 2]"))).toMatchObject({
      same: false,
      sourceChanged: true,
      difference: { n: 1, what: "call", expected: { input: { i: 1 } }, got: { name: "svc.query", input: { i: 7 } } },
    });
    expect((await replay(source.replace("return out", "await svc.query({}); return out"))).difference).toMatchObject({
      n: 6,
      what: "new call",
    });
    expect((await replay(source.replace(/try .*/, ""))).difference).toMatchObject({ n: 4, what: "call" });
    expect((await replay(source.replace("return out", "return out.length"))).difference).toMatchObject({ what: "end" });
  });
});
