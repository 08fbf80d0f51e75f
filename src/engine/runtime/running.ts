import { randomBytes } from "node:crypto";
import { childCommand } from "../../base/child-command.ts";
import { closePart, startPart } from "../../base/service.ts";
import type { ChatNews, ExecuteRun } from "../../domain/trigger/port.ts";
import { createTriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import { createTriggerScheduler } from "../../domain/trigger/trigger-scheduler.ts";
import { PROGRAM_CHILD } from "../../sandbox/program-limits.ts";
import { createProgramProcesses } from "../../sandbox/program-processes.ts";
import { createElection, joinElection, keepElection } from "./agent-election.ts";
import { openAgentRecords } from "./agent-records.ts";
import { AGENT, installAgentSpace } from "./agent-space.ts";
import { createChatNews, createOwnMessages } from "./chat-news.ts";
import { createFirstChatWatch } from "./first-chat-watch.ts";
import { openChatWatch } from "./open-chat-watch.ts";
import { openHost } from "./open-host.ts";
import { createProgramRunner } from "./program-runner.ts";
import { createProgramStore } from "./program-store.ts";
import { withProcesses } from "./run-processes.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";
import { createTicker } from "./ticker.ts";
import { createTraceFiles } from "./trace-files.ts";
import { createTriggerControl, type TriggerControl } from "./trigger-control.ts";

/** The runtime once the agent space exists. */
export interface RunningRuntime {
  readonly control: TriggerControl;
  close(): Promise<void>;
}

/**
 * Starts the parts of the runtime in their order: the agent space, the assignment of triggers to devices, what runs can reach,
 * then the ticking. When a step fails, the parts begun before it are closed, and the caller tries again.
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
  const traces = createTraceFiles(agent.anchorId, services);
  const { spaceEvents: events } = deps;
  const agentRecords = await openAgentRecords({ agent, events, traces, self: peerId, services });
  const records = begun.adopt(agentRecords, closePart);
  const host = begun.adopt(await openHost(deps, agent.spaceId), closePart);
  const programs = begun.adopt(createProgramStore({ agent, events, space: deps.space }), closePart);
  const command = childCommand(PROGRAM_CHILD);
  const processes = begun.adopt(createProgramProcesses({ command, log, nowMs: clock.nowMs }), closePart);
  const runs = createTriggerRuns({ triggers: records.triggers, runs: records.runs, self: peerId, clock });
  const newRunId = () => `run_${randomBytes(8).toString("hex")}`;
  const shown = (execute: ExecuteRun) => withProcesses(execute, { ...deps, processes: deps.processes });
  const own = createOwnMessages();
  const runProgram = createProgramRunner({
    processes,
    programs,
    hostFor: host.hostFor,
    redact: host.redact,
    agentSpaceId: agent.spaceId,
    maxFuel: config["runtime.maxFuel"],
    maxMemoryMiB: config["runtime.maxMemoryMiB"],
    newSeed: () => randomBytes(4).readUInt32LE(),
    onMessage: own.add,
  });
  const triggerScheduler = createTriggerScheduler({
    triggers: records.triggers,
    runs,
    election,
    clock,
    log,
    execute: shown(runProgram),
    newRunId,
    announce: (type, triggerId) => announce(deps, type, triggerId),
    isOwnMessage: (trigger, { messageId, creator, agent: by }) =>
      own.has(trigger.id, messageId) || (creator === deps.accountId && by?.["name"] === trigger.name),
    isNative: ({ program }) => program.startsWith("internal:"),
  });
  const scheduler = begun.adopt(triggerScheduler, closePart);
  const chatWatch = openChatWatch(deps, { agent, host, records, runs, election, newRunId, shown });
  const watch = begun.adopt(chatWatch, closePart);
  const onNews = (one: ChatNews): void => {
    scheduler.message(one);
    watch.message(one);
  };
  begun.adopt(createChatNews({ events, onNews }), closePart);
  await runs.closeOrphans();
  await createFirstChatWatch({ agent, records, isActive: () => election.active() === peerId });
  const ticker = createTicker({
    clock,
    records,
    changed: scheduler.changed,
    tick: () => scheduler.tick(),
    everySecond() {
      void keepElection(deps.devices, peerId).catch((err: unknown) => log.warn("no claim could be made", { err }));
      watch.tick();
    },
  });
  if (!isStopping()) await startPart(begun, ticker);
  const running = begun.move();
  return {
    control: createTriggerControl({ records, scheduler, programs, processes, traces, clock }),
    close: () => running.disposeAsync(),
  };
}

function announce({ events, log }: RuntimeDeps, type: string, triggerId: string): void {
  const target = /^[A-Za-z0-9._-]{1,128}$/.test(triggerId) ? { target: triggerId } : {};
  events
    .publish({ type, scope: "account", ...target, data: { triggerId } })
    .catch((err: unknown) => log.warn("an event of a trigger was not published", { err, triggerId }));
}
