import { randomBytes } from "node:crypto";
import { childCommand } from "../../base/child-command.ts";
import type { ExecuteRun } from "../../domain/trigger/port.ts";
import { createTriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import { createTriggerScheduler } from "../../domain/trigger/trigger-scheduler.ts";
import { PROGRAM_CHILD } from "../../sandbox/program-limits.ts";
import { createProgramProcesses } from "../../sandbox/program-processes.ts";
import { createElection, joinElection, keepElection } from "./agent-election.ts";
import { openAgentRecords } from "./agent-records.ts";
import { AGENT, installAgentSpace } from "./agent-space.ts";
import { createChatNews } from "./chat-news.ts";
import { createFirstChatWatch } from "./first-chat-watch.ts";
import { openChatWatch } from "./open-chat-watch.ts";
import { openHost } from "./open-host.ts";
import { createProgramRunner } from "./program-runner.ts";
import { createProgramStore } from "./program-store.ts";
import { withProcesses } from "./run-processes.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";
import { createTraceFiles } from "./trace-files.ts";
import { createTriggerControl, type TriggerControl } from "./trigger-control.ts";

const TICK_MS = 1_000;

/** The runtime once the agent space exists. */
export interface RunningRuntime {
  readonly control: TriggerControl;
  stop(): Promise<void>;
}

/**
 * Starts the parts of the runtime in their order: the agent space, the assignment of triggers to devices, what runs can reach,
 * then the ticking. When a step fails, the parts begun before it are ended, and the caller tries again.
 */
export async function startRunning(deps: RuntimeDeps, isStopping: () => boolean): Promise<RunningRuntime> {
  const { config, clock, log, peerId } = deps;
  await using begun = new AsyncDisposableStack();
  // After that, what other devices have made is known, if they can be reached at all.
  await deps.firstRound();
  const { id: spaceId } = await deps.ensureDerived(AGENT);
  const agent = await installAgentSpace(await deps.space(spaceId));
  await joinElection(deps.devices, peerId);
  const election = createElection(deps.devices, peerId);
  const services = () => deps.space(agent.spaceId);
  const ticker = createTicker(isStopping);
  const traces = createTraceFiles(agent.anchorId, services);
  const { spaceEvents: events } = deps;
  const records = await openAgentRecords({ agent, events, traces, self: peerId, services, onChanged: ticker.changed });
  begun.defer(records.stop);

  const host = await openHost(deps, agent.spaceId);
  begun.defer(host.close);
  const programs = createProgramStore({ agent, events, space: deps.space });
  begun.defer(programs.stop);
  const processes = createProgramProcesses({ command: childCommand(PROGRAM_CHILD), log, nowMs: clock.nowMs });
  begun.defer(processes.stop);
  const runs = createTriggerRuns({ triggers: records.triggers, runs: records.runs, self: peerId, clock });
  const newRunId = () => `run_${randomBytes(8).toString("hex")}`;
  const shown = (execute: ExecuteRun) => withProcesses(execute, { ...deps, processes: deps.processes });
  const watch = openChatWatch(deps, { agent, host, records, runs, election, newRunId, shown });
  const news = createChatNews({
    events,
    onNews(one) {
      scheduler.message(one);
      watch.message(one);
    },
  });
  const runProgram = createProgramRunner({
    processes,
    programs,
    hostFor: host.hostFor,
    redact: host.redact,
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
    execute: shown(runProgram),
    newRunId,
    announce: (type, triggerId) => announce(deps, type, triggerId),
    isOwnMessage: (trigger, { messageId, creator, agent: by }) =>
      news.isOwn(trigger.id, messageId) || (creator === deps.accountId && by?.["name"] === trigger.name),
    isNative: ({ program }) => program.startsWith("internal:"),
  });
  begun.defer(scheduler.stop);
  begun.defer(watch.stop);
  begun.defer(news.stop);
  await runs.closeOrphans();
  await createFirstChatWatch({ agent, records, isActive: () => election.active() === peerId });
  ticker.start({
    changed: scheduler.changed,
    tick: () => scheduler.tick(),
    everySecond() {
      void keepElection(deps.devices, peerId).catch((err: unknown) => log.warn("no claim could be made", { err }));
      watch.tick();
    },
  });
  begun.defer(ticker.stop);
  const running = begun.move();
  return {
    control: createTriggerControl({ records, scheduler, programs, processes, traces, clock }),
    stop: () => running.disposeAsync(),
  };
}

interface Ticking {
  changed(triggerId: string): void;
  tick(): void;
  everySecond(): void;
}

/** Ticks every second, and soon after a record has changed, so that an edit takes effect at once. */
function createTicker(isStopping: () => boolean) {
  let ticking: Ticking | undefined;
  let timer: ReturnType<typeof setInterval> | undefined;
  let soon: ReturnType<typeof setImmediate> | undefined;
  const second = (): void => {
    ticking?.tick();
    ticking?.everySecond();
  };
  return {
    changed(triggerId: string): void {
      if (!ticking) return;
      ticking.changed(triggerId);
      soon ??= setImmediate(() => {
        soon = undefined;
        ticking?.tick();
      });
    },
    start(next: Ticking): void {
      if (isStopping()) return;
      ticking = next;
      timer = setInterval(second, TICK_MS);
      second();
    },
    stop(): void {
      ticking = undefined;
      clearInterval(timer);
      if (soon) clearImmediate(soon);
    },
  };
}

function announce({ events, log }: RuntimeDeps, type: string, triggerId: string): void {
  const target = /^[A-Za-z0-9._-]{1,128}$/.test(triggerId) ? { target: triggerId } : {};
  events
    .publish({ type, scope: "account", ...target, data: { triggerId } })
    .catch((err: unknown) => log.warn("an event of a trigger was not published", { err, triggerId }));
}
