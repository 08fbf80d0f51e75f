import type { Election, ExecuteRun } from "../../domain/trigger/port.ts";
import type { TriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import type { AgentRecords } from "./agent-records.ts";
import type { AgentSpace } from "./agent-space.ts";
import { createChatLog } from "./chat-log.ts";
import { createChatRun } from "./chat-run.ts";
import { AGENT_NAME, type ChatWatch, createChatWatch } from "./chat-watch.ts";
import type { Host } from "./open-host.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";

const WRITERS: ReadonlySet<string> = new Set(["owner", "admin", "writer"]);

/** The agent's answers in the general chat. */
export function openChatWatch(
  deps: RuntimeDeps,
  parts: {
    agent: AgentSpace;
    host: Host;
    records: AgentRecords;
    runs: TriggerRuns;
    election: Election;
    newRunId: () => string;
    /** Shows a run as a process. */
    shown: (execute: ExecuteRun) => ExecuteRun;
  },
): ChatWatch {
  const { config, clock, accountId } = deps;
  const { agent, host } = parts;
  const chat = createChatLog({ api: host.api, agentName: AGENT_NAME, accountId, agentSpaceId: agent.spaceId });
  const answerIn = createChatRun({
    ...host,
    agentName: AGENT_NAME,
    agentSpaceId: agent.spaceId,
    contextTokens: config["runtime.llm.contextTokens"],
    chat,
    mayDo: (identity, spaceId) => mayDo(deps, identity, spaceId),
    nowMs: clock.nowMs,
  });
  return createChatWatch({
    ...parts,
    accountId,
    clock,
    log: deps.log,
    hasModel: config["runtime.llm.baseUrl"] !== undefined && config["runtime.llm.model"] !== undefined,
    chat,
    answer: (batch) => parts.shown(answerIn(batch)),
  });
}

/** Returns what an account may do in a space that this account has. */
async function mayDo(deps: RuntimeDeps, identity: string, spaceId: string): Promise<"nothing" | "read" | "write"> {
  const { members, space } = await deps.space(spaceId);
  if (identity === deps.accountId) return WRITERS.has(space.role()) ? "write" : "read";
  const member = members.list().find((one) => one.identity === identity);
  if (member?.status !== "active") return "nothing";
  return WRITERS.has(member.permission) ? "write" : "read";
}
