/** `POST {S}/modify` on chat_messages keeps every rule of the chat endpoints (gaps § 5, § 10). */
import { describe, expect } from "bun:test";
import type { Json, JsonObject, Page, SpaceInfo, WriteResult } from "../support/client.ts";
import { createObject, createSpace } from "../support/fixtures.ts";
import { rule, useServer } from "../support/rule.ts";

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
  rule("[chat] an agent group and attachments are as strict as at the endpoint", async () => {
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

  rule("[chat] mentions are derived: a caller cannot write them", async () => {
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
});
