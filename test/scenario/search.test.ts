/** Search by words (SEARCH-1, SEARCH-2): what is found where, what is refused, what is gone. */

import { Database } from "bun:sqlite";
import { beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  foundBy,
  indexDirectory,
  type SearchAnswer,
  search,
  searchUntil,
  searchWhole,
} from "../support/models/search.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Client, ErrorBody, JsonObject } from "../support/server/client.ts";
import { createObject, createSpace, createType, uniqueName } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const shared = useServer();

describe("what is found", () => {
  let space: string;
  let page: string;
  let chat: string;
  /** Once all that was written is indexed. */
  const find = (body: JsonObject): Promise<SearchAnswer> => searchWhole(shared.client, space, body);
  /** At once, whatever is indexed. */
  const findNow = (body: JsonObject): Promise<SearchAnswer> => search(shared.client, space, body);

  beforeAll(async () => {
    const { client } = shared;
    space = (await createSpace(client)).id;
    page = (
      await createObject(client, space, {
        types: ["page"],
        initialProperties: { svc: { name: "Quarterly planning", description: "Budget of the observatory" } },
      })
    ).id;
    const content = `# Telescopes\n\nMirrors are polished at night.\n\n## Domes\n\n${"The dome turns slowly. ".repeat(90)}\n\n## Staff\n\nNobody sleeps.`;
    await client.request("PUT", `/v1/spaces/${space}/objects/${page}/editor/markdown`, { body: { content } });
    chat = (await createObject(client, space, { types: ["chat"] })).id;
    await client.post(
      `/v1/spaces/${space}/objects/${chat}/chat/messages`,
      { text: "The comet is visible 🎉 now" },
      201,
    );
  });

  rule("[SEARCH-1] names and descriptions are found as `prop` in scope basic, highlighted in code points", async () => {
    const { hits, mode, vectorStatus } = await find({ query: "budget" });
    expect({ mode, vectorStatus }).toEqual({ mode: "fts", vectorStatus: "disabled" });
    expect(hits).toEqual([
      {
        scope: "basic",
        objectId: page,
        dataset: "prop",
        recordId: "description",
        data: "Budget of the observatory",
        dataTotal: 25,
        score: expect.any(Number),
        foundBy: ["fts"],
        highlights: [[0, 6]],
      },
    ]);
  });

  rule("[SEARCH-1] a document is found in windows that begin at headings and repeat them", async () => {
    const { hits } = await find({ query: "dome", maxData: -1 });
    expect(hits.length).toBeGreaterThan(1);
    for (const hit of hits) {
      expect(hit).toMatchObject({ scope: "basic", objectId: page, dataset: "editor_blocks" });
      expect(hit.recordId).toStartWith("win_");
      expect(hit.data).toStartWith("Domes\n");
      for (const [start, end] of hit.highlights)
        expect([...hit.data].slice(start, end).join("").toLowerCase()).toStartWith("dome");
    }
    expect(hits.map((hit) => hit.chunk ?? 0).sort()).toEqual([0, 1]);
  });

  rule(
    "[SEARCH-4] maxData shows so many code points around what was found; dataOffset and dataTotal say of what",
    async () => {
      const [whole] = (await find({ query: "comet", maxData: -1 })).hits;
      const [part] = (await find({ query: "visible", maxData: 12 })).hits;
      expect(whole?.dataTotal).toBe([...whole!.data].length);
      expect([...part!.data]).toHaveLength(12);
      expect([...whole!.data].slice(part!.dataOffset ?? 0, (part!.dataOffset ?? 0) + 12).join("")).toBe(part!.data);
      const [[start, end]] = part!.highlights as [[number, number]];
      expect([...part!.data].slice(start, end).join("")).toBe("visible");
    },
  );

  rule("[SEARCH-1] messages of chats are found in scope chat, emoji too", async () => {
    expect((await find({ query: "🎉" })).hits.map(foundBy)).toEqual([["chat", "chat_messages"]]);
    expect((await find({ query: "comet", scopes: ["basic"] })).hits).toEqual([]);
    expect((await find({ query: "comet", scopes: ["basic", "chat"] })).hits).toHaveLength(1);
  });

  rule("[SEARCH-2] objectId and dataset narrow; require is in every hit, exclude in none", async () => {
    expect((await find({ query: "comet", objectId: page })).hits).toEqual([]);
    expect((await find({ query: "comet", objectId: chat })).hits).toHaveLength(1);
    expect((await find({ query: "dome observatory", dataset: "prop" })).hits.map((hit) => hit.recordId)).toEqual([
      "description",
    ]);
    const either = await find({ query: "mirrors comet" });
    expect(either.hits).toHaveLength(2);
    expect((await find({ query: "mirrors comet", require: ["polishing"] })).hits.map(foundBy)).toEqual([
      ["basic", "editor_blocks"],
    ]);
    expect((await find({ query: "mirrors comet", exclude: ["polished at night"] })).hits.map(foundBy)).toEqual([
      ["chat", "chat_messages"],
    ]);
    expect((await find({ query: "", require: ["comet", "visib*"] })).hits).toHaveLength(1);
  });

  rule("[SEARCH-1] values of properties are found in scope props as `<name>: <value>`, booleans are not", async () => {
    const { client } = shared;
    const { typeId } = await createType(client, space);
    const base = `/v1/spaces/${space}/types/${typeId}/properties`;
    const add = async (body: JsonObject) => (await client.post<{ propId: string }>(base, body, 201)).propId;
    const colour = await add({ name: "Colour", kind: "string" });
    const parts = await add({ name: "Parts", kind: "array" });
    const stage = await add({
      name: "Stage",
      format: { type: "select", options: { k1: { name: "Assembled" } } },
    });
    const done = await add({ name: "Finished", kind: "boolean" });
    const secret = await add({ name: "Hidden", kind: "string", meta: { index: "none" } });
    const own = await add({ name: "Serial", kind: "string", meta: { index: "serials" } });
    const { id } = await createObject(client, space, {
      types: [typeId],
      initialProperties: {
        [typeId]: {
          [colour]: "vermilion",
          [parts]: ["rotor", "stator"],
          [stage]: "k1",
          [done]: true,
          [secret]: "vault",
          [own]: "sn778",
        },
      },
    });
    const found = async (query: string) =>
      (await find({ query })).hits
        .filter((hit) => hit.objectId === id)
        .map(({ scope, recordId, data }) => [scope, recordId, data]);
    expect(await found("vermilion")).toEqual([["props", colour, "Colour: vermilion"]]);
    expect(await found("stator")).toEqual([["props", parts, "Parts: rotor, stator"]]);
    expect(await found("assembled")).toEqual([["props", stage, "Stage: Assembled"]]);
    expect(await found("finished")).toEqual([]);
    expect(await found("vault")).toEqual([]);
    expect(await found("sn778")).toEqual([["serials", own, "Serial: sn778"]]);

    // What is declared later applies to what was written before.
    await client.request("PATCH", `${base}/${colour}`, { body: { set: { name: "Paint" } } });
    await searchUntil(client, space, { query: "paint" }, ({ hits }) =>
      hits.some((hit) => hit.data === "Paint: vermilion"),
    );
    await client.request("PATCH", `${base}/${colour}`, { body: { set: { "meta.index": "none" } } });
    await searchUntil(client, space, { query: "vermilion" }, ({ hits }) => hits.length === 0);
  });

  rule("[SEARCH-1] records of a dataset are found as its declaration says, in the scope it names", async () => {
    const { client } = shared;
    const { typeId } = await createType(client, space);
    const name = uniqueName("notes");
    const draft = {
      name,
      idRule: "user",
      search: { title: "headline", text: ["body", "labels"], scope: "journal" },
      fields: [
        { key: "headline", mutableBy: "any" },
        { key: "body", mutableBy: "any" },
        { key: "labels", kind: "array", mutableBy: "any" },
        { key: "private", mutableBy: "any" },
      ],
    };
    const { datasetDefId } = await client.post<{ datasetDefId: string }>(
      `/v1/spaces/${space}/types/${typeId}/datasets`,
      draft,
      201,
    );
    const { id } = await createObject(client, space, { types: [typeId] });
    const fields = { headline: "Harbour", body: "Ships wait ".repeat(400), labels: ["fog"], private: "unseen" };
    await client.post(
      `/v1/spaces/${space}/upsert`,
      { objectId: id, dataset: name, records: [{ id: "r1", fields }] },
      200,
    );
    const { hits } = await find({ query: "ships", scopes: ["journal"], maxData: 20 });
    expect(hits.length).toBeGreaterThan(1);
    const titles = (await find({ query: "harbour", scopes: ["journal"], maxData: -1 })).hits;
    expect(titles.every((hit) => hit.data.startsWith("Harbour\n"))).toBe(true);
    expect((await find({ query: "fog" })).hits.map(foundBy)).toEqual([["journal", name]]);
    expect((await find({ query: "unseen" })).hits).toEqual([]);

    await client.request("PATCH", `/v1/spaces/${space}/types/${typeId}/datasets/${datasetDefId}`, {
      body: { set: { "search.scope": "log" } },
    });
    await searchUntil(client, space, { query: "fog", scopes: ["log"] }, (answer) => answer.hits.length === 1);
    expect((await find({ query: "fog", scopes: ["journal"] })).hits).toEqual([]);
  });

  rule("[SEARCH-4] rows of types are not found; limit is 10 unless said, 100 at most", async () => {
    const { client } = shared;
    await createType(client, space, "zymurgytype");
    expect((await find({ query: "zymurgytype" })).hits).toEqual([]);
    const many = (await createSpace(client)).id;
    for (let i = 0; i < 12; i++)
      await createObject(client, many, { initialProperties: { svc: { name: `walrus ${i}` } } });
    expect((await searchWhole(client, many, { query: "walrus" })).hits).toHaveLength(10);
    expect((await searchWhole(client, many, { query: "walrus", limit: 100 })).hits).toHaveLength(12);
  });

  rule("[SEARCH-1] what is written is found by the next search, what is changed or deleted no more", async () => {
    const { client } = shared;
    const { id } = await createObject(client, space, { initialProperties: { svc: { name: "Ephemeral axolotl" } } });
    expect((await find({ query: "axolotl" })).hits).toHaveLength(1);
    await client.request("POST", `/v1/spaces/${space}/properties/${id}/set/svc`, {
      body: { patch: { name: "Lasting newt" } },
    });
    expect((await findNow({ query: "axolotl" })).hits).toEqual([]);
    expect((await find({ query: "newt" })).hits).toHaveLength(1);
    const sent = await client.post<{ recordIds: string[] }>(
      `/v1/spaces/${space}/objects/${chat}/chat/messages`,
      { text: "a pangolin crossed" },
      201,
    );
    expect((await find({ query: "pangolin" })).hits).toHaveLength(1);
    await client.request("DELETE", `/v1/spaces/${space}/objects/${chat}/chat/messages/${sent.recordIds[0]}`);
    expect((await findNow({ query: "pangolin" })).hits).toEqual([]);
    await client.request("DELETE", `/v1/spaces/${space}/objects/${id}`);
    expect((await findNow({ query: "newt" })).hits).toEqual([]);
  });

  rule("[SEARCH-2] any text is a query: an answer, or a clear 400", async () => {
    const texts = [
      "",
      '"',
      "AND",
      "NEAR(a b)",
      "*",
      "a\u0000b",
      "col:x -y +z",
      "x".repeat(10_000),
      "{",
      "^",
      "'; --",
      "🎉🎉",
    ];
    for (const query of texts) {
      const reply = await shared.client.request("POST", `/v1/spaces/${space}/search`, { body: { query } });
      expect([query.slice(0, 20), reply.status]).toEqual([query.slice(0, 20), 200]);
    }
    const words = Array.from({ length: 300 }, (_, i) => `w${i}`).join(" ");
    expect(await refusal(shared.client, space, { query: words })).toEqual([400, "search.too_complex", 256]);
    const phrases = Array.from({ length: 60 }, (_, i) => `"${`p${i} `.repeat(20)}"`).join(" ");
    expect(await refusal(shared.client, space, { query: phrases })).toEqual([400, "search.too_complex", 1_024]);
  });
});

