/** A chat between two accounts, of which one has two devices: who may change what, and what is unread for whom. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { codeOf } from "../../../test/support/errors-of.ts";
import { createRng } from "../../../test/support/rng.ts";
import { type ScratchDir, scratchDir } from "../../../test/support/scratch.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { createOpenGenesis, deliver, type OpenEngine, openEngine } from "../../../test/support/worlds/open-engine.ts";
import { createFrontiers } from "../../../test/support/worlds/read-frontiers.ts";
import type { ReadFrontiers } from "../../account/own-space/read-frontiers.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { createHistory } from "../../change/history/history.ts";
import type { Account } from "../../crypto/account.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { CHAT_DATASET, CHAT_RULES } from "./chat-rules.ts";
import { type ChatService, createChatService } from "./chat-service.ts";
import { createUnread } from "./unread.ts";

const OBJECTS: DatasetRules = { name: "objects", idRule: "object" };
const NO_RULES: DatasetRules = { name: CHAT_DATASET, idRule: "auto", skipHistory: true };
const { shuffle } = createRng(1);

interface Device {
  readonly account: Account;
  readonly engine: OpenEngine;
  readonly chat: ChatService;
  close(): void;
}

let directory: ScratchDir;
let devices: Device[];
let [ours, second, theirs]: Device[] = [];
let objectId: string;
/** A device of an account that takes any write of messages. */
let openLawless: (account: Account) => OpenEngine;
/** A device of an account; what it has read it shares with nobody. */
let open: (name: string, account: Account, frontiers?: ReadFrontiers) => Device;

beforeEach(async () => {
  directory = scratchDir("svc-chat-service");
  const space = createOpenGenesis();
  let now = 1_760_000_000_000;
  open = (name, account, frontiers = createFrontiers()) => {
    const engine = openEngine(directory.path, name, space, account, [OBJECTS, CHAT_RULES], () => now++);
    const history = createHistory({ engine, store: engine.store });
    const onBackgroundError = (error: unknown) => {
      throw error;
    };
    const unread = createUnread({ engine, history, accountId: account.id, frontiers, onBackgroundError });
    const ports = { requireWriter: () => {}, attachType: () => {} };
    return { account, engine, chat: createChatService({ engine, accountId: account.id, unread, ...ports }), ...unread };
  };
  openLawless = (account) => openEngine(directory.path, "lawless", space, account, [OBJECTS, NO_RULES], () => now++);
  const [us, them] = [createAccount(), createAccount()];
  const shared = createFrontiers();
  devices = [open("a", us, shared), open("b", us, shared), open("c", them)];
  [ours, second, theirs] = devices;
  objectId = await ours!.engine.write((tx) => {
    const object = tx.createObject();
    const ops: RecordOp[] = [{ type: "$set", path: "svc.name", value: "chat" }];
    tx.append(object, { dataset: "objects", records: [{ id: "", upsert: true, ops }] }, OBJECTS);
    return object.idText;
  });
  await meet();
});
afterEach(async () => {
  for (const { close, engine } of devices) {
    close();
    await engine.close();
  }
  directory[Symbol.dispose]();
});

/** Everybody gets what the others have. */
async function meet(): Promise<void> {
  for (const from of devices) for (const to of devices) if (from !== to) await deliver(from.engine, to.engine, shuffle);
  for (const { engine } of devices) await engine.idle();
}
const send = async ({ chat }: Device, text: string): Promise<string> =>
  (await chat.send(objectId, { text })).recordIds[0]!;
const rowOf = ({ engine }: Device, id: string): JsonObject | undefined =>
  engine.record(engine.object(objectId)!, CHAT_DATASET, id);
const flagged = (device: Device, ids: readonly string[], flag: string): number[] =>
  ids.flatMap((id, index) => (rowOf(device, id)?.[flag] === true ? [index] : []));
