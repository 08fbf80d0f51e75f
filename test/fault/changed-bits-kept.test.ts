/**
 * Changed bits in what is kept beside records: checkpoints, fields of this device, changes and records of rights themselves, the
 * search index.
 */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { changeIdOf } from "../../src/change/codec/change-stub.ts";
import { again, flipAt, startChecking, stopped, storedValue, WORD } from "../support/hostile/changed-bits.ts";
import { indexDirectory, searchWhole } from "../support/models/search.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { rowsOf, setName, shareObject, startDevice, untilSynced } from "../support/server/devices.ts";
import { createObject, setFields } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

rule("[STORE-3] a checkpoint is done without, and a version is what it was", async () => {
  let version = "";
  using harmed = await stopped(async (items) => {
    await items.modify([setFields("r0", { s: "as it was at the checkpoint" })]);
    const ops = Array.from({ length: 260 }, (_, n) => ({ type: "$set", path: "n", value: n }));
    version = (await items.modify([{ id: "r0", ops }])).versionId;
    await items.modify([setFields("r0", { s: "as it is now" })]);
  });
  flipAt(harmed.path, "as it was at the checkpoint", 3);
  const { path, objectId, dataset } = harmed.items;
  const view = `${path}/objects/${objectId}/history/${version}/datasets/${dataset}/records/r0`;
  {
    await using server = await startServer({ dataDir: harmed.root });
    expect(await server.client.get<JsonObject>(view)).toMatchObject({
      record: { s: "as it was at the checkpoint", n: 259 },
    });
    expect(await server.stop()).toBe(0);
  }
});

rule("[STORE-3] fields that only this device has are kept, whichever of their two copies was changed", async () => {
  using harmed = await stopped(async (items) => {
    for (const id of ["r3", "r5"])
      await items.modify([{ id, ops: [{ type: "$set", path: "mark", value: `only here, ${id}` }] }], {
        scope: "local",
      });
  });
  flipAt(harmed.path, '{"mark":"only here, r3"', 12);
  flipAt(harmed.path, ',"mark":"only here, r5"', 12);
  await using server = await startServer({ dataDir: harmed.root });
  const items = again(harmed, server);
  await items.modify([setFields("r3", { n: 30 }), setFields("r5", { n: 50 })]);
  expect(await items.find("r3")).toMatchObject({ mark: "only here, r3", n: 30, s: `${WORD} 3.` });
  expect(await items.find("r5")).toMatchObject({ mark: "only here, r5", n: 50, s: `${WORD} 5.` });
});

/** Changes a bit in the middle of the newest change of a collection, and answers its number. */
function flipChange(path: string): { no: number; id: Uint8Array } {
  using db = new Database(path, { readonly: true });
  const change = db
    .query<{ no: number; id: Uint8Array; bytes: Uint8Array }, []>(
      "SELECT no, id, bytes FROM changes WHERE kind = 1 AND length(bytes) < 2000 ORDER BY no DESC LIMIT 1",
    )
    .get()!;
  flipAt(path, change.bytes, 40);
  return change;
}

const bytesOf = (path: string, no: number): Uint8Array =>
  storedValue(path, `SELECT bytes AS value FROM changes WHERE no = ${no}`);

rule("[STORE-3] a change that nobody else has is named, missed and given to nobody; its record stays", async () => {
  using harmed = await stopped();
  const { no } = flipChange(harmed.path);
  await using server = await startChecking(harmed.root);
  await until(() => server.stderr().includes("a change was damaged on the disk"), "the change");
  expect(bytesOf(harmed.path, no).length).toBe(0);
  const items = again(harmed, server);
  expect((await items.query({ sort: ["id"] })).records).toEqual([...harmed.rows]);
  expect(JSON.stringify(await server.client.get<JsonObject>(`${items.path}/debug`))).toContain('"change.damaged"');
  await items.modify([setFields("r1", { n: 100 })]);
  expect(await items.find("r1")).toMatchObject({ n: 100, s: `${WORD} 1.` });
});

