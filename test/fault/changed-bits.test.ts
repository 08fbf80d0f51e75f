/**
 * Bits of a stopped server's database that the disk changed, in places that leave it a database: SQLite, which keeps no checksums,
 * gives them out as they are. The server notices, and makes anew what follows from changes.
 */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import type { SpaceDebug } from "../../src/protocol/sync.ts";
import {
  again,
  damagedRows,
  flipAt,
  flipIn,
  IN_ITS_ROW,
  IN_THE_INDEX,
  RECORDS,
  startChecking,
  stopped,
  storedValue,
  WORD,
} from "../support/hostile/changed-bits.ts";
import { rule } from "../support/rule.ts";
import { type Row, until } from "../support/server/client.ts";
import { type Collection, createObject, setFields } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

describe("a record's text", () => {
  const READS: { readonly [name: string]: (items: Collection) => Promise<readonly Row[]> } = {
    "by id": async (items) => (await items.query({ filter: { id: "r7" } })).records,
    "by a filter": async (items) => (await items.query({ filter: { n: 7 } })).records,
    "by a filter of what is damaged": async (items) => (await items.query({ filter: { s: `${WORD} 7.` } })).records,
    "in a page": async (items) =>
      (await items.query({ sort: ["-n"], limit: RECORDS })).records.filter(({ id }) => id === "r7"),
  };
  for (const [name, read] of Object.entries(READS))
    rule(`[STORE-3] a bit in it: it is read as it was, ${name}`, async () => {
      using harmed = await stopped();
      flipAt(harmed.path, `${WORD} 7.`, 3);
      await using server = await startServer({ dataDir: harmed.root });
      const items = again(harmed, server);
      expect(await read(items)).toEqual([harmed.rows.find(({ id }) => id === "r7")!]);
      expect(server.stderr()).toContain("damaged on the disk");
      expect(server.stderr()).toContain("r7");
      expect((await items.query({ sort: ["id"] })).records).toEqual([...harmed.rows]);
    });

  rule("[STORE-3] a bit that leaves it no JSON: it is read as it was", async () => {
    using harmed = await stopped();
    flipAt(harmed.path, `"s":"${WORD} 9.`, 3, 5);
    await using server = await startServer({ dataDir: harmed.root });
    const items = again(harmed, server);
    expect((await items.query({ filter: { s: { $regex: "9" } }, sort: ["n"] })).records.map(({ id }) => id)).toContain(
      "r9",
    );
    expect((await items.query({ sort: ["id"] })).records).toEqual([...harmed.rows]);
  });

  rule("[STORE-3] a write to it goes on from what it was", async () => {
    using harmed = await stopped();
    flipAt(harmed.path, `${WORD} 7.`, 3);
    await using server = await startServer({ dataDir: harmed.root });
    const items = again(harmed, server);
    await items.modify([setFields("r7", { n: 70 })]);
    expect(await items.find("r7")).toMatchObject({ s: `${WORD} 7.`, n: 70 });
  });

  rule("[STORE-3] an aggregate counts what it was", async () => {
    using harmed = await stopped();
    flipAt(harmed.path, `${WORD} 7.`, WORD.length + 1);
    await using server = await startServer({ dataDir: harmed.root });
    const { path, target } = again(harmed, server);
    const pipeline = [{ $group: { _id: "$s" } }];
    const reply = await server.client.request("POST", `${path}/aggregate`, { body: { ...target, pipeline } });
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining(`${WORD} 7.`)]);
  });
});

rule("[STORE-3] a bit in an object's row, or in what a type is, is made good as well", async () => {
  using harmed = await stopped((_, client) =>
    createObject(client, _.spaceId, { initialProperties: { svc: { name: "an object's name" } } }),
  );
  const path = harmed.items.path;
  const before = await readObjects();
  flipAt(harmed.path, "an object's name", 4);
  expect(await readObjects()).toEqual(before);

  async function readObjects(): Promise<unknown> {
    await using server = await startServer({ dataDir: harmed.root });
    const { records } = await server.client.post<{ records: unknown[] }>(`${path}/objects/query`, { sort: ["id"] });
    return records;
  }
});

rule(
  "[STORE-3] a row that says it was deleted, or of another position in the order, is made good by the next write",
  async () => {
    using harmed = await stopped();
    {
      using db = new Database(harmed.path);
      db.run("UPDATE rows SET state = 2 WHERE id = 'r4'");
      db.run("UPDATE rows SET lamport = lamport + 1024 WHERE id = 'r5'");
    }
    await using server = await startServer({ dataDir: harmed.root });
    const items = again(harmed, server);
    await items.modify([setFields("r4", { n: 40 }), setFields("r5", { n: 50 })]);
    expect(await items.find("r4")).toMatchObject({ s: `${WORD} 4.`, n: 40 });
    expect(await items.find("r5")).toMatchObject({ s: `${WORD} 5.`, n: 50 });
    expect(storedValue<number>(harmed.path, "SELECT live AS value FROM collections ORDER BY live DESC LIMIT 1")).toBe(
      RECORDS,
    );
  },
);

rule("[STORE-10] what was found is shown with what is known of the space, over a restart too", async () => {
  using harmed = await stopped();
  flipAt(harmed.path, `${WORD} 7.`, 3);
  const shown = async (server: RunningServer) =>
    (await server.client.get<SpaceDebug>(`${again(harmed, server).path}/debug`)).repairs;
  let before: SpaceDebug["repairs"];
  {
    await using server = await startServer({ dataDir: harmed.root });
    expect(await shown(server)).toEqual({ count: 0, latest: [] });
    await again(harmed, server).query({ filter: { id: "r7" } });
    before = await shown(server);
    const [latest] = before.latest;
    expect([before.count, before.latest.length, latest?.what, latest?.facts["recordId"]]).toEqual([
      1,
      1,
      "a record was damaged on the disk: it was made anew from its changes",
      "r7",
    ]);
    expect(latest?.at).toMatch(/^\d{4}-/);
    expect(await server.stop()).toBe(0);
  }
  await using server = await startServer({ dataDir: harmed.root });
  expect(await shown(server)).toEqual(before);
});

