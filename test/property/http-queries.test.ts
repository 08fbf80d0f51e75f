/**
 * Random filters, sorts and windows over random documents, through HTTP, against the straightforward matcher that
 * imports nothing of the engine. The same shapes of query are asked again and again, so that whatever indexes the
 * server makes by itself come to be used, and the documents change in between.
 */
import { describe, expect } from "bun:test";
import { dateOf, referenceMatch, referenceSort } from "../support/oracle/reference-matcher.ts";
import { createRandom, type Random, randomDocument, randomFilter } from "../support/random-json.ts";
import { runSeed } from "../support/rng.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Page, Row } from "../support/server/client.ts";
import { type Collection, content, createCollection, createSpace } from "../support/server/fixtures.ts";

const DOCUMENTS = 1_200;
const ROUNDS = 3;
const QUERIES_PER_ROUND = 250;
const SORT_PATHS = ["a", "b", "c", "a.b", "a.0", "_ver.id", "id"];

const seed = runSeed("http queries");
const shared = useServer();

async function prepare(): Promise<{ random: Random; items: Collection; docs: Map<string, JsonObject> }> {
  const random = createRandom(seed);
  const space = await createSpace(shared.client);
  const items = await createCollection(shared.client, space.id, { dynamic: true, fields: [] });
  const docs = new Map<string, JsonObject>();
  for (let i = 0; i < DOCUMENTS; i++) {
    const id = `d${(i * 7919) % DOCUMENTS}`;
    const { id: _, ...fields } = randomDocument(random, id) as JsonObject;
    docs.set(id, fields);
  }
  const records = [...docs].map(([id, fields]) => ({ id, fields }));
  const result = await items.upsert(records);
  expect([result.created, result.rejections ?? []]).toEqual([DOCUMENTS, []]);
  return { random, items, docs };
}

function randomQuery(random: Random): JsonObject {
  const sort = Array.from({ length: random.below(3) }, () => `${random.pick(["", "-"])}${random.pick(SORT_PATHS)}`);
  return {
    filter: randomFilter(random) as JsonObject,
    ...(sort.length === 0 ? {} : { sort }),
    ...(random.below(2) === 0 ? {} : { limit: random.below(30), offset: random.below(10) }),
    ...(random.below(2) === 0 ? {} : { includeTotal: true }),
  };
}

/** What the page must be, by the reference, from the rows as they are. */
function expectedPage(rows: readonly Row[], query: JsonObject): { ids: string[]; total: number } {
  const matches = rows.filter((row) => referenceMatch(row, query["filter"]));
  const sorted = referenceSort(matches, (query["sort"] ?? []) as string[]) as Row[];
  const offset = Math.max(0, Number(query["offset"] ?? 0));
  const limit = Number(query["limit"] ?? 0);
  const window = limit > 0 ? sorted.slice(offset, offset + limit) : sorted.slice(offset);
  return { ids: window.map((row) => row.id), total: matches.length };
}

describe("queries over HTTP", () => {
  rule(
    `[QUERY-2] [QUERY-3] [QUERY-4] ${ROUNDS * QUERIES_PER_ROUND} random queries: pages, order and totals are those of the reference`,
    async () => {
      const { random, items, docs } = await prepare();
      const stored = (await items.query()).records;
      for (const row of stored)
        expect([row.id, content(row)]).toEqual([
          row.id,
          { id: row.id, ...(asStored(docs.get(row.id)!) as JsonObject) },
        ]);
      const repeated = Array.from({ length: 40 }, () => randomQuery(random));
      let refused = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const rows = (await items.query()).records;
        const queries = [...repeated, ...Array.from({ length: QUERIES_PER_ROUND - 40 }, () => randomQuery(random))];
        for (const query of queries) {
          const reply = await shared.client.request("POST", `${items.path}/query`, {
            body: { ...items.target, ...query },
          });
          if (reply.status === 400) {
            refused++;
            continue;
          }
          expect(reply.status).toBe(200);
          const page = reply.json as unknown as Page;
          const wanted = expectedPage(rows, query);
          const got = page.records.map((row) => row.id);
          // Without a sort the order is the server's own; what is there must agree all the same.
          if (query["sort"] === undefined && query["limit"] === undefined) {
            expect({ seed, query, ids: got.sort() }).toEqual({ seed, query, ids: wanted.ids.sort() });
          } else if (query["sort"] !== undefined)
            expect({ seed, query, ids: got }).toEqual({ seed, query, ids: wanted.ids });
          else expect({ seed, query, count: got.length }).toEqual({ seed, query, count: wanted.ids.length });
          if (query["includeTotal"])
            expect({ seed, query, total: page.total }).toEqual({ seed, query, total: wanted.total });
        }
        await change(random, items);
      }
      expect(refused).toBeLessThan(ROUNDS * QUERIES_PER_ROUND * 0.05);
    },
    240_000,
  );
});

/** Instants come back in UTC with milliseconds, in whatever well-formed way they were written; the rest as it was given. */
function asStored(value: Json): Json {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(asStored);
  const instant = dateOf(value);
  if (instant !== null) return { $date: new Date(instant).toISOString() };
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asStored(item!)]));
}

/** Replaces some documents' values and deletes a few. */
async function change(random: Random, items: Collection): Promise<void> {
  const records = Array.from({ length: 60 }, () => {
    const id = `d${random.below(DOCUMENTS)}`;
    const { id: _, ...fields } = randomDocument(random, id) as JsonObject;
    return { id, upsert: false, ops: [{ type: "$set", value: fields }] };
  });
  await items.modify(records.filter((record) => Object.keys(record.ops[0]!.value).length > 0));
  await items.deleteRecords(Array.from({ length: 10 }, () => `d${random.below(DOCUMENTS)}`));
}