async function refusal(client: Client, space: string, body: JsonObject): Promise<[number, string, unknown]> {
  const reply = await client.request("POST", `/v1/spaces/${space}/search`, { body });
  const { error } = reply.json as unknown as { error: ErrorBody };
  const details = error.details ?? {};
  return [
    reply.status,
    error.code,
    details["field"] ?? details["scope"] ?? details["mode"] ?? details["limit"] ?? details["fields"],
  ];
}

describe("what is refused", () => {
  rule("[SEARCH-4] each fault has its code", async () => {
    const { client } = shared;
    const { id } = await createSpace(client);
    const refused = (body: JsonObject) => refusal(client, id, body);
    expect(await refused({})).toEqual([400, "request.missing_field", "query"]);
    expect(await refused({ query: "x", limit: 101 })).toEqual([400, "request.invalid_field", "limit"]);
    expect(await refused({ query: "x", limit: 0 })).toEqual([400, "request.invalid_field", "limit"]);
    expect(await refused({ query: "x", maxData: -2 })).toEqual([400, "request.invalid_field", "maxData"]);
    expect(await refused({ query: "x".repeat(10_001) })).toEqual([400, "request.invalid_field", "query"]);
    expect(await refused({ query: "x", mode: "magic" })).toEqual([400, "search.bad_mode", "magic"]);
    expect(await refused({ query: "x", scopes: ["Basic"] })).toEqual([400, "search.bad_scope", "Basic"]);
    expect(await refused({ query: "x", scopes: ["a".repeat(65)] })).toEqual([400, "search.bad_scope", "a".repeat(65)]);
    expect(await refused({ query: "x", fuzzy: true })).toEqual([400, "request.unknown_field", ["fuzzy"]]);
    expect((await refused({ query: 5 }))[1]).toBe("request.schema");
    expect(await refused({ query: "x", mode: "vector" })).toEqual([400, "index.no_embedder", undefined]);
    expect((await refusal(client, "bafyreidoesnotexist", { query: "x" })).slice(0, 2)).toEqual([
      404,
      "space.not_found",
    ]);
    expect((await search(client, id, { query: "x", mode: "fts" })).vectorStatus).toBe("skipped");
  });

  rule("[SEARCH-4] switched off it is 409, and no index is made", async () => {
    await using server = await startServer({ env: { SVC_INDEX_ENABLED: "false" } });
    const { id } = await createSpace(server.client);
    expect(await refusal(server.client, id, { query: "x" })).toEqual([409, "index.disabled", undefined]);
    expect(existsSync(indexDirectory(server.dataDir))).toBe(false);
  });
});

