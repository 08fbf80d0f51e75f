/** `POST {S}/modify` on chat_messages keeps every rule of the chat endpoints (CHAT-1 to CHAT-3, DATA-6). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Page, SpaceInfo, WriteResult } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

let space: SpaceInfo;
let chat: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  chat = (await createObject(client, space.id, { types: ["chat"] })).id;
});
const modify = (record: JsonObject) =>
  shared.client.request("POST", `/v1/spaces/${space.id}/modify`, {
    body: { objectId: chat, dataset: "chat_messages", records: [record] },
  });
const create = (value: JsonObject) => modify({ id: "", upsert: true, ops: [{ type: "$set", path: "", value }] });
const send = async (text: string): Promise<string> => {
  const path = `/v1/spaces/${space.id}/objects/${chat}/chat/messages`;
  return (await shared.client.post<WriteResult>(path, { text }, 201)).recordIds[0]!;
};
const find = async (id: string): Promise<JsonObject | undefined> => {
  const body = { objectId: chat, dataset: "chat_messages", filter: { id } };
  return (await shared.client.post<Page>(`/v1/spaces/${space.id}/query`, body)).records[0];
};

describe("a raw write of a message", () => {
  rule("[DATA-6] [CHAT-1] an agent group and attachments are as strict as at the endpoint", async () => {
    const malformed: Record<string, Json>[] = [
      { text: "x", agent: { name: 5, done: true } },
      { text: "x", agent: { name: "a" } },
      { text: "x", agent: { name: "a", done: true, more: 1 } },
      { attachments: { "a b": { type: "link", link: "x" } } },
      { attachments: { a: { type: "link" } } },
      { attachments: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`a${i}`, { type: "t", link: "l" }])) },
    ];
    for (const value of malformed) {
      const answer = await create(value as JsonObject);
      const { recordIds, rejections } = answer.json as unknown as WriteResult;
      expect([answer.status, rejections?.[0]?.opIndex]).toEqual([200, -1]);
      expect(await find(recordIds[0]!)).toBeUndefined();
    }
    const kept = await create({
      text: "x",
      agent: { name: "a", done: true },
      attachments: { a: { type: "t", link: "l" } },
    });
    expect((kept.json as unknown as WriteResult).rejections).toBeUndefined();
  });

  rule("[DATA-6] [CHAT-2] mentions are derived: a caller cannot write them", async () => {
    const id = await send("hello");
    for (const answer of [
      await modify({ id, ops: [{ type: "$set", path: "mentions", value: ["somebody"] }] }),
      await modify({ id, ops: [{ type: "$set", path: "", value: { text: "x", mentions: ["somebody"] } }] }),
      await create({ text: "x", mentions: ["somebody"] }),
    ]) {
      expect([answer.status, (answer.json as { error: JsonObject }).error["code"]]).toEqual([
        400,
        "dataset.validation",
      ]);
    }
    expect(await find(id)).toMatchObject({ text: "hello" });
    expect((await find(id))!["mentions"]).toBeUndefined();
  });

  rule("[DATA-6] [CHAT-2] mentions follow a text that is set raw, as at the endpoint", async () => {
    const someone = "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12";
    const link = `svc://m/${space.id}/${someone}`;
    const mentionsOf = async (id: string) => (await find(id))!["mentions"] ?? [];
    const id = await send("hello");
    await modify({ id, ops: [{ type: "$set", path: "text", value: "hello again" }] });
    expect(await find(id)).not.toHaveProperty("mentions");
    await modify({ id, ops: [{ type: "$set", path: "text", value: `ask ${link}` }] });
    expect(await mentionsOf(id)).toEqual([someone]);
    await modify({ id, ops: [{ type: "$set", path: "", value: { text: "never mind" } }] });
    expect(await mentionsOf(id)).toEqual([]);
    const created = await create({ text: `and ${link}`, replyToMessageId: id });
    const made = (created.json as unknown as WriteResult).recordIds[0]!;
    const me = (await shared.client.get<{ id: string }>("/v1/account")).id;
    expect(await mentionsOf(made)).toEqual([someone, me]);
    await modify({ id: made, ops: [{ type: "$set", path: "text", value: "plain" }] });
    expect(await mentionsOf(made)).toEqual([me]);
  });

  rule("[DATA-6] [CHAT-2] of two edits in one request the last one's mentions stay", async () => {
    const id = await send("hello");
    const edit = (text: string) => ({ id, ops: [{ type: "$set", path: "text", value: text }] });
    const someone = "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12";
    await shared.client.post(`/v1/spaces/${space.id}/modify`, {
      objectId: chat,
      dataset: "chat_messages",
      records: [edit(`svc://m/${space.id}/${someone}`), edit("nobody")],
    });
    expect(await find(id)).toMatchObject({ text: "nobody", mentions: [] });
  });

  rule("[DATA-6] [CHAT-3] a flag set by hand here is true or absent, and the chat's counter follows", async () => {
    const id = await send("hello");
    const local = (op: JsonObject) =>
      shared.client.post<WriteResult>(`/v1/spaces/${space.id}/modify`, {
        objectId: chat,
        dataset: "chat_messages",
        scope: "local",
        records: [{ id, ops: [op] }],
      });
    const counter = async () => {
      const body = { filter: { id: chat } };
      const [row] = (await shared.client.post<Page>(`/v1/spaces/${space.id}/objects/query`, body)).records;
      return (row!["chat"] as JsonObject | undefined)?.["unreadCount"] ?? 0;
    };
    for (const value of ["whatever", false, 1, null, { deep: true }]) {
      const result = await local({ type: "$set", path: "unread", value });
      expect(result.rejections).toMatchObject([{ recordIndex: 0, recordId: id, opIndex: 0 }]);
    }
    expect((await local({ type: "$set", path: "unread.deep", value: true })).rejections).toHaveLength(1);
    expect((await find(id))!["unread"]).toBeUndefined();
    const before = await counter();
    expect((await local({ type: "$set", path: "unread", value: true })).rejections).toBeUndefined();
    expect([(await find(id))!["unread"], await counter()]).toEqual([true, (before as number) + 1]);
    await local({ type: "$set", path: "unread", value: true });
    expect(await counter()).toBe((before as number) + 1);
    await local({ type: "$unset", path: "unread" });
    expect([(await find(id))!["unread"], await counter()]).toEqual([undefined, before]);
  });

  rule("[DATA-6] a message in what is no chat, or a block in what is no document, is dataset.validation", async () => {
    const { client } = shared;
    const plain = (await createObject(client, space.id, {})).id;
    for (const [dataset, value] of [
      ["chat_messages", { text: "x" }],
      ["editor_blocks", { type: "paragraph", text: "x", nav: { parentId: "", pos: "a" } }],
    ] as const) {
      const records = [{ id: "", upsert: true, ops: [{ type: "$set", path: "", value }] }];
      const body = { objectId: plain, dataset, records };
      const error = await client.fails("POST", `/v1/spaces/${space.id}/modify`, body, 400, "dataset.validation");
      expect(error.message).toContain("does not carry the type");
      const rows = await client.post<Page>(`/v1/spaces/${space.id}/query`, { objectId: plain, dataset });
      expect(rows.records).toEqual([]);
    }
  });
});
