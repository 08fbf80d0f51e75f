/** What the agent reads before it answers: the thread, what was said last and what a search finds, as far as its budget goes. */
import { expect, test } from "bun:test";
import type { ChatNews, RunRequest } from "../../domain/trigger/port.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { createChatLog } from "./chat-log.ts";
import { createChatRun } from "./chat-run.ts";
import type { LocalApi } from "./local-api.ts";

const SELF = { creator: "me", agent: { name: "assistant", done: true } };

/** A chat, an index and a model that notes what it is asked. */
function createWorld(messages: JsonObject[], { hits = [] as JsonObject[], contextTokens = 8_000 } = {}) {
  const seen: string[] = [];
  const searched: JsonObject[] = [];
  const api: LocalApi = async (method, path, body = {}) => {
    if (path.endsWith("/search")) {
      searched.push(body);
      return { hits };
    }
    if (!path.endsWith("/query")) return { recordIds: [method] };
    const { filter, limit } = body as { filter?: { id: string }; limit: number };
    const found = filter ? messages.filter(({ id }) => id === filter.id) : messages.toReversed();
    return { records: found.slice(0, limit) };
  };
  const run = createChatRun({
    agentName: "assistant",
    agentSpaceId: "s",
    contextTokens,
    chat: createChatLog({ api, agentName: "assistant", accountId: "me", agentSpaceId: "s" }),
    api,
    async llm({ messages: sent }) {
      seen.push(...(sent as JsonObject[]).map(({ role, content }) => `${role}: ${content}`));
      return { output: { message: { content: "The answer." } } };
    },
    hostFor: () => () => Promise.reject(new Error("no tool is called")),
    mayDo: async () => "write",
    redact: (text) => text,
    nowMs: () => 0,
  });
  return {
    searched,
    /** What the model is told for a question, behind what it is. */
    async asked(messageId: string): Promise<string[]> {
      const { text, creator } = messages.find(({ id }) => id === messageId) as { text: string; creator: string };
      const news: ChatNews = { spaceId: "s", objectId: "chat", messageId, text, creator, createdAtMs: 0 };
      const trigger = { id: "chat-watch", limits: {}, program: "internal:chat-watch" };
      const request = { runId: "run", trigger, startedAtMs: 0, signal: new AbortController().signal };
      const answer = run({ spaceId: "s", chatId: "chat", asked: [news], joining: [] });
      expect(await answer(request as unknown as RunRequest)).toMatchObject({ status: "ok" });
      return seen.splice(0).slice(1);
    },
  };
}

const said = (id: string, more: JsonObject = {}): JsonObject => ({
  id,
  text: `text of ${id}`,
  creator: "you",
  ...more,
});
const numbered = (name: string, count: number): JsonObject[] =>
  Array.from({ length: count }, (_, at) => said(`${name}${at + 1}`));
/** Each answers the one before it. */
const threaded = (messages: JsonObject[]): JsonObject[] =>
  messages.map((message, at) => (at === 0 ? message : { ...message, replyToMessageId: messages[at - 1]!["id"]! }));
const asUser = (messages: JsonObject[]): string[] => messages.map(({ text }) => `user: ${text}`);

test("[AGENT-12] it sees the thread, however long ago that began, then the last twenty messages, and the question last", async () => {
  const others = numbered("other", 25);
  const thread = threaded([said("first"), said("second", SELF), said("question")]);
  const { asked } = createWorld([...thread.slice(0, 2), ...others, thread[2]!]);
  expect(await asked("question")).toEqual([
    "user: text of first",
    "assistant: text of second",
    // The question is one of the twenty.
    ...asUser(others.slice(-19)),
    "user: text of question",
  ]);
});

test("[AGENT-12] of a thread it sees the last thirty messages, and of nobody's the interim ones", async () => {
  const thread = threaded(numbered("t", 40));
  const working = said("interim", { ...SELF, agent: { name: "assistant", done: false } });
  const { asked } = createWorld([...thread, working]);
  expect(await asked("t40")).toEqual(asUser(thread.slice(-30)));
});

test("[AGENT-12] it sees what a search for the question finds and that it does not see already, with where it stands", async () => {
  const hits = [
    { objectId: "page", recordId: "page", data: "Roses are watered on Fridays" },
    { objectId: "chat", recordId: "before", data: "text of before" },
    { objectId: "list", recordId: "row", data: "Buy roses" },
  ];
  const { asked, searched } = createWorld([said("before"), said("question")], { hits });
  expect(await asked("question")).toEqual([
    "system: Found in the workspace:\n- Roses are watered on Fridays (svc://page)\n- Buy roses (svc://list)",
    "user: text of before",
    "user: text of question",
  ]);
  expect(searched).toEqual([{ query: "text of question", limit: 5, maxData: 400 }]);
});

test("[AGENT-12] of more than it may read the question comes first, then the thread, the last messages and the hits, newest first", async () => {
  const text = "x".repeat(360);
  const long = (messages: JsonObject[]) =>
    messages.map((message) => ({ ...message, text: `${message["id"]} ${text}` }));
  const thread = threaded([...numbered("thread", 3), said("question")]);
  const messages = long([...thread.slice(0, 3), ...numbered("other", 6), thread[3]!]);
  const hits = [{ objectId: "page", recordId: "page", data: text }];
  const seenWith = async (contextTokens: number): Promise<string[]> => {
    const { asked } = createWorld(messages, { hits, contextTokens });
    return (await asked("question")).map((each) => each.replace(/^\w+: /, "").split(/[ \n]/, 1)[0]!);
  };
  const of = (list: JsonObject[]): string[] => list.map(({ id }) => `${id}`);
  const [chain, others] = [of(thread.slice(0, 3)), of(numbered("other", 6))];
  for (const [tokens, expected] of [
    // The question is cut where there is room for nothing else.
    [300, ["question"]],
    [700, [...chain.slice(2), "question"]],
    [1_500, [...chain, ...others.slice(-2), "question"]],
    [2_200, [...chain, ...others, "question"]],
    [4_000, ["Found", ...chain, ...others, "question"]],
  ] as const)
    expect([tokens, await seenWith(tokens)]).toEqual([tokens, [...expected] as string[]]);
});
