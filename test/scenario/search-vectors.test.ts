/** Search by meaning, with an endpoint that embeds by meanings it was told. */
import { describe, expect } from "bun:test";
import { rmSync } from "node:fs";
import { type EmbeddingEndpoint, embeddingBy, startEmbeddingEndpoint } from "../support/models/embedding-endpoint.ts";
import { indexDirectory, search, searchByMeaning, searchUntil } from "../support/models/search.ts";
import { rule } from "../support/rule.ts";
import type { ErrorBody, JsonObject } from "../support/server/client.ts";
import { createObject, createSpace, createType, named, uniqueName } from "../support/server/fixtures.ts";
import { type RunningServer, type ServerOptions, startServer } from "../support/server/server.ts";

const MEANINGS = [
  ["cat", "feline", "kitten"],
  ["invoice", "bill", "payment"],
  ["bread", "loaf", "baguette"],
  ["storm", "tempest"],
];

function withEndpoint(endpoint: EmbeddingEndpoint, options: ServerOptions = {}): Promise<RunningServer> {
  return startServer({
    ...options,
    env: {
      ...embeddingBy(endpoint),
      SVC_INDEX_OPENAI_KEY_ENV: "GIVEN_KEY",
      GIVEN_KEY: "sk-secret-of-the-test",
      ...options.env,
    },
  });
}

async function spaceWith(server: RunningServer, names: readonly string[]): Promise<{ space: string; ids: string[] }> {
  const space = (await createSpace(server.client)).id;
  const ids: string[] = [];
  for (const name of names) ids.push((await createObject(server.client, space, named(name))).id);
  return { space, ids };
}

const NAMES = ["a cat on the sofa", "invoice of March", "fresh bread", "the storm passed"];