describe("what nobody reads", () => {
  rule("[STORE-3] records are found and made anew, whatever of their rows was changed", async () => {
    using harmed = await stopped();
    flipAt(harmed.path, `${WORD} 7.`, 3);
    expect(flipIn(harmed.path, "r18", IN_ITS_ROW)).toBe(1); // the row says r19, of which there is another
    {
      using db = new Database(harmed.path);
      const changes = ["state = 2", "lamport = lamport + 1", "ops = ops + 1", "change = zeroblob(32)"];
      for (const [index, change] of changes.entries()) db.run(`UPDATE rows SET ${change} WHERE id = 'r${11 + index}'`);
    }
    const fields = "id, doc, state, lamport, change, ops";
    await using server = await startChecking(harmed.root);
    await until(() => server.stderr().split("made anew from its changes").length > 6, "the repairs");
    expect(damagedRows(harmed.path)).toEqual([]);
    using db = new Database(harmed.path, { readonly: true });
    for (const row of db
      .query<{ state: number; ops: number; lamport: number }, []>(`SELECT ${fields} FROM rows WHERE id LIKE 'r%'`)
      .all())
      expect(row).toMatchObject({ state: 1, ops: 1 });
    expect((await again(harmed, server).query({ sort: ["id"] })).records).toEqual([...harmed.rows]);
  });

  rule(
    "[STORE-3] keys that queries search by and counts are in step again",
    async () => {
      using harmed = await stopped(async (items, _, path) => {
        await items.upsert(Array.from({ length: 2_500 }, (_, n) => ({ id: `k${n}`, fields: { n, s: `key ${n}` } })));
        for (let i = 0; i < 4; i++) await items.query({ filter: { n: 17 } });
        await until(
          async () => (await items.query({ filter: { s: "key 3" } })) && storedValue<number>(path, KEYS) > 2_000,
          "an index",
          20_000,
        );
      });
      {
        using db = new Database(harmed.path);
        db.run("UPDATE query_keys SET key = key + 0.5 WHERE rid = 'k40'");
        db.run("UPDATE collections SET live = live + 64 WHERE live > 2000");
      }
      await using server = await startChecking(harmed.root);
      const items = again(harmed, server);
      await until(() => server.stderr().includes("keys that queries search by"), "the keys", 30_000);
      expect((await items.query({ filter: { n: 40 } })).records.map(({ id }) => id)).toEqual(["k40"]);
      await until(
        async () => (await items.query({ includeTotal: true, limit: 1 })).total === 2_500 + RECORDS,
        "the count",
        30_000,
      );
    },
    90_000,
  );

  rule("[STORE-3] links are those of the objects' texts again", async () => {
    let target = "";
    using harmed = await stopped(async (items, client) => {
      target = (await createObject(client, items.spaceId)).id;
      const property = { name: "refs", format: { type: "links" } };
      const { id } = await client.post<{ id: string }>(`${items.path}/types/${items.typeId}/properties`, property, 201);
      const values = { [`${items.typeId}.${id}`]: [`svc://${target}`] };
      const records = [setFields(items.objectId, values, false)];
      await client.post(`${items.path}/modify`, { objectId: items.objectId, dataset: "objects", records });
    });
    const sql = `SELECT count(*) AS value FROM links WHERE target = '${target}'`;
    expect(storedValue<number>(harmed.path, sql)).toBe(1);
    {
      using db = new Database(harmed.path);
      db.run("UPDATE links SET target = replace(target, 'a', 'c')");
    }
    await using server = await startChecking(harmed.root);
    await until(() => server.stderr().includes("links of an object"), "the links");
    expect(storedValue<number>(harmed.path, sql)).toBe(1);
  });

  rule("[STORE-3] an index of SQLite's own that leads to another row is not followed", async () => {
    using harmed = await stopped();
    expect(flipIn(harmed.path, "r16", IN_THE_INDEX)).toBe(1); // it says r17 there
    await using server = await startServer({ dataDir: harmed.root });
    const items = again(harmed, server);
    await items.modify([setFields("r17", { n: 170 }), setFields("r16", { n: 160 })]);
    expect(await items.find("r16")).toMatchObject({ s: `${WORD} 16.`, n: 160 });
    expect(await items.find("r17")).toMatchObject({ s: `${WORD} 17.`, n: 170 });
  });

  rule(
    "[STORE-3] an index of SQLite's own that leads nowhere is made anew, and what was written meanwhile is one record",
    async () => {
      using harmed = await stopped();
      expect(flipIn(harmed.path, "r17", IN_THE_INDEX)).toBe(1);
      {
        await using server = await startServer({ dataDir: harmed.root });
        await again(harmed, server).modify([setFields("r17", { n: 170 })]);
        expect(await server.stop()).toBe(0);
      }
      await using server = await startChecking(harmed.root);
      const items = again(harmed, server);
      await until(async () => (await items.find("r17"))?.["s"] === `${WORD} 17.`, "the record");
      expect(await items.find("r17")).toMatchObject({ n: 170 });
      expect((await items.query({ includeTotal: true })).total).toBe(RECORDS);
      using db = new Database(harmed.path, { readonly: true });
      expect(db.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    },
  );
});

const KEYS = "SELECT count(*) AS value FROM query_keys WHERE idx IN (SELECT no FROM query_indexes WHERE state = 1)";
