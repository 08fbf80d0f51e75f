import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { childCommand } from "../../base/child-command.ts";
import type { DeviceService } from "../../domain/device/device-service.ts";
import type { Election } from "../../domain/trigger/port.ts";
import { createTriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import { createTriggerScheduler } from "../../domain/trigger/trigger-scheduler.ts";
import { PROGRAM_CHILD } from "../../sandbox/program-limits.ts";
import { createProgramProcesses } from "../../sandbox/program-processes.ts";
import { openAgentRecords } from "./agent-records.ts";
import { AGENT, installAgentSpace } from "./agent-space.ts";
import { createChatNews } from "./chat-news.ts";
import { seedChatWatch } from "./chat-watch-seed.ts";
import { createHostAllowList } from "./host-allow-list.ts";
import { createHostApi } from "./host-api.ts";
import { createHttpFetch } from "./http-fetch.ts";
import { openLlmBudget, type Spending } from "./llm-budget.ts";
import { createLlmChat } from "./llm-chat.ts";
import { createLocalApi } from "./local-api.ts";
import { createProgramRunner } from "./program-runner.ts";
import { createProgramStore } from "./program-store.ts";
import { createRedact } from "./redact.ts";
import { withProcesses } from "./run-processes.ts";
import type { RunningRuntime, RuntimeDeps } from "./runtime.ts";
import { readSecrets } from "./secrets.ts";
import { createTraceFiles } from "./trace-files.ts";
import { createTriggerControl } from "./trigger-control.ts";

const TICK_MS = 1_000;

/** Everything of the runtime, once the agent space is there. Loaded when an account runs it, and not before. */
export async function startRunning(deps: RuntimeDeps, isStopping: () => boolean): Promise<RunningRuntime> {
  const { config, clock, log, accountDir, peerId } = deps;
  const { id: spaceId } = await deps.ensureDerived(AGENT);
  const agent = await installAgentSpace(await deps.space(spaceId));
  const services = () => deps.space(agent.spaceId);
  const election = createElection(deps.devices, peerId);
  await joinElection(deps.devices, peerId);
  const traces = createTraceFiles(agent.anchorId, services);
  /** An edit acts at once, not with the next second. */
  let touched = (): void => {};
  const records = await openAgentRecords({
    agent,
    events: deps.spaceEvents,
    traces,
    self: peerId,
    services,
    onTouched: () => touched(),
  });

  const secrets = readSecrets(config, deps.env);
  const redact = createRedact(secrets.all);
  const api = createLocalApi(deps.answer);
  const budget = await openLlmBudget({
    priceIn: config["runtime.llm.priceIn"],
    priceOut: config["runtime.llm.priceOut"],
    maxCostPerDay: config["runtime.llm.maxCostPerDay"],
    clock,
    path: join(accountDir, "runtime", "llm-day.json"),
  });
  const chat = createLlmChat({
    budget,
    config: {
      baseUrl: config["runtime.llm.baseUrl"],
      model: config["runtime.llm.model"],
      key: secrets.llmKey,
      priceIn: config["runtime.llm.priceIn"],
      priceOut: config["runtime.llm.priceOut"],
      contextTokens: config["runtime.llm.contextTokens"],
    },
  });
  const http = createHttpFetch({ allow: createHostAllowList(config["runtime.http.allow"]), secret: secrets.named });
  const hostFor = (spending: Spending) =>
    createHostApi({ api, http, agentSpaceId: agent.spaceId, llm: (input, signal) => chat(input, signal, spending) });
  const programs = createProgramStore({ agent, space: deps.space });
  const processes = createProgramProcesses({ command: childCommand(PROGRAM_CHILD), log, nowMs: clock.nowMs });
  const news = createChatNews({ events: deps.spaceEvents, onNews: (one) => scheduler.message(one) });
  const runs = createTriggerRuns({ triggers: records.triggers, runs: records.runs, self: peerId, clock });
  const runProgram = createProgramRunner({
    processes,
    programs,
    hostFor,
    redact,
    agentSpaceId: agent.spaceId,
    maxFuel: config["runtime.maxFuel"],
    maxMemoryMiB: config["runtime.maxMemoryMiB"],
    newSeed: () => randomBytes(4).readUInt32LE(),
    onMessage: news.own,
  });
  const scheduler = createTriggerScheduler({
    triggers: records.triggers,
    runs,
    election,
    clock,
    log,
    execute: withProcesses(runProgram, { ...deps, processes: deps.processes }),
    newRunId: () => `run_${randomBytes(8).toString("hex")}`,
    announce: (type, triggerId) => {
      const target = /^[A-Za-z0-9._-]{1,128}$/.test(triggerId) ? { target: triggerId } : {};
      deps.events
        .publish({ type, scope: "account", ...target, data: { triggerId } })
        .catch((err: unknown) => log.warn("an event of a trigger was not published", { err, triggerId }));
    },
    isOwnMessage: (trigger, message) =>
      news.isOwn(trigger.id, message.messageId) ||
      (message.creator === deps.accountId && message.agent?.["name"] === trigger.name),
    isNative: ({ program }) => program.startsWith("internal:"),
  });
  let tickSoon: ReturnType<typeof setImmediate> | undefined;
  touched = () => {
    scheduler.touched();
    tickSoon ??= setImmediate(() => {
      tickSoon = undefined;
      if (!isStopping()) scheduler.tick();
    });
  };
  await runs.closeOrphans();
  await seedChatWatch({ agent, records, isActive: () => election.active() === peerId });
  const timer = setInterval(() => {
    void keepElection(deps.devices, peerId).catch((err: unknown) => log.warn("no claim could be made", { err }));
    scheduler.tick();
  }, TICK_MS);
  if (!isStopping()) scheduler.tick();
  return {
    control: createTriggerControl({ records, scheduler, programs, processes, traces, clock }),
    async stop() {
      clearInterval(timer);
      if (tickSoon) clearImmediate(tickSoon);
      touched = () => {};
      news.stop();
      await scheduler.stop();
      records.stop();
      await processes.stop();
      await budget.flush();
    },
  };
}

function createElection(devices: DeviceService, self: string): Election {
  return {
    self,
    active: () => devices.list().active[AGENT],
    isKnown: (peerId) => devices.list().devices.some((device) => device.peerId === peerId),
  };
}

/** Boot sequence of the spec: be there, look who is active, claim when nobody else carries the agent. */
async function joinElection(devices: DeviceService, self: string): Promise<void> {
  const own = devices.list().devices.find((device) => device.peerId === self);
  if (!own) return; // pruned: this device takes no part any more
  if (own.apps?.[AGENT] === undefined) await devices.update({ apps: { [AGENT]: {} } });
  await keepElection(devices, self);
}

/** Claims what nobody holds: the first device there is, or a survivor of the one that was active. */
async function keepElection(devices: DeviceService, self: string): Promise<void> {
  const { devices: rows, active } = devices.list();
  if (active[AGENT] !== undefined) return;
  if (rows.find((device) => device.peerId === self)?.apps?.[AGENT] === undefined) return;
  await devices.activate(AGENT);
}
