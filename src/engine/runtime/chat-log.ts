import type { ChatNews } from "../../domain/trigger/port.ts";
import { millisOf } from "../../domain/trigger/trigger-runs.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { SeenMessage } from "./chat-context.ts";
import type { LocalApi } from "./local-api.ts";

/** A chat as the agent reads and writes it. */
export interface ChatLog {
  /** Marks a message as taken up. Returns false when it was already. */
  claim(messageId: string): boolean;
  forget(messageId: string): void;
  /** Returns the newest message of each thread that has asked for something since then and that this agent has not answered. */
  unanswered(chat: { objectId: string; spaceId: string | undefined }, sinceMs: number): Promise<ChatNews[]>;
  /** The last messages, oldest first. */
  recent(spaceId: string, chatId: string, count: number): Promise<SeenMessage[]>;
  /** From the first message of the reply chain to this one. */
  thread(spaceId: string, chatId: string, messageId: string): Promise<SeenMessage[]>;
  /** Gives the id of the message. */
  send(
    spaceId: string,
    chatId: string,
    message: { text: string; replyTo: string; done: boolean; runId: string },
  ): Promise<string>;
  edit(spaceId: string, chatId: string, messageId: string, text: string): Promise<void>;
  remove(spaceId: string, chatId: string, messageId: string): Promise<void>;
}

const MAX_TEXT_CHARS = 10_000;
const MAX_THREAD = 30;
const SCANNED = 200;
/** How many of the messages that were taken up are remembered. */
const REMEMBERED = 1_000;

export function createChatLog(deps: {
  api: LocalApi;
  agentName: string;
  accountId: string;
  agentSpaceId: string;
}): ChatLog {
  const { api, agentName, accountId } = deps;
  const claimed = new Set<string>();
  const chatPath = (spaceId: string, chatId: string) => `/v1/spaces/${spaceId}/objects/${chatId}/chat/messages`;
  const query = async (spaceId: string, body: JsonObject): Promise<JsonObject[]> => {
    const { records } = (await api("POST", `/v1/spaces/${spaceId}/query`, { dataset: "chat_messages", ...body })) as {
      records: JsonObject[];
    };
    return records;
  };
  const newest = (spaceId: string, chatId: string, limit: number) =>
    query(spaceId, { objectId: chatId, sort: ["-_ver.id"], limit });
  const isOwn = (message: JsonObject): boolean =>
    message["creator"] === accountId && isJsonObject(message["agent"]) && message["agent"]["name"] === agentName;

  return {
    claim(messageId) {
      if (claimed.has(messageId)) return false;
      claimed.add(messageId);
      if (claimed.size > REMEMBERED) claimed.delete(claimed.values().next().value as string);
      return true;
    },
    forget: (messageId) => void claimed.delete(messageId),

    async unanswered({ objectId, spaceId = deps.agentSpaceId }, sinceMs) {
      const messages = await newest(spaceId, objectId, SCANNED);
      const byId = new Map(messages.map((message) => [message["id"] as string, message]));
      const rootOf = (message: JsonObject): string => {
        let at = message;
        for (let step = 0; step < MAX_THREAD; step++) {
          const next = byId.get(at["replyToMessageId"] as string);
          if (!next) break;
          at = next;
        }
        return at["id"] as string;
      };
      const answered = new Set<string>();
      const asked = new Map<string, JsonObject>();
      for (const message of messages) {
        const root = rootOf(message);
        if (isOwn(message)) {
          // An interim message without a final answer does not count as an answer.
          const done = (message["agent"] as JsonObject)["done"] === true;
          if (done) answered.add(root);
          else await api("DELETE", `${chatPath(spaceId, objectId)}/${message["id"]}`);
        } else if (!answered.has(root) && !asked.has(root) && (millisOf(message["createdAt"]) ?? 0) >= sinceMs)
          asked.set(root, message);
      }
      return [...asked.values()].reverse().map((message) => toNews(spaceId, objectId, message));
    },

    async recent(spaceId, chatId, count) {
      return (await newest(spaceId, chatId, count)).reverse().map(toSeen);
    },

    async thread(spaceId, chatId, messageId) {
      const chain: SeenMessage[] = [];
      for (let id: string | undefined = messageId; id !== undefined && chain.length < MAX_THREAD; ) {
        const [message] = await query(spaceId, { objectId: chatId, filter: { id }, limit: 1 });
        if (!message) break;
        const seen = toSeen(message);
        chain.unshift(seen);
        id = seen.replyTo;
      }
      return chain;
    },

    async send(spaceId, chatId, { text, replyTo, done, runId }) {
      const reply = await api("POST", chatPath(spaceId, chatId), {
        text: text.slice(0, MAX_TEXT_CHARS),
        replyToMessageId: replyTo,
        agent: { name: agentName, done, debugLink: `svc://run/${runId}` },
      });
      return ((reply as JsonObject)["recordIds"] as string[])[0] as string;
    },

    async edit(spaceId, chatId, messageId, text) {
      await api("PATCH", `${chatPath(spaceId, chatId)}/${messageId}`, { text: text.slice(0, MAX_TEXT_CHARS) });
    },
    async remove(spaceId, chatId, messageId) {
      await api("DELETE", `${chatPath(spaceId, chatId)}/${messageId}`);
    },
  };
}

function toSeen(message: JsonObject): SeenMessage {
  const { id, text, creator, replyToMessageId, agent } = message;
  const name = isJsonObject(agent) ? agent["name"] : undefined;
  return {
    id: id as string,
    text: textOf(text),
    creator: textOf(creator),
    replyTo: typeof replyToMessageId === "string" ? replyToMessageId : undefined,
    agentName: typeof name === "string" ? name : undefined,
    done: !isJsonObject(agent) || agent["done"] === true,
  };
}

function toNews(spaceId: string, objectId: string, message: JsonObject): ChatNews {
  const { id, text, creator, createdAt, agent } = message;
  return {
    spaceId,
    objectId,
    messageId: id as string,
    text: textOf(text),
    creator: textOf(creator),
    createdAtMs: millisOf(createdAt) ?? 0,
    ...(isJsonObject(agent) ? { agent } : {}),
  };
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
