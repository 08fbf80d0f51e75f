/**
 * `bun test/bench/agents.ts`: what triggers and programs cost. A tick over a thousand triggers, the start of a run, runs a
 * second through the whole server, and point reads while hostile programs run.
 */
import { childCommand } from "../../src/base/child-command.ts";
import { silentLog } from "../../src/base/log.ts";
import { createTriggerRuns } from "../../src/domain/trigger/trigger-runs.ts";
import { createTriggerScheduler } from "../../src/domain/trigger/trigger-scheduler.ts";
import { PROGRAM_CHILD } from "../../src/sandbox/program-limits.ts";
import { createProgramProcesses } from "../../src/sandbox/program-processes.ts";
import { agentOf, RUNTIME_ENV } from "../support/agent.ts";
import { HOSTILE_PROGRAMS } from "../support/hostile-programs.ts";
import { measureReads } from "../support/latency.ts";
import { BINARY, startServer } from "../support/server.ts";
import { type Line, median, milliseconds, perSecond, renderTable } from "./report.ts";

const SERVER_MS = 10_000;
const TRIGGERS = 100;
const SINGLE_RUNS = 100;
const lines: Line[] = [tickLine(), ...(await processLines()), ...(await serverLines()), await hostileLine()];
console.log(renderTable(lines));

/** Nothing is due, and then one record was edited. */
function tickLine(): Line {
  const records = Array.from({ length: 1_000 }, (_, index) => ({
    id: `t${index}`,
    kind: "cron",
    spec: `${index % 60} * * * *`,
    program: "p@v1",
    enabled: true,
    owner: "me",
  }));
  const triggers = { list: () => records, write: async () => {} };
  const clock = { nowMs: () => Date.now() };
  const none = { list: () => [], running: () => [], insert: async () => {}, keepTrace: async () => {} };
  const runs = createTriggerRuns({
    triggers,
    runs: { ...none, complete: async () => {}, remove: async () => {} },
    self: "me",
    clock,
  });
  const scheduler = createTriggerScheduler({
    triggers,
    runs,
    election: { self: "me", active: () => "me", isKnown: () => true },
    execute: async () => ({ status: "ok", fuel: 0, memPages: 0, costUsd: 0 }),
    clock,
    log: silentLog,
    newRunId: () => "run_0",
    announce: () => {},
    isOwnMessage: () => false,
    isNative: () => false,
  });
  const timed = (work: () => void): number => {
    const startedMs = performance.now();
    work();
    return performance.now() - startedMs;
  };
  scheduler.tick();
  const quiet = median(Array.from({ length: 200 }, () => timed(scheduler.tick)));
  const edited = median(
    Array.from({ length: 50 }, () => {
      scheduler.touched();
      return timed(scheduler.tick);
    }),
  );
  return {
    name: "tick, 1,000 triggers",
    figures: `${milliseconds(quiet)} when nothing is due, ${milliseconds(edited)} after an edit`,
  };
}

async function processLines(): Promise<Line[]> {
  const processes = createProgramProcesses({
    command: [BINARY, ...childCommand(PROGRAM_CHILD).slice(-1)],
    log: silentLog,
    nowMs: Date.now,
  });
  const start = {
    source: "export default () => 1",
    args: "{}",
    context: "{}",
    fuel: 1e9,
    maxPages: 1024,
    timeoutMs: 10_000,
    nowMs: 0,
    seed: 1,
  };
  const run = () => processes.run({ start, call: async () => ({ output: "" }), signal: new AbortController().signal });
  const startedMs = performance.now();
  await run();
  const firstMs = performance.now() - startedMs;
  const times: number[] = [];
  for (let index = 0; index < 300; index++) {
    const beganMs = performance.now();
    await run();
    times.push(performance.now() - beganMs);
  }
  await processes.stop();
  const value = median(times);
  return [
    {
      name: "a run of an empty program, its process there",
      figures: `${milliseconds(value)}; the first, with the process, ${milliseconds(firstMs)}`,
      value,
      aim: { atMost: 5, unit: "ms" },
    },
  ];
}

/** A hundred triggers that fire every second, with rows, figures and traces; and one run after the other. */
async function serverLines(): Promise<Line[]> {
  await using server = await startServer({ env: RUNTIME_ENV });
  const agent = await agentOf(server);
  const program = await agent.putProgram("empty", "return 1");
  await agent.putTrigger("alone", { program });
  const durations: number[] = [];
  for (let round = 0; round < SINGLE_RUNS; round++)
    durations.push((await agent.run("alone")).run["durationMs"] as number);
  const startMs = durations.reduce((sum, one) => sum + one, 0) / SINGLE_RUNS;

  for (let index = 0; index < TRIGGERS; index++) await agent.putTrigger(`t${index}`, { program, spec: "* * * * * *" });
  const runs = async (): Promise<number> => {
    const { triggers } = await server.control.get<{ triggers: { runCount?: number }[] }>("/triggers");
    return triggers.reduce((sum, { runCount = 0 }) => sum + runCount, 0);
  };
  const [startRuns, startedMs] = [await runs(), performance.now()];
  await Bun.sleep(SERVER_MS);
  const value = ((await runs()) - startRuns) / ((performance.now() - startedMs) / 1000);
  return [
    {
      name: "a run of an empty program through the server, one after the other, mean",
      figures: milliseconds(startMs),
      value: startMs,
      aim: { atMost: 5, unit: "ms" },
    },
    {
      name: `runs a second, ${TRIGGERS} triggers that fire every second`,
      figures: perSecond(value),
      value,
      aim: { atLeast: 0.95 * TRIGGERS, unit: "/s" },
    },
  ];
}

/** The whole table of hostile programs, as many at once as the server runs, while somebody reads. */
async function hostileLine(): Promise<Line> {
  await using server = await startServer({ env: RUNTIME_ENV });
  const agent = await agentOf(server);
  const path = `/v1/spaces/${agent.spaceId}`;
  const limits = { fuelPerRun: 200_000_000, timeoutS: 20 };
  const ids = HOSTILE_PROGRAMS.map((_, index) => `h${index}`);
  for (const [index, [, body]] of HOSTILE_PROGRAMS.entries())
    await agent.putTrigger(ids[index]!, { program: await agent.putProgram(ids[index]!, body), limits });
  await measureReads(server.client, path, 1_000);
  const before = await measureReads(server.client, path, 4_000);

  let over = false;
  const hostile = (async () => {
    const left = [...ids];
    const lane = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await agent.run(id);
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
    over = true;
  })();
  const times: number[] = [];
  while (!over) times.push((await measureReads(server.client, path, 1_000)).p99Ms);
  await hostile;
  const meanwhileMs = median(times);
  return {
    name: `p99 of point reads while ${ids.length} hostile programs run, four at once, against idle`,
    figures: `${milliseconds(meanwhileMs)} against ${milliseconds(before.p99Ms)}`,
    ratio: meanwhileMs / before.p99Ms,
    aim: { atMost: 3 },
  };
}