rule(
  "[STORE-3] a change that others have is asked for again, and what was made of it stays what it was",
  async () => {
    using root = scratchDir("svc-again");
    await using owner = await startDevice({ lan: true });
    let member = await startDevice({ lan: true, dataDir: root.path });
    try {
      const { id, objectId } = await shareObject(owner, member);
      await setName(owner, id, objectId, "said before the disk failed");
      await until(async () => (await rowsOf(member, id)).includes("said before"), "the name", 45_000);
      await untilSynced(member, id);
      const before = await rowsOf(member, id);
      const path = `${root.path}/${member.accountId}/sdk/${id}.db`;
      expect(await member.server.stop()).toBe(0);
      const change = flipChange(path);

      member = await startDevice({ lan: true, dataDir: root.path, env: { SVC_STORAGE_CHECK_INTERVAL: "200ms" } });
      await until(() => member.server.stderr().includes("a change was damaged on the disk"), "the change");
      await until(() => Buffer.from(changeIdOf(bytesOf(path, change.no))).equals(change.id), "its bytes", 45_000);
      await untilSynced(member, id);
      expect(await rowsOf(member, id)).toBe(before);
    } finally {
      await member.server.stop();
    }
  },
  180_000,
);

rule("[STORE-3] a text, or a word, of the search index that is not what it was: the index is made anew", async () => {
  using harmed = await stopped(async (items, client) => {
    for (const word of ["quibble", "zanzibar"])
      await createObject(client, items.spaceId, { initialProperties: { svc: { name: `the ${word} of it` } } });
    await searchWhole(client, items.spaceId, { query: "quibble", mode: "fts" });
  });
  const { spaceId } = harmed.items;
  const index = `${indexDirectory(harmed.root)}/${spaceId}.db`;
  const hitsOf = async (server: { client: Parameters<typeof searchWhole>[0] }, query: string) =>
    (await searchWhole(server.client, spaceId, { query, mode: "fts" })).hits.map(({ data }) => data);
  flipAt(index, "the quibble of it", 6);
  {
    await using server = await startServer({ dataDir: harmed.root });
    expect(await hitsOf(server, "quibble")).toEqual(["the quibble of it"]);
    expect(server.stderr()).toContain("the search index is damaged: it is made anew");
    expect(await server.stop()).toBe(0);
  }
  // Beside its text, the word lies among the words.
  flipWords(index, "zanzibar");
  await using server = await startChecking(harmed.root);
  await until(() => server.stderr().includes("the search index is damaged: it is made anew"), "the index", 30_000);
  await until(async () => (await hitsOf(server, "zanzibar")).length === 1, "the word", 30_000);
});

/** Changes the last letter of a word in the pages of FTS5, and not in the text. */
function flipWords(index: string, word: string): void {
  const bytes = readFileSync(index);
  let found = 0;
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1)) {
    if (bytes[at - 1] === 0x20) continue;
    bytes[at + word.length - 1]! ^= 1;
    found++;
  }
  expect(found).toBeGreaterThan(0);
  writeFileSync(index, bytes);
}

rule("[STORE-3] a record of rights is written again from memory", async () => {
  using harmed = await stopped();
  await using server = await startChecking(harmed.root);
  const sql = "SELECT hex(bytes) AS value FROM acl_records WHERE pos = 0";
  const before = storedValue<string>(harmed.path, sql);
  await again(harmed, server).query(); // it is open, and what the log says was read
  using db = new Database(harmed.path);
  db.run("UPDATE acl_records SET bytes = substr(bytes, 1, 40) || x'00' || substr(bytes, 42) WHERE pos = 0");
  await until(() => server.stderr().includes("a record of rights was damaged"), "the record");
  expect(storedValue<string>(harmed.path, sql)).toBe(before);
});