const counters = ({ engine }: Device): JsonObject => {
  const chat = engine.record(engine.object(objectId)!, "objects", objectId)?.["chat"];
  return isJsonObject(chat) ? chat : {};
};
describe("a message of another", () => {
  test("[CHAT-1] is edited and deleted by its author alone", async () => {
    const id = await send(ours!, "mine");
    await meet();
    expect(await codeOf(theirs!.chat.edit(objectId, id, "theirs"))).toBe("chat.not_author");
    expect(await codeOf(theirs!.chat.delete(objectId, id))).toBe("chat.not_author");
    await second!.chat.edit(objectId, id, "ours");
    await meet();
    for (const device of devices) expect(rowOf(device, id)).toMatchObject({ text: "ours", creator: ours!.account.id });
  });

  test("[CHAT-1] nor by a device that keeps to no rule; a reaction stands in one's own slot alone", async () => {
    const id = await send(ours!, "mine");
    const lawless = openLawless(theirs!.account);
    await deliver(ours!.engine, lawless, shuffle);
    const slot = (account: Account): RecordOp => ({ type: "$set", path: `reactions.x.${account.id}`, value: true });
    for (const record of [
      { id, ops: [{ type: "$set", path: "text", value: "theirs" }] },
      { id, ops: [{ type: "$set", path: "mentions", value: [theirs!.account.id] }] },
      { id, ops: [slot(ours!.account)] },
      { id, ops: [slot(theirs!.account)] },
      { id, delete: true, ops: [] },
    ] satisfies RecordChange[])
      await lawless.write((tx) =>
        tx.append(tx.object(objectId)!, { dataset: CHAT_DATASET, records: [record] }, NO_RULES),
      );
    expect(lawless.record(lawless.object(objectId)!, CHAT_DATASET, id)).toBeUndefined();
    for (const { engine } of devices) await deliver(lawless, engine, shuffle);
    await lawless.close();
    for (const device of devices) {
      const { text, mentions, reactions } = rowOf(device, id)!;
      expect([text, mentions]).toEqual(["mine", undefined]);
      expect(reactions).toEqual({
        x: { [theirs!.account.id]: { $date: expect.any(String) } },
      } as unknown as JsonObject);
    }
  });

  test("[CHAT-4] keeps all but its text and its reactions, whoever writes", async () => {
    const agent = { name: "bot", done: false };
    const sent = { text: "mine", agent, attachments: { a: { type: "link", link: "l" } } };
    const id = (await ours!.chat.send(objectId, sent)).recordIds[0]!;
    const lawless = openLawless(ours!.account);
    await deliver(ours!.engine, lawless, shuffle);
    for (const [path, value] of [
      ["agent.done", true],
      ["attachments.b", { type: "link", link: "m" }],
      ["replyToMessageId", id],
      ["creator", theirs!.account.id],
      ["createdAt", { $date: "2020-01-01T00:00:00.000Z" }],
    ] as const) {
      const record = { id, ops: [{ type: "$set" as const, path, value }] };
      await lawless.write((tx) =>
        tx.append(tx.object(objectId)!, { dataset: CHAT_DATASET, records: [record] }, NO_RULES),
      );
    }
    const before = rowOf(ours!, id)!;
    for (const { engine } of devices) await deliver(lawless, engine, shuffle);
    await lawless.close();
    for (const device of devices) expect(rowOf(device, id)).toMatchObject({ ...sent, createdAt: before["createdAt"]! });
    expect(rowOf(theirs!, id)).not.toHaveProperty("replyToMessageId");
    expect(rowOf(theirs!, id)!["creator"]).toBe(ours!.account.id);
  });

  test("[CHAT-4] tells when it was edited", async () => {
    const id = await send(ours!, "before");
    const { createdAt } = rowOf(ours!, id)!;
    await ours!.chat.edit(objectId, id, "after");
    const edited = rowOf(ours!, id)!;
    expect(edited["createdAt"]).toEqual(createdAt!);
    expect(edited["modifiedAt"]).not.toEqual(createdAt!);
  });
});

describe("what is unread", () => {
  const three = async (): Promise<string[]> => {
    const ids = [];
    for (const text of ["one", `two svc://m/space/${ours!.account.id}`, "three"]) ids.push(await send(theirs!, text));
    await meet();
    return ids;
  };

  test("[CHAT-3] goes up to the message that was read, on all devices of the account, and never comes back", async () => {
    const ids = await three();
    for (const device of [ours!, second!]) {
      expect(flagged(device, ids, "unread")).toEqual([0, 1, 2]);
      expect(flagged(device, ids, "unreadMention")).toEqual([1]);
      expect(counters(device)).toEqual({ unreadCount: 3, unreadMentions: 1 });
    }
    expect(flagged(theirs!, ids, "unread")).toEqual([]);
    await ours!.chat.read(objectId, ids[1]!);
    await ours!.chat.read(objectId, ids[0]!);
    await meet();
    for (const device of [ours!, second!]) {
      expect([flagged(device, ids, "unread"), flagged(device, ids, "unreadMention")]).toEqual([[2], []]);
      expect(counters(device)).toEqual({ unreadCount: 1 });
    }
    await second!.chat.readAll(objectId);
    await meet();
    for (const device of [ours!, second!]) expect(counters(device)).toEqual({});
  });

  test("[CHAT-3] loses what is deleted, and counts what others write later", async () => {
    const ids = await three();
    await theirs!.chat.delete(objectId, ids[1]!);
    await meet();
    expect(counters(ours!)).toEqual({ unreadCount: 2 });
    await ours!.chat.readAll(objectId);
    ids.push(await send(theirs!, "four"));
    await meet();
    for (const device of [ours!, second!]) expect(flagged(device, ids, "unread")).toEqual([3]);
  });

  test("[CHAT-3] a reaction is told to the author of its message alone, until that is read", async () => {
    const id = await send(ours!, "mine");
    const other = await send(theirs!, "theirs");
    await meet();
    for (const message of [id, other]) await theirs!.chat.react(objectId, message, "x");
    await meet();
    for (const device of [ours!, second!]) {
      expect(flagged(device, [id, other], "unreadReactions")).toEqual([0]);
      expect(counters(device)).toMatchObject({ unreadReactionsCount: 1 });
    }
    expect(flagged(theirs!, [id, other], "unreadReactions")).toEqual([]);
    await second!.chat.readReactions(objectId, id);
    await meet();
    for (const device of [ours!, second!]) expect(counters(device)).not.toHaveProperty("unreadReactionsCount");
  });

  test("[CHAT-3] reading a reaction reads what its author knew, and no more", async () => {
    const id = await send(ours!, "mine");
    const third = open("d", createAccount());
    devices.push(third);
    await meet();
    const ids = [await send(theirs!, "known to the third")];
    await deliver(theirs!.engine, third.engine, shuffle);
    ids.push(await send(third, "by the third"));
    ids.push(await send(theirs!, "not known to the third"));
    await third.chat.react(objectId, id, "x");
    ids.push(await send(third, "after the reaction"));
    await meet();
    expect(flagged(ours!, ids, "unread")).toEqual([0, 1, 2, 3]);
    await ours!.chat.readReactions(objectId, id);
    await meet();
    for (const device of [ours!, second!]) {
      expect(flagged(device, ids, "unread")).toEqual([2, 3]);
      expect(counters(device)).toEqual({ unreadCount: 2 });
    }
  });
});
