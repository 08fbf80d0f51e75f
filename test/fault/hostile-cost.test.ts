/** Requests that take long on a single text: they are left to a reader, and nobody else waits for them. */
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ErrorBody } from "../../src/protocol/errors.ts";
import { indexDirectory, search, searchUntil, searchWhole } from "../support/models/search.ts";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace, named } from "../support/server/fixtures.ts";

/** A text on which an automaton for such a pattern has a state of its own at nearly every character. */
const dearText = (): string => Array.from(randomBytes(TEXT_CHARS), (byte) => "ab"[byte & 1]).join("");
/** So many take a reader about a second, in which far more small requests can be answered than are sent. */
const TEXT_CHARS = 400_000;

let texts: Collection;
const shared = useServer({}, async ({ client }) => {
  texts = await createCollection(client, (await createSpace(client)).id, { dynamic: true });
  await texts.upsert([{ id: "long", fields: { s: `${dearText()}d` } }]);
});

const DEAR: Record<string, { path: string; body: JsonObject }> = {
  query: { path: "query", body: { filter: { s: { $regex: "a[ab]{250}d" } } } },
  count: { path: "query", body: { filter: { s: { $regex: "a[ab]{250}d" } }, limit: 1, includeTotal: true } },
  "pipeline's $match": { path: "aggregate", body: { pipeline: [{ $match: { s: { $regex: "a[ab]{250}d" } } }] } },
  "$match behind another stage": {
    path: "aggregate",
    body: { pipeline: [{ $addFields: { t: "$s" } }, { $match: { t: { $regex: "a[ab]{250}d" } } }] },
  },
  "pipeline of many trims": {
    path: "aggregate",
    body: {
      pipeline: [{ $project: { t: Array.from({ length: 100 }, () => ({ $strLenCP: { $trim: { input: "$s" } } })) } }],
    },
  },
  "pipeline of texts that double": {
    path: "aggregate",
    body: {
      pipeline: [
        ...Array.from({ length: 3 }, () => ({ $addFields: { s: { $concat: ["$s", "$s"] } } })),
        { $project: { t: Array.from({ length: 8 }, () => ({ $strLenCP: { $trim: { input: "$s" } } })) } },
      ],
    },
  },
};
for (const [what, { path, body }] of Object.entries(DEAR)) {
  rule(
    `[INDEX-5] a ${what} that takes long on one text holds nobody up: who asks later is answered first`,
    async () => {
      const ended: string[] = [];
      const asked = shared.client
        .request("POST", `${texts.path}/${path}`, { body: { ...texts.target, ...body }, timeoutMs: 60_000 })
        .then((reply) => {
          ended.push("dear");
          return reply;
        });
      for (let round = 0; round < 5; round++) {
        await shared.client.get("/v1/health");
        ended.push("health");
      }
      expect(ended).toEqual(Array(5).fill("health"));
      expect((await asked).status).toBe(200);
    },
    60_000,
  );
}

rule(
  "[SEARCH-7] a search of texts that were made to take long is ended, and whoever searches elsewhere meanwhile is answered first",
  async () => {
    const { client } = shared;
    const hostile = (await createSpace(client)).id;
    const calm = (await createSpace(client)).id;
    await createObject(client, calm, named("The comet is visible"));
    const gone = (await createSpace(client)).id;
    await createObject(client, gone, named("A comet that is deleted"));
    await searchWhole(client, gone, { query: "comet" });
    const index = join(indexDirectory(shared.server.dataDir), `${gone}.db`);
    expect(existsSync(index)).toBe(true);
    for (let round = 0; round < 16; round++) {
      const { id } = await createObject(client, hostile, { types: ["page"] });
      const path = `/v1/spaces/${hostile}/objects/${id}/editor/markdown`;
      const { status } = await client.request("PUT", path, {
        body: { content: `${"a ".repeat(400)}b `.repeat(1_000) },
      });
      expect(status).toBe(200);
    }
    await searchUntil(client, hostile, { query: "nowhere" }, ({ incomplete }) => !incomplete, 120_000);
    // None of the phrases is anywhere, and each text has to be gone through to find that out.
    const exclude = Array.from({ length: 30 }, (_, i) => `${"a ".repeat(i + 1)}b ${"a ".repeat(30 - i)}`);
    const ended: string[] = [];
    const dear = Array.from({ length: 2 }, () =>
      client
        .request("POST", `/v1/spaces/${hostile}/search`, {
          body: { query: "a", exclude },
          timeoutMs: 60_000,
        })
        .finally(() => ended.push("dear")),
    );
    const found = await search(client, calm, { query: "comet" });
    ended.push("calm");
    expect(found.hits).toHaveLength(1);
    // What others ask of that process is not lost with it.
    await client.del(`/v1/spaces/${gone}`);
    // Whoever waits has the other one ended sooner, too.
    expect((await search(client, calm, { query: "comet" })).hits).toHaveLength(1);
    const replies = await Promise.all(dear);
    expect(replies.map(({ status, json }) => [status, (json as unknown as ErrorBody).error.code])).toEqual([
      [503, "server.unavailable"],
      [503, "server.unavailable"],
    ]);
    // One of the two may have been under way already; the other had to wait for the other space's turn.
    expect(ended.at(-1)).toBe("dear");
    expect((await searchWhole(client, calm, { query: "comet" })).hits).toHaveLength(1);
    expect((await searchWhole(client, hostile, { query: "a", limit: 1 })).hits).toHaveLength(1);
    await until(() => !existsSync(index), "the index of a deleted space is gone", 20_000);
  },
  240_000,
);