describe("search by meaning", () => {
  rule("[SEARCH-6] a text is found that shares no word with the query; hits say which lists found them", async () => {
    await using endpoint = startEmbeddingEndpoint(MEANINGS);
    await using server = await withEndpoint(endpoint);
    const { space, ids } = await spaceWith(server, NAMES);
    const { hits, mode } = await searchByMeaning(server.client, space, { query: "feline" });
    expect(mode).toBe("hybrid");
    expect(hits[0]).toMatchObject({ objectId: ids[0], foundBy: ["vector"], highlights: [] });
    const both = await search(server.client, space, { query: "bread" });
    expect(both.hits[0]).toMatchObject({
      objectId: ids[2],
      foundBy: ["fts", "vector"],
      score: 1,
      highlights: [[6, 11]],
    });
    const meaning = await search(server.client, space, { query: "kitten", mode: "vector", limit: 1 });
    expect([meaning.mode, meaning.hits[0]?.objectId]).toEqual(["vector", ids[0]]);
    expect(meaning.hits[0]?.score).toBeGreaterThan(0.9);
    const words = await search(server.client, space, { query: "feline", mode: "fts" });
    expect(words).toMatchObject({ hits: [], mode: "fts", vectorStatus: "skipped" });
    expect(endpoint.authorization).toBe("Bearer sk-secret-of-the-test");
    expect(server.stderr()).not.toContain("sk-secret");
  });

  rule(
    "[SEARCH-2] require, exclude, scopes and objectId hold in mode vector, and before the list is cut",
    async () => {
      await using endpoint = startEmbeddingEndpoint(MEANINGS);
      await using server = await withEndpoint(endpoint);
      const { client } = server;
      const { space, ids } = await spaceWith(server, NAMES);
      const { typeId } = await createType(client, space);
      const name = uniqueName("cats");
      const draft = (dataset: string, scope: string): JsonObject => ({
        name: dataset,
        idRule: "user",
        search: { text: "body", scope },
        fields: [{ key: "body" }],
      });
      const rare = uniqueName("rare");
      for (const each of [draft(name, "many"), draft(rare, "rare")])
        await client.post(`/v1/spaces/${space}/types/${typeId}/datasets`, each, 201);
      const { id } = await createObject(client, space, { types: [typeId] });
      // A thousand texts that are nearer to the query than the one of the rare scope.
      for (let page = 0; page < 10; page++) {
        const records = Array.from({ length: 100 }, (_, i) => ({
          id: `r${page * 100 + i}`,
          fields: { body: `feline ${page * 100 + i}` },
        }));
        await client.post(`/v1/spaces/${space}/upsert`, { objectId: id, dataset: name, records }, 200);
      }
      const one = [{ id: "only", fields: { body: "a storm, and a cat" } }];
      await client.post(`/v1/spaces/${space}/upsert`, { objectId: id, dataset: rare, records: one }, 200);
      await searchByMeaning(server.client, space, { query: "kitten" });
      const find = async (body: JsonObject) =>
        (await search(client, space, { mode: "vector", limit: 3, ...body })).hits;
      expect((await find({ query: "kitten", scopes: ["rare"] })).map((hit) => hit.recordId)).toEqual(["only"]);
      expect((await find({ query: "kitten", mode: "hybrid", scopes: ["rare"] })).map((hit) => hit.recordId)).toEqual([
        "only",
      ]);
      expect((await find({ query: "kitten", require: ["storm"] })).every((hit) => hit.data.includes("storm"))).toBe(
        true,
      );
      expect((await find({ query: "kitten", objectId: ids[0]! })).map((hit) => hit.objectId)).toEqual([ids[0]!]);
      const excluded = await find({ query: "kitten", exclude: ["feline", "storm"] });
      expect(excluded[0]?.objectId).toBe(ids[0]!);
      expect(excluded.some((hit) => /feline|storm/.test(hit.data))).toBe(false);
    },
    60_000,
  );

  rule(
    "[SEARCH-6] a query as long as a page is embedded by its beginning alone: nobody waits for the rest",
    async () => {
      await using endpoint = startEmbeddingEndpoint(MEANINGS);
      await using server = await withEndpoint(endpoint);
      const { space, ids } = await spaceWith(server, NAMES);
      await searchByMeaning(server.client, space, { query: "feline" });
      const query = `feline ${"word ".repeat(1_900)}`;
      expect((await search(server.client, space, { query })).hits[0]?.objectId).toBe(ids[0]!);
      expect(endpoint.texts.at(-1)).toBe(query.slice(0, 1_000));
    },
  );

  rule("[SEARCH-1] what is deleted or changed is found by its meaning no more", async () => {
    await using endpoint = startEmbeddingEndpoint(MEANINGS);
    await using server = await withEndpoint(endpoint);
    const { space, ids } = await spaceWith(server, NAMES);
    await searchByMeaning(server.client, space, { query: "feline" });
    const first = async (query: string) =>
      (await search(server.client, space, { query, mode: "vector", limit: 1 })).hits[0];
    expect((await first("feline"))?.objectId).toBe(ids[0]!);
    await server.client.request("DELETE", `/v1/spaces/${space}/objects/${ids[0]}`);
    expect((await first("feline"))?.objectId).not.toBe(ids[0]!);
    const body = { patch: { name: "a tempest of a meeting" } };
    await server.client.request("POST", `/v1/spaces/${space}/properties/${ids[2]}/set/svc`, { body });
    expect((await first("loaf"))?.data).not.toBe("fresh bread");
    await searchByMeaning(server.client, space, { query: "storm" });
    const { hits } = await search(server.client, space, { query: "storm", mode: "vector", limit: 2 });
    expect(hits.map((hit) => hit.objectId).sort()).toEqual([ids[2]!, ids[3]!].sort());
  });

  rule(
    "[SEARCH-5] unchanged text is never embedded twice; an index that is deleted finds the same",
    async () => {
      await using endpoint = startEmbeddingEndpoint(MEANINGS);
      const first = await withEndpoint(endpoint);
      const { dataDir } = first;
      const { space, ids } = await spaceWith(first, NAMES);
      await searchByMeaning(first.client, space, { query: "feline bread" });
      await first.client.post(`/v1/spaces/${space}/objects`, named(NAMES[0]!), 201);
      await first.client.request("POST", `/v1/spaces/${space}/properties/${ids[1]}/set/svc`, {
        body: { patch: { icon: "x" } },
      });
      const before = (await searchByMeaning(first.client, space, { query: "feline bread" })).hits;
      expect(before).toHaveLength(5);
      const passages = endpoint.texts.filter((text) => NAMES.includes(text));
      expect(passages.sort()).toEqual([...NAMES].sort());
      await first.stop();

      endpoint.texts.length = 0;
      const again = await withEndpoint(endpoint, { dataDir });
      await searchByMeaning(again.client, space, { query: "feline bread" });
      expect(endpoint.texts.filter((text) => NAMES.includes(text))).toEqual([]);
      await again.stop();

      rmSync(indexDirectory(dataDir), { recursive: true });
      const rebuilt = await withEndpoint(endpoint, { dataDir });
      const after = (await searchByMeaning(rebuilt.client, space, { query: "feline bread" })).hits;
      expect(after).toEqual(before);
      await rebuilt.stop();

      // Another model: its vectors are others, so every text is embedded by it.
      endpoint.texts.length = 0;
      const other = await withEndpoint(endpoint, { dataDir, env: { SVC_INDEX_OPENAI_MODEL: "another" } });
      await searchByMeaning(other.client, space, { query: "feline bread" });
      expect(new Set(endpoint.texts.filter((text) => NAMES.includes(text)))).toEqual(new Set(NAMES));
      await other.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
    60_000,
  );
});

describe("an embedder that is away", () => {
  rule(
    "[SEARCH-6] hybrid goes on by words and says `unavailable`, vector is 503; both come back by themselves",
    async () => {
      await using endpoint = startEmbeddingEndpoint(MEANINGS);
      await using server = await withEndpoint(endpoint);
      const { space, ids } = await spaceWith(server, NAMES);
      await searchByMeaning(server.client, space, { query: "feline" });
      for (const fault of ["500", "401", "garbage"] as const) {
        endpoint.fault = fault;
        const { hits, mode, vectorStatus } = await search(server.client, space, { query: `bread ${fault}` });
        expect([fault, mode, vectorStatus]).toEqual([fault, "fts", "unavailable"]);
        expect(hits[0]?.objectId).toBe(ids[2]!);
        const refused = await server.client.request("POST", `/v1/spaces/${space}/search`, {
          body: { query: "x", mode: "vector" },
        });
        const { error } = refused.json as unknown as { error: ErrorBody };
        expect([refused.status, error.code]).toEqual([503, "index.embedder_unavailable"]);
      }
      // Written while it is away, embedded when it is back.
      await createObject(server.client, space, named("a kitten in the rain"));
      expect((await search(server.client, space, { query: "rain" })).hits).toHaveLength(1);
      endpoint.fault = "none";
      const back = await searchUntil(
        server.client,
        space,
        { query: "feline", mode: "hybrid" },
        (answer) => answer.vectorStatus === "used" && !answer.incomplete && answer.hits.length >= 2,
        40_000,
      );
      expect(
        back.hits
          .slice(0, 2)
          .map((hit) => hit.data)
          .sort(),
      ).toEqual(["a cat on the sofa", "a kitten in the rain"]);
      expect(server.stderr().match(/cannot be used/g)?.length).toBe(1);
    },
    60_000,
  );

  rule("[SEARCH-6] without an embedder hybrid says `disabled` and vector is 400 index.no_embedder", async () => {
    await using server = await startServer({ env: { SVC_INDEX_EMBEDDER: "auto" } });
    const { space } = await spaceWith(server, NAMES);
    expect((await search(server.client, space, { query: "bread" })).vectorStatus).toBe("disabled");
    const refused = await server.client.request("POST", `/v1/spaces/${space}/search`, {
      body: { query: "x", mode: "vector" },
    });
    expect((refused.json as unknown as { error: ErrorBody }).error.code).toBe("index.no_embedder");
  });
});
