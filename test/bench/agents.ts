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
import { HOSTILE_PROGRAMS } from "../support/hostile/hostile-programs.ts";
import { measureReads, timedCall } from "../support/latency.ts";
import { type AgentFixture, agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import { until } from "../support/server/client.ts";
import { BINARY, type RunningServer, startServer } from "../support/server/server.ts";
import { type Line, median, milliseconds, perSecond, renderTable } from "./report.ts";

const SERVER_MS = 10_000;
const BUSY = 8;
const WINDOW_MS = 1_000;
const HOSTILE_A_WINDOW = 8;
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
  const triggers = { list: () => records, get: (id: string) => records[Number(id.slice(1))], write: async () => {} };
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
    election: { self: "me", active: () => "me", isKnown: () => true, isPruned: () => false },
    execute: async () => ({ status: "ok", fuel: 0, memPages: 0, costUsd: 0 }),
    clock,
    log: silentLog,
    newRunId: () => "run_0",
    announce: () => {},
    isOwnMessage: () => false,
    isNative: () => false,
  });
  scheduler.tick();
  const quiet = median(Array.from({ length: 200 }, () => timedCall(scheduler.tick)));
  const edited = median(
    Array.from({ length: 50 }, () => {
      scheduler.changed("t5");
      return timedCall(scheduler.tick);
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
  await processes.close();
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

/** What a run costs through the server, and how many a second it can do: rows, figures, traces and all. */
async function serverLines(): Promise<Line[]> {
  await using server = await startServer({ env: RUNTIME_ENV });
  const agent = await agentOf(server);
  const program = await agent.putProgram("empty", "return 1");
  const first = await firstCallMs(agent);
  await agent.putTrigger("alone", { program });
  const durations: number[] = [];
  for (let round = 0; round < SINGLE_RUNS; round++)
    durations.push((await agent.run("alone")).run["durationMs"] as number);
  const sustained = await sustainedPerSecond(server, agent, program);

  return [
    {
      name: "from the request to the first call of the program that reaches its host, median",
      figures: milliseconds(first),
      value: first,
      aim: { atMost: 5, unit: "ms" },
    },
    {
      name: "a run of an empty program through the server, one after the other, median",
      figures: milliseconds(median(durations)),
      value: median(durations),
      aim: { atMost: 5, unit: "ms" },
    },
    {
      name: `runs a second, as many as it can do of ${BUSY} triggers`,
      figures: perSecond(sustained),
      value: sustained,
      aim: { atLeast: 100, unit: "/s" },
    },
  ];
}

/** The trace says when a call was answered and how long that took. */
async function firstCallMs(agent: AgentFixture): Promise<number> {
  const program = await agent.putProgram("calls", "await svc.query({ limit: 1 })");
  await agent.putTrigger("calls", { program });
  const times: number[] = [];
  for (let round = 0; round < SINGLE_RUNS; round++) {
    const askedMs = performance.timeOrigin + performance.now();
    const { trace } = await agent.run("calls");
    const { nowMs, ms } = trace![1] as { nowMs: number; ms: number };
    times.push(nowMs - ms - askedMs);
  }
  return median(times);
}

/** Each trigger is run again as soon as its run has ended; of each fifty rows are there by then, so that each run drops one. */
async function sustainedPerSecond(server: RunningServer, agent: AgentFixture, program: string): Promise<number> {
  const ids = Array.from({ length: BUSY }, (_, index) => `busy${index}`);
  for (const id of ids) await agent.putTrigger(id, { program });
  let over = false;
  const lanes = ids.map(async (id) => {
    while (!over) await server.control.post(`/triggers/${id}/run`, {}, 201);
  });
  const counts = async () => (await Promise.all(ids.map(agent.trigger))).map((record) => record["runCount"] as number);
  await until(async () => (await counts()).every((count) => count >= 50), "fifty runs of each", 120_000);
  const value = await runsPerSecond(server, SERVER_MS);
  over = true;
  await Promise.all(lanes);
  return value;
}

async function runsPerSecond(server: RunningServer, forMs: number): Promise<number> {
  const runs = async (): Promise<number> => {
    const { triggers } = await server.control.get<{ triggers: { runCount?: number }[] }>("/triggers");
    return triggers.reduce((sum, { runCount = 0 }) => sum + runCount, 0);
  };
  const [before, startedMs] = [await runs(), performance.now()];
  await Bun.sleep(forMs);
  return ((await runs()) - before) / ((performance.now() - startedMs) / 1000);
}

/**
 * The whole table of hostile programs, as many at once as the server runs, while somebody reads. Windows of reads with nothing
 * else and with programs alternate, so that whatever else the machine does is in both.
 */
async function hostileLine(): Promise<Line> {
  await using server = await startServer({ env: RUNTIME_ENV });
  const agent = await agentOf(server);
  const path = `/v1/spaces/${agent.spaceId}`;
  const limits = { fuelPerRun: 200_000_000, timeoutS: 20 };
  const ids = HOSTILE_PROGRAMS.map((_, index) => `h${index}`);
  for (const [index, [, body]] of HOSTILE_PROGRAMS.entries())
    await agent.putTrigger(ids[index]!, { program: await agent.putProgram(ids[index]!, body), limits });
  await measureReads(server.client, path, 1_000);

  const [idle, busy]: [number[], number[]] = [[], []];
  const left = [...ids];
  while (left.length > 0) {
    idle.push((await measureReads(server.client, path, WINDOW_MS)).p99Ms);
    let over = false;
    const runs = Promise.all(left.splice(0, HOSTILE_A_WINDOW).map((id) => agent.run(id))).finally(() => {
      over = true;
    });
    while (!over) busy.push((await measureReads(server.client, path, WINDOW_MS)).p99Ms);
    await runs;
  }
  return {
    name: `p99 of point reads while ${ids.length} hostile programs run, four at once, against idle`,
    figures: `${milliseconds(median(busy))} against ${milliseconds(median(idle))}`,
    ratio: median(busy) / median(idle),
    aim: { atMost: 3 },
  };
}
