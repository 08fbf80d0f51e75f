/** What is left in the files of an account after an object was deleted. */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readUint64, writeUint64 } from "../../src/base/bytes.ts";
import { decodeChange, isDerivedRoot } from "../../src/change/codec/change-codec.ts";
import { filesBelow } from "../support/files-below.ts";
import { indexDirectory, search, searchWhole } from "../support/models/search.ts";
import { rule } from "../support/rule.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const CANARY = "canary-6fPq81Zw";
/** More than the ops after which a record's state is kept aside. */
const RENAMES = 300;

const DAY_MS = 86_400_000;

/** The kinds of content (the word after the canary) that stand in plain text in any file below a folder. */
function canariesIn(folder: string): string[] {
  const found = new Set<string>();
  for (const bytes of filesBelow(folder))
    for (const [, kind] of bytes.toString("latin1").matchAll(new RegExp(`${CANARY}-([a-z]+)`, "g"))) found.add(kind!);
  return [...found].sort();
}

/** When the device looked at the clock last to see what is old, and what it took the time for. */
const TIME_SEEN = "SELECT value FROM meta WHERE key = 'time.seen'";
function lookedAtMs(path: string): number {
  using db = new Database(path, { readonly: true });
  return Number(readUint64(db.query<{ value: Uint8Array }, []>(TIME_SEEN).get()!.value, 8));
}

/** A space as a clock left it that was a month behind: to whoever opens it now the clock was set ahead by that. */
function setClockAhead(path: string): void {
  using db = new Database(path);
  const byMs = 31 * DAY_MS;
  const { value } = db.query<{ value: Uint8Array }, []>(TIME_SEEN).get()!;
  for (const at of [0, 8]) writeUint64(value, at, readUint64(value, at) - BigInt(byMs));
  db.run("UPDATE meta SET value = ? WHERE key = 'time.seen'", [value]);
  db.run("UPDATE objects SET deleted_ms = deleted_ms - ?1, deleted_sum = deleted_sum - 2 * ?1 WHERE deleted = 1", [
    byMs,
  ]);
}

/** Ends of the sealed bodies that the changes of deleted objects are kept with. */
function sealedOf(path: string): Buffer[] {
  using db = new Database(path, { readonly: true });
  return db
    .query<{ bytes: Uint8Array }, []>(
      "SELECT bytes FROM changes WHERE writer <> 0 AND objectNo IN (SELECT no FROM objects WHERE deleted = 1)",
    )
    .all()
    .flatMap(({ bytes }) => {
      const change = decodeChange(bytes);
      return isDerivedRoot(change) || !change.sealed ? [] : [Buffer.from(change.sealed.subarray(-64))];
    });
}

