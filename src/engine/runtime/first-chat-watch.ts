import { CHAT_WATCH, CHAT_WATCH_PROGRAM } from "../../domain/trigger/trigger-definition.ts";
import type { AgentRecords } from "./agent-records.ts";
import type { AgentSpace } from "./agent-space.ts";

/**
 * Creates the record by which the agent answers in the general chat, once in the life of an account: on the active device, and
 * never again after somebody deleted it.
 */
export async function createFirstChatWatch(deps: {
  agent: AgentSpace;
  records: AgentRecords;
  isActive(): boolean;
}): Promise<void> {
  const { agent, records } = deps;
  if (!deps.isActive() || records.record(CHAT_WATCH) || (await records.wasDeleted(CHAT_WATCH))) return;
  await records.create(CHAT_WATCH, {
    name: "Chat watch",
    kind: "event",
    spec: { dataset: "chat_messages", objectId: agent.chatId },
    program: CHAT_WATCH_PROGRAM,
    enabled: true,
  });
}