describe("the index is made anew", () => {
  const NAMES = ["alpha otter", "beta otter", "gamma otter otter", "delta seal", "otter seal", "epsilon"];

  rule(
    "[SEARCH-5] deleted, damaged or of another version: the same hits in the same order, and the log says why",
    async () => {
      const first = await startServer({});
      const { dataDir } = first;
      const space = (await createSpace(first.client)).id;
      for (const name of NAMES) await createObject(first.client, space, { initialProperties: { svc: { name } } });
      const before = (await searchWhole(first.client, space, { query: "otter seal" })).hits;
      expect(before).toHaveLength(5);
      await first.stop();
      const dir = indexDirectory(dataDir);
      const file = join(dir, `${space}.db`);
      const spoil: [string, () => void, string | undefined][] = [
        ["deleted", () => rmSync(dir, { recursive: true }), undefined],
        [
          "no database",
          () => writeFileSync(file, "not a database, only text that is long enough".repeat(99)),
          "damaged",
        ],
        ["torn", () => writeFileSync(file, readFileSync(file).fill(0x5a, 4096, 40_000)), "damaged"],
        ["of another schema", () => change(file, "UPDATE meta SET value = '0' WHERE key = 'schema'"), "version"],
        ["cut otherwise", () => change(file, "UPDATE meta SET value = 'x' WHERE key = 'fingerprint'"), "cuts"],
        ["of another space", () => change(file, "UPDATE meta SET value = 'x' WHERE key = 'source'"), "other space"],
      ];
      for (const [what, break_, reason] of spoil) {
        break_();
        const server = await startServer({ dataDir });
        const { hits } = await searchUntil(
          server.client,
          space,
          { query: "otter seal" },
          (answer) => !answer.incomplete,
        );
        expect([what, hits]).toEqual([what, before]);
        if (reason !== undefined)
          expect(server.stderr()).toMatch(new RegExp(`made anew.*${reason}|${reason}.*made anew`));
        await server.stop();
      }
      rmSync(dataDir, { recursive: true, force: true });
    },
  );

  rule(
    "[SEARCH-5] an index that another program has locked is not thrown away, and answers from what it has",
    async () => {
      const first = await startServer({});
      const { dataDir } = first;
      const space = (await createSpace(first.client)).id;
      await createObject(first.client, space, { initialProperties: { svc: { name: "otter" } } });
      await searchWhole(first.client, space, { query: "otter" });
      await first.stop();
      const file = join(indexDirectory(dataDir), `${space}.db`);
      change(file, "INSERT INTO meta(key, value) VALUES('witness', 'here')");
      const lock = new Database(file);
      lock.exec("BEGIN IMMEDIATE");
      const server = await startServer({ dataDir });
      await createObject(server.client, space, { initialProperties: { svc: { name: "otter two" } } });
      const locked = await search(server.client, space, { query: "otter" });
      expect([locked.hits.length, locked.incomplete]).toEqual([1, true]);
      lock.exec("ROLLBACK");
      await searchUntil(server.client, space, { query: "otter" }, ({ hits }) => hits.length === 2);
      expect(lock.query("SELECT value FROM meta WHERE key = 'witness'").get()).toEqual({ value: "here" });
      lock.close();
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
    30_000,
  );
});

/** Changes an index behind the server's back. */
function change(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.close();
}