rule(
  "[OBJ-5] [CHANGE-8] once an object is deleted and torn down, nothing it held is left in plain text while the server runs, nor sealed after a month that the device saw pass",
  async () => {
    await using server = await startServer();
    const { client, dataDir } = server;
    const { id } = await client.get<{ id: string }>("/v1/account");
    const folder = join(dataDir, id);
    const space = await createSpace(client);
    const items = await createCollection(client, space.id);
    const { objectId } = items;
    const long = "x".repeat(9_000);
    const records = Array.from({ length: 50 }, (_, i) => setFields(`r${i}`, { s: `${CANARY}-record ${i} ${long}` }));
    await items.modify(records.slice(0, 25));
    await items.modify(records.slice(25));
    await items.modify([setFields("r1", { s: `${CANARY}-edit` })]);
    const rename = (name: string): JsonObject => ({ type: "$set", path: "svc.name", value: name });
    await client.post(`${items.path}/modify`, {
      objectId,
      dataset: "objects",
      records: [{ id: objectId, ops: Array.from({ length: RENAMES }, (_, i) => rename(`${CANARY}-name ${i}`)) }],
    });
    const link = { types: [items.typeId], initialProperties: { svc: { name: "stays" } } };
    const kept = await createObject(client, space.id, link);
    await client.put(`${items.path}/objects/${objectId}/editor/markdown`, { content: `# ${CANARY}-block\n` }, 200);
    await client.post(`${items.path}/objects/${objectId}/chat/messages`, { text: `${CANARY}-message` }, 201);
    expect(canariesIn(folder)).toEqual(["block", "edit", "message", "name", "record"]);

    const path = join(folder, "sdk", `${space.id}.db`);
    await client.del(`${items.path}/objects/${objectId}`);
    await until(
      () => {
        using db = new Database(path, { readonly: true });
        const left =
          "SELECT count(*) AS n FROM collections WHERE objectNo IN (SELECT no FROM objects WHERE deleted = 1)";
        return Promise.resolve(db.query<{ n: number }, []>(left).get()!.n === 0);
      },
      "the object to be torn down",
      60_000,
    );
    // It is in no database then, nor in the log beside one.
    await until(async () => canariesIn(folder).length === 0, "its plain text to be overwritten", 60_000);
    await server.stop();
    const sealed = sealedOf(path);
    expect(sealed.length).toBeGreaterThan(5);
    for (const bytes of sealed) expect(readFileSync(path).includes(bytes)).toBe(true);

    setClockAhead(path);
    const startedMs = Date.now();
    await using early = await startServer({ dataDir });
    await early.client.get(`${items.path}/properties/${kept.id}`);
    await until(async () => lookedAtMs(path) >= startedMs, "the server to look for what is old", 60_000);
    await early.stop();
    expect(sealedOf(path)).toEqual(sealed);

    using db = new Database(path);
    db.run(
      `UPDATE objects SET deleted_ms = deleted_ms - ${31 * DAY_MS}, deleted_sum = deleted_sum - ${62 * DAY_MS} WHERE deleted = 1`,
    );
    db.close();

    await using again = await startServer({ dataDir });
    await again.client.get(`${items.path}/properties/${kept.id}`);
    await until(() => Promise.resolve(sealedOf(path).length === 0), "the sealed changes to go", 60_000);
    const gone = { objectId, dataset: items.dataset };
    await again.client.fails("POST", `${items.path}/query`, gone, 404, "object.not_found");
    const { record } = await again.client.get<{ record: JsonObject }>(`${items.path}/properties/${kept.id}`);
    expect(record["svc"]).toMatchObject({ name: "stays" });
    await again.stop();
    for (const bytes of sealed) expect(readFileSync(path).includes(bytes)).toBe(false);
    await using last = await startServer({ dataDir });
    await createObject(last.client, space.id, link);
  },
);

rule(
  "[SEARCH-5] a deleted word stands in no byte of index/, the log of the file included; a left space has no index",
  async () => {
    await using server = await startServer({});
    const { client, dataDir } = server;
    const space = (await createSpace(client)).id;
    const canary = "kanarienvogel4711";
    const { id } = await createObject(client, space, { initialProperties: { svc: { name: `a ${canary} sings` } } });
    const other = await createObject(client, space, { types: ["page"] });
    await client.request("PUT", `/v1/spaces/${space}/objects/${other.id}/editor/markdown`, {
      body: { content: `one ${canary}\n\ntwo` },
    });
    expect((await searchWhole(client, space, { query: canary })).hits).toHaveLength(2);
    await until(() => holds(indexDirectory(dataDir), canary), "the word to be in a file");
    await client.request("DELETE", `/v1/spaces/${space}/objects/${id}`);
    await client.request("PUT", `/v1/spaces/${space}/objects/${other.id}/editor/markdown`, {
      body: { content: "two" },
    });
    expect((await search(client, space, { query: canary })).hits).toEqual([]);
    await until(() => !holds(indexDirectory(dataDir), canary), "the word to be gone");

    await client.request("DELETE", `/v1/spaces/${space}`);
    await until(() => !existsSync(join(indexDirectory(dataDir), `${space}.db`)), "the index to be gone");
    expect(readdirSync(indexDirectory(dataDir)).filter((name) => name.startsWith(space))).toEqual([]);
  },
);

function holds(dir: string, text: string): boolean {
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some(({ name }) => readFileSync(join(dir, name)).includes(text));
}
