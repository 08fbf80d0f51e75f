/** Which messages of the chat the agent takes up, and on which device. */
import { expect, test } from "bun:test";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import { silentLog } from "../../base/log.ts";
import type { ChatNews } from "../../domain/trigger/port.ts";
import { CHAT_WATCH } from "../../domain/trigger/trigger-definition.ts";
import type { TriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { ChatLog } from "./chat-log.ts";
import { AGENT_NAME, createChatWatch } from "./chat-watch.ts";

const START = Date.parse("2026-03-01T00:00:00Z");
const MINUTE = 60_000;

/** A device A of the account `me`, in a chat where others write. */
function createWorld({ owner = "", active = "A", open = [] as ChatNews[] } = {}) {
  let record: JsonObject = {
    id: CHAT_WATCH,
    kind: "event",
    spec: { dataset: "chat_messages", objectId: "chat" },
    program: "internal:chat-watch",
    enabled: true,
    owner,
  };
  const election = { self: "A", activeId: active, pruned: new Set<string>() };
  const answered: string[] = [];
  const askedSince: number[] = [];
  const claimed = new Set<string>();
  let underWay = 0;
  /** A take-over has asked what is unanswered, and every answer that has begun has ended. */
  const ended = async (): Promise<void> => {
    do await loopTurns();
    while (underWay > 0);
  };
  const chat = {
    claim: (id: string) => !claimed.has(id) && claimed.add(id) !== undefined,
    forget: (id: string) => void claimed.delete(id),
    unanswered: async (_chat: unknown, sinceMs: number) => {
      askedSince.push(sinceMs);
      return open;
    },
  } as unknown as ChatLog;
  const watch = createChatWatch({
    records: {
      record: () => record,
      triggers: {
        list: () => [record],
        get: () => record,
        write: async (_id, set) => {
          record = { ...record, ...set };
        },
      },
    },
    runs: {
      begin: async () => void underWay++,
      end: async () => void underWay--,
    } as unknown as TriggerRuns,
    election: {
      self: election.self,
      active: () => election.activeId,
      isKnown: (peerId) => !election.pruned.has(peerId),
      isPruned: (peerId) => election.pruned.has(peerId),
    },
    accountId: "me",
    clock: { nowMs: () => START },
    log: silentLog,
    newRunId: () => "run",
    hasModel: true,
    chat,
    answer: ({ asked, joining }) => {
      answered.push(...[...asked, ...joining.splice(0)].map(({ messageId }) => messageId));
      return async () => ({ status: "ok", fuel: null, memPages: null, costUsd: null });
    },
  });
  return {
    election,
    answered,
    askedSince,
    async say(messageId: string, more: Partial<ChatNews> = {}): Promise<void> {
      watch.message(news(messageId, more));
      await ended();
    },
    async tick(): Promise<void> {
      watch.tick();
      await ended();
    },
  };
}

const news = (messageId: string, more: Partial<ChatNews> = {}): ChatNews => ({
  ...{ spaceId: "s", objectId: "chat", messageId, text: "hello", creator: "somebody", createdAtMs: START },
  ...more,
});

test("[AGENT-12] what is older than 15 minutes is answered neither when it comes nor on a take-over", async () => {
  const world = createWorld({ open: [news("old", { createdAtMs: START - 15 * MINUTE - 1 }), news("fresh")] });
  await world.say("late", { createdAtMs: START - 15 * MINUTE - 1 });
  await world.say("in time", { createdAtMs: START - 15 * MINUTE });
  expect(world.answered).toEqual(["in time"]);
  await world.tick();
  expect([world.askedSince, world.answered]).toEqual([[START - 15 * MINUTE], ["in time", "fresh"]]);
});

test("[AGENT-12] the active device answers, or the one that the record is pinned to, and no other", async () => {
  const passive = createWorld({ active: "B" });
  await passive.say("one");
  expect(passive.answered).toEqual([]);
  passive.election.activeId = "A";
  await passive.say("two");
  expect(passive.answered).toEqual(["two"]);

  const pinned = createWorld({ owner: "A", active: "B" });
  await pinned.say("one");
  const elsewhere = createWorld({ owner: "B" });
  await elsewhere.say("one");
  expect([pinned.answered, elsewhere.answered]).toEqual([["one"], []]);
});

test("[AGENT-12] [AGENT-1] what a pruned device was pinned to is the active one's; a pruned one answers nothing", async () => {
  const world = createWorld({ owner: "B" });
  world.election.pruned.add("B");
  await world.say("one");
  expect(world.answered).toEqual(["one"]);
  const pruned = createWorld({ owner: "A" });
  pruned.election.pruned.add("A");
  await pruned.say("one");
  expect(pruned.answered).toEqual([]);
});

test("[AGENT-12] never itself; other agents three times until a person writes, and only where they mention it", async () => {
  const world = createWorld();
  const text = "svc://m/s/me hello";
  const other = { agent: { name: "other", done: true }, text };
  await world.say("itself", { creator: "me", agent: { name: AGENT_NAME, done: true }, text });
  await world.say("interim", { ...other, agent: { name: "other", done: false } });
  await world.say("unnamed", { ...other, text: "hello" });
  for (const id of ["a", "b", "c", "d"]) await world.say(id, other);
  expect(world.answered).toEqual(["a", "b", "c"]);
  await world.say("person");
  await world.say("e", other);
  expect(world.answered).toEqual(["a", "b", "c", "person", "e"]);
});
