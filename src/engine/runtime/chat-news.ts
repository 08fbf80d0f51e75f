import type { Closable } from "../../base/service.ts";
import type { ChatNews } from "../../domain/trigger/port.ts";
import { millisOf } from "../../domain/trigger/trigger-runs.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { SpaceEvents } from "../../space/space-events.ts";

const CHAT_MESSAGES = "chat_messages";
/** How many messages of runs are remembered; older ones are recognised by the agent's name. */
const REMEMBERED = 5_000;

/** The messages that runs of triggers have written. */
export function createOwnMessages() {
  const owned = new Set<string>();
  const keyOf = (triggerId: string, messageId: string) => `${triggerId}\0${messageId}`;
  return {
    /** A run of this trigger has written this message. */
    add(triggerId: string, messageId: string): void {
      owned.add(keyOf(triggerId, messageId));
      if (owned.size > REMEMBERED) owned.delete(owned.values().next().value as string);
    },
    has: (triggerId: string, messageId: string): boolean => owned.has(keyOf(triggerId, messageId)),
  };
}

/** Notifies of every message that is added to a chat of an open space, never of edits. */
export function createChatNews(deps: { events: Pick<SpaceEvents, "on">; onNews: (news: ChatNews) => void }): Closable {
  const unfollow = deps.events.on("committed", (space, batch) => {
    for (const { dataset, object, recordId, before, doc } of batch.touched) {
      if (dataset !== CHAT_MESSAGES || before !== null || doc === null) continue;
      deps.onNews(toNews(space.id, object, recordId, JSON.parse(doc) as JsonObject));
    }
  });
  return { close: unfollow };
}

function toNews(spaceId: string, objectId: string, messageId: string, message: JsonObject): ChatNews {
  const { text, creator, createdAt, agent } = message;
  return {
    spaceId,
    objectId,
    messageId,
    text: typeof text === "string" ? text : "",
    creator: typeof creator === "string" ? creator : "",
    createdAtMs: millisOf(createdAt) ?? 0,
    ...(isJsonObject(agent) ? { agent } : {}),
  };
}
