/** Chat of one account: sending, editing, reactions, read routes, and what is refused (CHAT-1 to CHAT-4). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Page, SpaceInfo, WriteResult } from "../support/server/client.ts";
import { ABSENT, createObject, createSpace } from "../support/server/fixtures.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";

let space: SpaceInfo;
let chatId: string;
let accountId: string;
let first: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  chatId = (await createObject(client, space.id, { types: ["chat"] })).id;
  accountId = (await client.get<{ id: string }>("/v1/account")).id;
  first = await send({ text: "first" }, client);
});
const chat = (): string => `/v1/spaces/${space.id}/objects/${chatId}/chat`;
const context = () => ({
  client: shared.client,
  vars: { C: chat(), NONE: `/v1/spaces/${space.id}/objects/${ABSENT}/chat`, first },
});
const send = async (body: JsonObject, client = shared.client): Promise<string> =>
  (await client.post<WriteResult>(`${chat()}/messages`, body, 201)).recordIds[0]!;
const find = async (id: string): Promise<JsonObject | undefined> => {
  const body = { objectId: chatId, dataset: "chat_messages", filter: { id } };
  return (await shared.client.post<Page>(`/v1/spaces/${space.id}/query`, body)).records[0];
};
const message = (id: string): string => `${chat()}/messages/${id}`;
const react = (id: string, emoji: string): Promise<WriteResult> =>
  shared.client.post<WriteResult>(`${message(id)}/reactions/${encodeURIComponent(emoji)}`);

const MESSAGES = "{C}/messages";
const refused = (title: string, body: JsonObject, code: string, details: JsonObject = {}): Scenario => ({
  title: `[CHAT-1] ${title}`,
  method: "POST",
  path: MESSAGES,
  body,
  status: 400,
  code,
  details,
});
const missing = (method: string, path: string, code: string, body?: JsonObject): Scenario => ({
  title: `[CHAT-4] [API-19] ${method} ${path} answers ${code}`,
  method,
  path,
  ...(body ? { body } : {}),
  status: 404,
  code,
});
const attachments = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a-${index}`, { type: "link", link: "l" }]));

describe("send", () => {
  rule("[CHAT-4] a message has its author, two equal times and its text, and is born read", async () => {
    const row = (await find(await send({ text: "**hello**" })))!;
    expect(row).toMatchObject({ creator: accountId, text: "**hello**" });
    expect((row["createdAt"] as JsonObject)["$date"]).toBeString();
    expect(row["modifiedAt"]).toEqual(row["createdAt"]!);
    for (const absent of ["unread", "unreadMention", "unreadReactions", "mentions", "reactions"])
      expect(row).not.toHaveProperty(absent);
  });

  const kept: [string, JsonObject][] = [
    ["a text of 32 KiB", { text: "é".repeat(16 << 10) }],
    ["attachments without a text", { attachments: { "A_b-1": { type: "image", link: "svc://x" } } }],
    ["32 attachments", { text: "x", attachments: attachments(32) }],
    [
      "an attachment at its limits",
      { attachments: { ["i".repeat(64)]: { type: "t".repeat(64), link: "l".repeat(2048) } } },
    ],
    ["an agent", { text: "x", agent: { name: "n".repeat(256), debugLink: "d".repeat(2048), done: false } }],
    ["an agent without a debug link", { text: "x", agent: { name: "bot", done: true } }],
    ["a reply to a message that is not there", { text: "x", replyToMessageId: "m".repeat(256) }],
  ];
  for (const [what, body] of kept) {
    rule(`[CHAT-4] ${what} is kept as sent`, async () => {
      expect(await find(await send(body))).toMatchObject(body);
    });
  }

  rule("[DATA-8] the newest message comes first by -_ver.id", async () => {
    const sent = [await send({ text: "older" }), await send({ text: "newer" })];
    const page = await shared.client.post<Page>(`/v1/spaces/${space.id}/query`, {
      objectId: chatId,
      dataset: "chat_messages",
      sort: ["-_ver.id"],
      limit: 2,
    });
    expect(page.records.map(({ id }) => id as Json)).toEqual(sent.toReversed());
  });

  rule("[CHAT-4] an object without the type gets it with its first message", async () => {
    const plain = (await createObject(shared.client, space.id)).id;
    const base = `/v1/spaces/${space.id}`;
    await shared.client.post(`${base}/objects/${plain}/chat/messages`, { text: "x" }, 201);
    const page = await shared.client.post<Page>(`${base}/objects/query`, { filter: { id: plain } });
    expect((page.records[0]!["svc"] as JsonObject)["types"]).toContain("chat");
  });

  const AGENT = "chat.agent_invalid";
  const INVALID = "request.invalid_field";
  runScenarios(context, [
    refused("a message needs text or attachments", {}, "chat.text_required"),
    refused("an empty text is none", { text: "" }, "chat.text_required"),
    refused("empty attachments are none", { attachments: {} }, "chat.text_required"),
    refused("an agent alone is no message", { agent: { name: "a", done: true } }, "chat.text_required"),
    {
      ...refused("", { text: "x", mentions: [] }, "request.unknown_field"),
      title: "[CHAT-2] mentions are taken from no caller",
    },
    refused("a text over 32 KiB is refused", { text: `${"é".repeat(16 << 10)}x` }, INVALID, {
      field: "text",
      limitBytes: 32 << 10,
    }),
    refused("a reply's id over 256 bytes is refused", { text: "x", replyToMessageId: "m".repeat(257) }, INVALID, {
      field: "replyToMessageId",
    }),
    refused("an agent without a name is refused", { text: "x", agent: { done: true } }, AGENT),
    refused("an agent with an empty name is refused", { text: "x", agent: { name: "", done: true } }, AGENT),
    refused(
      "an agent's name over 256 bytes is refused",
      { text: "x", agent: { name: "é".repeat(129), done: true } },
      AGENT,
    ),
    refused("an agent without done is refused", { text: "x", agent: { name: "a" } }, AGENT),
    refused("an agent whose done is no boolean is refused", { text: "x", agent: { name: "a", done: 1 } }, AGENT),
    refused("an empty debug link is refused", { text: "x", agent: { name: "a", done: true, debugLink: "" } }, AGENT),
    refused(
      "a debug link over 2 KiB is refused",
      { text: "x", agent: { name: "a", done: true, debugLink: "d".repeat(2049) } },
      AGENT,
    ),
    refused("an agent's unknown key is refused", { text: "x", agent: { name: "a", done: true, more: 1 } }, AGENT),
    refused("an agent that is a text is refused", { text: "x", agent: "bot" }, AGENT),
    refused("33 attachments are refused", { text: "x", attachments: attachments(33) }, INVALID),
    refused(
      "an attachment's id with a space is refused",
      { attachments: { "a b": { type: "t", link: "l" } } },
      INVALID,
    ),
    refused(
      "an attachment's id over 64 characters is refused",
      { attachments: { ["i".repeat(65)]: { type: "t", link: "l" } } },
      INVALID,
    ),
    refused("an attachment without a link is refused", { attachments: { a: { type: "t" } } }, INVALID),
    refused(
      "an attachment's type over 64 bytes is refused",
      { attachments: { a: { type: "t".repeat(65), link: "l" } } },
      INVALID,
    ),
    refused("a link over 2 KiB is refused", { attachments: { a: { type: "t", link: "l".repeat(2049) } } }, INVALID),
  ]);
});

describe("mentions", () => {
  const link = (identity: string): string => `[@x](svc://m/${space.id}/${identity})`;

  rule("[CHAT-2] mentions come from the links of the text, each once, and follow an edit", async () => {
    const id = await send({ text: `${link(accountId)} and ${link(accountId)}` });
    expect((await find(id))!["mentions"]).toEqual([accountId]);
    await shared.client.patch(message(id), { text: "nobody" }, 200);
    expect((await find(id))!["mentions"] ?? []).toEqual([]);
  });

  rule("[CHAT-2] a reply mentions the author it replies to, also after an edit", async () => {
    const id = await send({ text: "yes", replyToMessageId: first });
    expect((await find(id))!["mentions"]).toEqual([accountId]);
    await shared.client.patch(message(id), { text: "no" }, 200);
    expect((await find(id))!["mentions"]).toEqual([accountId]);
  });
});

describe("edit and delete", () => {
  rule("[CHAT-4] an edit replaces the text and leaves the rest", async () => {
    const made = { text: "before", agent: { name: "a", done: true }, attachments: attachments(1) };
    const id = await send(made);
    const before = (await find(id))!;
    expect((await shared.client.patch<WriteResult>(message(id), { text: "after" }, 200)).recordIds).toEqual([id]);
    const after = (await find(id))!;
    expect(after).toMatchObject({ ...made, text: "after", creator: accountId });
    expect(after["createdAt"]).toEqual(before["createdAt"]!);
  });

  rule("[CHAT-4] a deleted message is gone for every route", async () => {
    const id = await send({ text: "x" });
    expect((await shared.client.del<WriteResult>(message(id), 200)).recordIds).toEqual([id]);
    expect(await find(id)).toBeUndefined();
    await shared.client.fails("PATCH", message(id), { text: "y" }, 404, "chat.not_found");
    await shared.client.fails("DELETE", message(id), undefined, 404, "chat.not_found");
    await shared.client.fails("POST", `${message(id)}/reactions/x`, undefined, 404, "chat.not_found");
    await shared.client.fails("POST", `${message(id)}/read`, undefined, 404, "chat.not_found");
  });

  const refusedEdit = (title: string, body: JsonObject, code: string, details: JsonObject = {}): Scenario => ({
    ...refused(title, body, code, details),
    method: "PATCH",
    path: "{C}/messages/{first}",
  });
  runScenarios(context, [
    refusedEdit("an edit needs a text", {}, "request.missing_field", { field: "text" }),
    refusedEdit("an edit to an empty text is refused", { text: "" }, "chat.text_required"),
    refusedEdit("an edit of attachments is refused", { text: "x", attachments: {} }, "request.unknown_field"),
    refusedEdit("an edit over 32 KiB is refused", { text: "x".repeat((32 << 10) + 1) }, "request.invalid_field", {
      field: "text",
      limitBytes: 32 << 10,
    }),
  ]);
});

describe("reactions", () => {
  rule("[CHAT-1] a reaction toggles in the own slot", async () => {
    const id = await send({ text: "x" });
    expect((await react(id, "👍")).recordIds).toEqual([id]);
    await react(id, "🎉");
    expect((await find(id))!["reactions"]).toEqual({
      "👍": { [accountId]: { $date: expect.any(String) } },
      "🎉": { [accountId]: { $date: expect.any(String) } },
    } as unknown as JsonObject);
    await react(id, "👍");
    const left = (await find(id))!["reactions"] as JsonObject;
    expect(left["👍"] ?? {}).toEqual({});
    expect(left).toHaveProperty(["🎉", accountId]);
  });

  rule("[CHAT-1] nothing is left behind by reactions that were taken back", async () => {
    const id = await send({ text: "react and take it back" });
    await react(id, "👍");
    await react(id, "🎉");
    await react(id, "👍");
    expect(Object.keys((await find(id))!["reactions"] as JsonObject)).toEqual(["🎉"]);
    await react(id, "🎉");
    expect(await find(id)).not.toHaveProperty("reactions");
    await react(id, "👍");
    expect(Object.keys((await find(id))!["reactions"] as JsonObject)).toEqual(["👍"]);
  });

  rule("[CHAT-4] a reaction is no edit: the time of change stays", async () => {
    const id = await send({ text: "x" });
    await react(id, "👍");
    const row = (await find(id))!;
    expect(row["modifiedAt"]).toEqual(row["createdAt"]!);
    expect(row).not.toHaveProperty("unreadReactions");
  });

  rule("[CHAT-1] an emoji has at most 64 bytes", async () => {
    const id = await send({ text: "x" });
    await react(id, "e".repeat(64));
    const path = `${message(id)}/reactions/${"e".repeat(65)}`;
    await shared.client.fails("POST", path, undefined, 400, "request.invalid_field");
    expect(Object.keys((await find(id))!["reactions"] as JsonObject)).toEqual(["e".repeat(64)]);
  });
});

describe("read routes", () => {
  const answers = (title: string, path: string): Scenario => ({
    title: `[CHAT-3] ${title}`,
    method: "POST",
    path,
    status: 204,
    after: async (_reply, { client, vars }) => {
      // Idempotent.
      await client.post(
        path.replace(/\{(\w+)\}/g, (_, name: string) => vars[name]!),
        undefined,
        204,
      );
    },
  });
  runScenarios(context, [
    answers("read-all answers 204, again and again", "{C}/read-all"),
    answers("read answers 204, again and again", "{C}/messages/{first}/read"),
    answers("reactions-read answers 204, again and again", "{C}/messages/{first}/reactions-read"),
    answers("reactions-read of an unknown message is nothing to do", "{C}/messages/nowhere/reactions-read"),
  ]);

  rule("[CHAT-3] own messages never count as unread", async () => {
    await send({ text: "mine" });
    const query = { objectId: chatId, dataset: "chat_messages", filter: { unread: true } };
    expect((await shared.client.post<Page>(`/v1/spaces/${space.id}/query`, query)).records).toEqual([]);
    const page = await shared.client.post<Page>(`/v1/spaces/${space.id}/objects/query`, { filter: { id: chatId } });
    const counters = (page.records[0]!["chat"] ?? {}) as JsonObject;
    expect([counters["unreadCount"] ?? 0, counters["unreadMentions"] ?? 0]).toEqual([0, 0]);
  });
});

describe("what is not there", () => {
  runScenarios(context, [
    missing("PATCH", "{C}/messages/nowhere", "chat.not_found", { text: "x" }),
    missing("DELETE", "{C}/messages/nowhere", "chat.not_found"),
    missing("POST", "{C}/messages/nowhere/reactions/x", "chat.not_found"),
    missing("POST", "{C}/messages/nowhere/read", "chat.not_found"),
    missing("POST", "{NONE}/messages", "object.not_found", { text: "x" }),
    missing("PATCH", "{NONE}/messages/m", "object.not_found", { text: "x" }),
    missing("DELETE", "{NONE}/messages/m", "object.not_found"),
    missing("POST", "{NONE}/messages/m/reactions/x", "object.not_found"),
    missing("POST", "{NONE}/messages/m/read", "object.not_found"),
    missing("POST", "{NONE}/messages/m/reactions-read", "object.not_found"),
    missing("POST", "{NONE}/read-all", "object.not_found"),
    {
      ...missing("POST", `/v1/spaces/${ABSENT}/objects/${ABSENT}/chat/read-all`, "space.not_found"),
      title: "[API-11] a chat of an unknown space answers space.not_found",
    },
  ]);
});
