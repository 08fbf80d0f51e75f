import type { ChatNews } from "../../domain/trigger/port.ts";
import { millisOf } from "../../domain/trigger/trigger-runs.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { SpaceEvents } from "../../space/space-events.ts";

const CHAT_MESSAGES = "chat_messages";
/** How many messages of runs are remembered; older ones are recognised by the agent's name. */
const REMEMBERED = 5_000;

export interface ChatNewsSource {
  /** A run of this trigger has written this message. */
  own(triggerId: string, messageId: string): void;
  isOwn(triggerId: string, messageId: string): boolean;
  stop(): void;
}

/** Notifies of every message that is added to a chat of an open space, never of edits. */
export function createChatNews(deps: {
  events: Pick<SpaceEvents, "on">;
  onNews: (news: ChatNews) => void;
}): ChatNewsSource {
  const owned = new Set<string>();
  const keyOf = (triggerId: string, messageId: string) => `${triggerId}\0${messageId}`;
  const stop = deps.events.on("committed", (space, batch) => {
    for (const { dataset, object, recordId, wasLive, doc } of batch.touched) {
      if (dataset !== CHAT_MESSAGES || wasLive || doc === null) continue;
      deps.onNews(toNews(space.id, object, recordId, JSON.parse(doc) as JsonObject));
    }
  });
  return {
    own(triggerId, messageId) {
      owned.add(keyOf(triggerId, messageId));
      if (owned.size > REMEMBERED) owned.delete(owned.values().next().value as string);
    },
    isOwn: (triggerId, messageId) => owned.has(keyOf(triggerId, messageId)),
    stop,
  };
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
