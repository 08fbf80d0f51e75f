/**
 * Random writes of every kind to one space, through whichever device, and the account of what was acknowledged. A write
 * whose answer never came may have happened or not; one that was refused has not.
 */

import type { Rng } from "../rng.ts";
import type { Client, Json, JsonObject, Page, Reply, Row, WriteResult } from "../server/client.ts";
import { ANY_FIELDS, createCollection, createObject } from "../server/fixtures.ts";

const WORDS = ["alder", "birch", "cedar", "elder", "hazel", "rowan"];
const COUNTER = "counter";

type Outcome = "acknowledged" | "refused" | "unknown";

export interface SpaceWorkload {
  /** Whether what the writes need has come to a device. */
  isReady(client: Client): Promise<boolean>;
  /** One random write. Throws for an answer that no write should get; a lost connection is none. */
  write(client: Client): Promise<void>;
  /** Whether what was acknowledged is there, and what was deleted is not. Answers what is wrong. */
  faults(client: Client): Promise<string[]>;
  acknowledged(): number;
  /** Everything that can be read of it, as text, without what is an account's or a device's own. */
  view(client: Client): Promise<string>;
}

/** Makes what the writes need: a dataset with an object, a document and a chat. */
export async function createSpaceWorkload(client: Client, spaceId: string, rng: Rng): Promise<SpaceWorkload> {
  const base = `/v1/spaces/${spaceId}`;
  const { target } = await createCollection(client, spaceId, { fields: ANY_FIELDS });
  const documentId = (await createObject(client, spaceId, { initialProperties: { svc: { name: "document" } } })).id;
  const chatId = (await createObject(client, spaceId, { types: ["chat"] })).id;
  const document = `${base}/objects/${documentId}/editor`;
  const chat = `${base}/objects/${chatId}/chat`;

  const objects = new Set<string>();
  const records = new Map<string, string>();
  const blocks = new Map<string, string>();
  const messages = new Map<string, string>();
  const tokens = new Set<string>();
  const gone = { objects: new Set<string>(), records: new Set<string>() };
  let counted = 0;
  let countedInDoubt = 0;
  let count = 0;
  let serial = 0;

  const text = () => `${rng.pick(WORDS)} ${serial++}`;

  const attempt = async (
    client: Client,
    method: string,
    path: string,
    body?: JsonObject,
  ): Promise<{ outcome: Outcome; reply?: Reply }> => {
    let reply: Reply;
    try {
      reply = await client.request(method, path, body === undefined ? {} : { body });
    } catch {
      return { outcome: "unknown" }; // the server was killed under it
    }
    if (reply.status >= 500 && reply.status !== 503)
      throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    if (reply.status === 503) return { outcome: "unknown", reply };
    const rejected = ((reply.json as JsonObject | undefined)?.["rejections"] as unknown[] | undefined)?.length ?? 0;
    const outcome = reply.status < 300 && rejected === 0 ? "acknowledged" : "refused";
    if (outcome === "acknowledged") count++;
    return { outcome, reply };
  };
  const madeId = (reply: Reply): string => (reply.json as unknown as WriteResult).recordIds[0]!;
  const modify = (client: Client, ids: JsonObject, id: string, ops: JsonObject[], upsert = true) =>
    attempt(client, "POST", `${base}/modify`, { ...ids, records: [{ id, upsert, ops }] });
  const some = (ids: Iterable<string>): string | undefined => {
    const all = [...ids];
    return all.length === 0 ? undefined : rng.pick(all);
  };

  const kinds: readonly ((client: Client) => Promise<void>)[] = [
    async (client) => {
      const body = { initialProperties: { svc: { name: text() } } };
      const { outcome, reply } = await attempt(client, "POST", `${base}/objects`, body);
      if (outcome === "acknowledged") objects.add((reply!.json as { id: string }).id);
    },
    async (client) => {
      const id = some(objects);
      if (id === undefined) return;
      const ops = [{ type: "$set", value: { "svc.name": text(), "svc.description": text() } }];
      await modify(client, { objectId: id, dataset: "objects" }, id, ops, false);
    },
    async (client) => {
      const id = objects.size > 5 ? some(objects) : undefined;
      if (id === undefined) return;
      objects.delete(id);
      const { outcome } = await attempt(client, "DELETE", `${base}/objects/${id}`);
      if (outcome === "acknowledged") gone.objects.add(id);
      else if (outcome === "refused") objects.add(id); // not come here yet; in doubt it may be there or not
    },
    async (client) => {
      const id = `r${serial++}`;
      const value = text();
      const { outcome } = await modify(client, target, id, [{ type: "$set", value: { s: value, n: serial } }]);
      if (outcome === "acknowledged") records.set(id, value);
    },
    async (client) => {
      const id = records.size > 5 ? some(records.keys()) : undefined;
      if (id === undefined) return;
      const value = records.get(id)!;
      records.delete(id);
      const body = { ...target, recordIds: [id] };
      const { outcome, reply } = await attempt(client, "POST", `${base}/delete-records`, body);
      const deleted = outcome === "acknowledged" && (reply!.json as unknown as WriteResult).recordIds.includes(id);
      if (deleted) gone.records.add(id);
      else if (outcome !== "unknown") records.set(id, value);
    },
    async (client) => {
      const by = rng.int(1, 9);
      const { outcome } = await modify(client, target, COUNTER, [{ type: "$inc", path: "n", value: by }]);
      if (outcome === "acknowledged") counted += by;
      if (outcome === "unknown") countedInDoubt += by;
    },
    async (client) => {
      const token = `t${serial++}`;
      const { outcome } = await modify(client, target, COUNTER, [{ type: "$addToSet", path: "t", value: token }]);
      if (outcome === "acknowledged") tokens.add(token);
    },
    async (client) => {
      const words = text();
      const body = { type: "paragraph", text: words };
      const { outcome, reply } = await attempt(client, "POST", `${document}/blocks`, body);
      if (outcome === "acknowledged") blocks.set(madeId(reply!), words);
    },
    async (client) => {
      const id = some(blocks.keys());
      if (id === undefined) return;
      await attempt(client, "PATCH", `${document}/blocks/${id}`, {
        set: { "style.align": rng.pick(["left", "right"]) },
      });
    },
    async (client) => {
      await attempt(client, "POST", `${document}/markdown/append`, { content: `## ${text()}\n\n- ${text()}\n` });
    },
    async (client) => {
      const words = text();
      const { outcome, reply } = await attempt(client, "POST", `${chat}/messages`, { text: words });
      if (outcome === "acknowledged") messages.set(madeId(reply!), words);
    },
    async (client) => {
      const id = some(messages.keys());
      if (id !== undefined) await attempt(client, "POST", `${chat}/messages/${id}/reactions/%F0%9F%91%8D`);
    },
  ];

  const rows = async (client: Client, objectId: string, dataset: string): Promise<Map<string, Row>> => {
    const { records: all } = await client.post<Page>(`${base}/query`, { objectId, dataset });
    return new Map(all.map((row) => [row["id"] as string, row]));
  };

  return {
    isReady: async (client) => {
      const reply = await client.request("POST", `${base}/objects/query`, { body: { filter: { id: chatId } } });
      return reply.status === 200 && (reply.json as unknown as Page).records.length === 1;
    },
    write: (client) => rng.pick(kinds)(client),
    acknowledged: () => count,
    async view(client) {
      const all = await client.post<Page>(`${base}/objects/query`, { sort: ["id"] });
      const of = async (objectId: string, dataset: string) =>
        (await client.post<Page>(`${base}/query`, { objectId, dataset, sort: ["id"] })).records;
      return JSON.stringify(
        [
          all.records.map((row) => without(row, "chat")),
          await of(target.objectId, target.dataset),
          await of(documentId, "editor_blocks"),
          (await of(chatId, "chat_messages")).map((row) => without(row, "unread", "unreadReactions")),
          (await client.request("GET", `${document}/markdown`)).text,
          await client.get<Json>(`${base}/types`),
          await client.get<Json>(`${base}/members`),
        ],
        null,
        1,
      );
    },
    async faults(client) {
      const all = await client.post<Page>(`${base}/objects/query`, {});
      const present = new Set(all.records.map((row) => row["id"] as string));
      const collection = await rows(client, target.objectId, target.dataset);
      const paragraphs = await rows(client, documentId, "editor_blocks");
      const said = await rows(client, chatId, "chat_messages");
      const counter = collection.get(COUNTER) as { n?: number; t?: string[] } | undefined;
      const sum = counter?.n ?? 0;
      const held = new Set(counter?.t ?? []);
      const withText = (found: Map<string, Row>, id: string, field: string, value: string) =>
        found.get(id)?.[field] === value ? [] : [`${id}: ${JSON.stringify(found.get(id))}, ${field} was ${value}`];
      return [
        ...[...objects].filter((id) => !present.has(id)).map((id) => `the object ${id} is not there`),
        ...[...gone.objects].filter((id) => present.has(id)).map((id) => `the deleted object ${id} is there`),
        ...[...records].flatMap(([id, value]) => withText(collection, id, "s", value)),
        ...[...gone.records].filter((id) => collection.has(id)).map((id) => `the deleted record ${id} is there`),
        ...[...blocks].flatMap(([id, words]) => withText(paragraphs, id, "text", words)),
        ...[...messages].flatMap(([id, words]) => withText(said, id, "text", words)),
        ...[...tokens].filter((token) => !held.has(token)).map((token) => `the token ${token} is not there`),
        ...(sum < counted || sum > counted + countedInDoubt
          ? [`the counter is ${sum}, not ${counted} to ${counted + countedInDoubt}`]
          : []),
      ];
    },
  };
}

const without = (row: Row, ...fields: string[]): JsonObject =>
  Object.fromEntries(Object.entries(row).filter(([field]) => !fields.includes(field)));
