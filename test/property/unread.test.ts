/** Unread flags and counters after random traffic between two accounts, against a slow recount of what was read. */
import { describe, expect } from "bun:test";
import type { ReadFrontiers } from "../../src/account/own-space/read-frontiers.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import { createHistory } from "../../src/change/history/history.ts";
import type { Account } from "../../src/crypto/account.ts";
import { CHAT_DATASET, CHAT_RULES } from "../../src/domain/chat/chat-rules.ts";
import { type ChatService, createChatService } from "../../src/domain/chat/chat-service.ts";
import { createUnread } from "../../src/domain/chat/unread.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { createOpenGenesis, deliver, type OpenEngine, openEngine } from "../support/worlds/open-engine.ts";
import { createFrontiers } from "../support/worlds/read-frontiers.ts";

const OBJECTS: DatasetRules = { name: "objects", idRule: "object" };
const HISTORIES = rounds(7);
const firstSeed = runSeed("unread");

interface Row {
  id: string;
  creator: string;
  mentions?: string[];
  reactions?: Record<string, Record<string, unknown>>;
  unread?: true;
  unreadMention?: true;
  unreadReactions?: true;
  _ver: { id: string };
}

interface Device {
  account: Account;
  engine: OpenEngine;
  chat: ChatService;
  stop(): void;
}

const messages = ({ engine }: Device, objectId: string): Row[] => {
  const collectionId = engine.collectionIdOf(engine.object(objectId)!, CHAT_DATASET);
  const docs = collectionId === undefined ? [] : engine.store.rows.docs(collectionId);
  return docs.map((text) => JSON.parse(text) as Row).sort((a, b) => (a._ver.id < b._ver.id ? -1 : 1));
};

const counters = (
  { engine }: Device,
  objectId: string,
): { unreadCount?: number; unreadMentions?: number; unreadReactionsCount?: number } =>
  (engine.record(engine.object(objectId)!, "objects", objectId)?.["chat"] ?? {}) as object;

async function act(rng: Rng, device: Device, others: readonly Account[], objectId: string): Promise<void> {
  const known = messages(device, objectId);
  const pick = known.length > 0 ? rng.pick(known) : undefined;
  const mine = known.filter((message) => message.creator === device.account.id);
  switch (
    rng.pick([
      "send",
      "send",
      "send",
      "mention",
      "reply",
      "react",
      "edit",
      "delete",
      "read",
      "readAll",
      "readReactions",
    ])
  ) {
    case "send":
      return void (await device.chat.send(objectId, { text: `hello ${rng.int(0, 99)}` }));
    case "mention":
      return void (await device.chat.send(objectId, { text: `see svc://m/space/${rng.pick(others).id}` }));
    case "reply":
      return void (await device.chat.send(objectId, { text: "yes", ...(pick ? { replyToMessageId: pick.id } : {}) }));
    case "react":
      return void (pick && (await device.chat.react(objectId, pick.id, rng.pick(["👍", "🎉"]))));
    case "edit":
      return void (
        mine.length > 0 &&
        (await device.chat.edit(objectId, rng.pick(mine).id, `edited svc://m/space/${rng.pick(others).id}`))
      );
    case "delete":
      return void (mine.length > 0 && (await device.chat.delete(objectId, rng.pick(mine).id)));
    case "read":
      return void (pick && (await device.chat.read(objectId, pick.id)));
    case "readAll":
      return device.chat.readAll(objectId);
    default:
      return void (pick && (await device.chat.readReactions(objectId, pick.id)));
  }
}

/** The flags that stand on the messages, counted one by one; and rules that no flag may break. */
function expectHonest(device: Device, objectId: string): void {
  const all = messages(device, objectId);
  const count = (flag: "unread" | "unreadMention" | "unreadReactions") =>
    all.filter((message) => message[flag] === true).length || undefined;
  expect(counters(device, objectId)).toEqual(
    JSON.parse(
      JSON.stringify({
        unreadCount: count("unread"),
        unreadMentions: count("unreadMention"),
        unreadReactionsCount: count("unreadReactions"),
      }),
    ),
  );
  for (const message of all) {
    const own = message.creator === device.account.id;
    if (own) expect([message.unread, message.unreadMention]).toEqual([undefined, undefined]);
    else expect(message.unreadReactions).toBeUndefined();
    if (message.unreadMention)
      expect([message.unread, message.mentions?.includes(device.account.id)]).toEqual([true, true]);
  }
}

async function runHistory(seed: number): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-unread");
  const space = createOpenGenesis();
  let now = 1_760_000_000_000;
  const accounts = [createAccount(), createAccount()];
  // The first account has two devices that share what was read.
  const shared = createFrontiers();
  const device = (name: string, account: Account, frontiers: ReadFrontiers): Device => {
    const engine = openEngine(dir.path, name, space, account, [OBJECTS, CHAT_RULES], () => now++);
    const history = createHistory({ engine, store: engine.store });
    const onBackgroundError = (error: unknown) => {
      throw error;
    };
    const unread = createUnread({ engine, history, accountId: account.id, frontiers, onBackgroundError });
    const chat = createChatService({
      engine,
      accountId: account.id,
      unread,
      requireWriter: () => {},
      attachType: () => {},
    });
    return { account, engine, chat, stop: unread.close };
  };
  const devices = [
    device("a1", accounts[0]!, shared),
    device("a2", accounts[0]!, shared),
    device("b", accounts[1]!, createFrontiers()),
  ];
  try {
    const objectId = await devices[0]!.engine.write((tx) => {
      const object = tx.createObject();
      tx.append(
        object,
        {
          dataset: "objects",
          records: [{ id: "", upsert: true, ops: [{ type: "$set", path: "svc.name", value: "c" }] }],
        },
        OBJECTS,
      );
      return object.idText;
    });
    const shuffle = <T>(items: readonly T[]): T[] => rng.shuffle(items);
    const meet = async () => {
      for (const from of devices)
        for (const to of devices) if (from !== to) await deliver(from.engine, to.engine, shuffle);
    };
    await meet();
    for (let step = 0; step < 60; step++) {
      const actor = rng.pick(devices);
      await act(rng, actor, accounts, objectId);
      expectHonest(actor, objectId);
      if (rng.chance(0.25)) await meet();
    }
    await meet();
    for (const each of devices) {
      await each.engine.idle();
      expectHonest(each, objectId);
    }
    // What is not private is the same everywhere, in whatever order it came, and a reaction taken back leaves nothing.
    const content = (each: Device): Row[] =>
      messages(each, objectId).map((row) => {
        for (const flag of ["unread", "unreadMention", "unreadReactions"] as const) delete row[flag];
        return row;
      });
    for (const each of devices) expect(content(each)).toEqual(content(devices[0]!));
    for (const { reactions } of content(devices[0]!)) {
      if (reactions === undefined) continue;
      const slots = Object.values(reactions).map((byAccount) => Object.keys(byAccount).length);
      expect(Math.min(...slots)).toBeGreaterThan(0);
    }
    // Both devices of one account show the same once both have everything.
    const flags = (each: Device) =>
      messages(each, objectId).map(({ id, unread, unreadMention }) => ({ id, unread, unreadMention }));
    expect(flags(devices[1]!)).toEqual(flags(devices[0]!));
    await devices[2]!.chat.readAll(objectId);
    expect(messages(devices[2]!, objectId).filter((message) => message.unread)).toEqual([]);
    expectHonest(devices[2]!, objectId);
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1`);
    throw error;
  } finally {
    for (const each of devices) {
      each.stop();
      await each.engine.close();
    }
  }
}

describe("unread", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(`[CHAT-3] history ${i}: counters equal a recount, on every device`, () => runHistory(seed), 60_000);
  }
});
