/**
 * Values that the disk made ones of another type: a blob a text, a number a text, something nothing. SQLite holds to no type, and
 * gives them out. Nothing fails for it: the server refuses in words what needs them, and gives them their types again.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { cpSync } from "node:fs";
import { dirname } from "node:path";
import { openPushOutboxStore } from "../../src/store/push-outbox-store.ts";
import { SPACE_SCHEMA } from "../../src/store/space-schema.ts";
import { again, type Stopped, startChecking, stopped } from "../support/hostile/changed-bits.ts";
import { addRow, retypeColumns, tablesOf } from "../support/hostile/changed-values.ts";
import { askSpace, faultOf } from "../support/hostile/damaged-root.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type Client, type Row, until } from "../support/server/client.ts";
import { attach } from "../support/server/files.ts";
import { type Collection, createObject, named, setFields } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

const seed = runSeed("changed types");
const ROUNDS = rounds(1);

let whole: Stopped;
beforeAll(async () => {
  whole = await stopped(fill);
}, 60_000);
afterAll(() => whole[Symbol.dispose]());

async function fill(items: Collection, client: Client): Promise<void> {
  for (let n = 0; n < 4; n++) {
    const { id } = await createObject(client, items.spaceId, named(`object ${n}`));
    if (n === 3) await client.request("DELETE", `/v1/spaces/${items.spaceId}/objects/${id}`);
  }
  for (let n = 0; n < 12; n++)
    await items.modify([setFields(`r${n}`, { n: n * 10 }), setFields("r20", { n })], { traceIds: [`trace-${n % 3}`] });
  await items.modify([{ id: "r3", ops: [{ type: "$set", path: "mark", value: "only here" }] }], { scope: "local" });
  await attach(client, items.spaceId, items.objectId, Buffer.alloc(300_000, "bytes of a file"), { name: "notes.txt" });
  await client.post(`/v1/spaces/${items.spaceId}/invites`, { permission: "writer" }, 201).catch(() => {});
}

/** What is asked of the space, a few times: the first of it meets the damage, and has it set right. */
async function faultsOf(server: RunningServer, items: Collection, round: string): Promise<string[]> {
  const faults: string[] = [];
  for (let time = 0; time < 3; time++)
    for (const [index, reply] of (await askSpace(server.client, items, `${round}${time}`)).entries()) {
      const fault = faultOf(reply);
      if (fault) faults.push(`request ${index}, time ${time}: ${fault}`);
    }
  return faults;
}

const FAILED = /TypeError|RangeError|ReferenceError|SyntaxError|is not a function|undefined is not/;

/** The tables of a space's database. */
const SPACE_TABLES: readonly string[] = (() => {
  using db = new Database(":memory:");
  for (const migrate of SPACE_SCHEMA.migrations) migrate(db);
  return db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => name);
})();
const COPY = /_copy\d$/;
/** So many tables are harmed at once, which of them is drawn: two servers are started for each such lot. */
const AT_ONCE = 6;
/** The log of rights by itself, because it has no copy; of copies the first ones of all tables at once, and the second ones. */
const APART = "acl_records";
const triedTogether = (tables: readonly string[], round: number): string[][] => {
  const drawn = createRng(seed)
    .fork(`lots ${round}`)
    .shuffle(tables.filter((name) => !COPY.test(name) && name !== APART));
  return [
    ...(tables.includes(APART) ? [[APART]] : []),
    ...Array.from({ length: Math.ceil(drawn.length / AT_ONCE) }, (_, n) => drawn.slice(n * AT_ONCE, (n + 1) * AT_ONCE)),
    ...["_copy1", "_copy2"].map((copy) => tables.filter((name) => name.endsWith(copy))),
  ];
};
const tried = new Set<string>();
const title = "values of other types fail nothing, and are given theirs again";

describe("a space's database", () => {
  for (let round = 0; round < ROUNDS; round++)
    for (const tables of triedTogether(SPACE_TABLES, round))
      rule(
        `[STORE-3] [STORE-5] ${tables.join(", ")}: ${title} (SEED=${seed}, ${round})`,
        async () => {
          for (const table of await tryTables(whole.path, tables, round)) tried.add(table);
        },
        60_000,
      );
});

rule("[STORE-3] most tables of a space had something to be harmed", () => {
  expect(tried.size).toBeGreaterThan(30);
});

rule(
  `[STORE-5] account.db: ${title} (SEED=${seed})`,
  async () => {
    const file = `${dirname(whole.path)}/account.db`;
    for (const tables of triedTogether(tablesOf(file), 0))
      for (const table of await tryTables(file, tables, 0)) tried.add(`account.db ${table}`);
    expect([...tried].filter((name) => name.startsWith("account.db")).length).toBeGreaterThan(5);
  },
  120_000,
);

rule(`[STORE-5] push.db: its copies say what it was, and nothing of it is set aside (SEED=${seed})`, async () => {
  using dir = scratchDir("svc-types");
  const path = `${dir.path}/push.db`;
  const fail = (error: unknown): never => {
    throw error;
  };
  const repairs: unknown[] = [];
  const open = () =>
    openPushOutboxStore(path, { onDamage: fail, onFault: fail, onRepair: (tables) => void repairs.push(...tables) });
  const read = async (): Promise<unknown> => {
    const store = open();
    const rows = await store.takeDue(100, 10);
    const all = [rows, store.pruned(), store.isKnownKey("key")];
    await store.close();
    return all;
  };
  {
    const store = open();
    const of = { kind: "message", spaceId: "s", audience: "", messageId: "m", queuedMs: 5, dueMs: 10 } as const;
    for (const chatId of ["c1", "c2", "c3"]) store.put({ ...of, id: `id of ${chatId}`, chatId });
    store.addPruned("a device");
    await store.noteKeys(["key"]);
    await store.close();
  }
  const before = await read();
  for (const table of tablesOf(path)) {
    const done = retypeColumns(path, table, createRng(seed).fork(table));
    expect({ table, done, is: await read() }).toEqual({ table, done, is: before });
  }
  expect(repairs.length).toBeGreaterThan(3);
});

/** Answers which of the tables have rows. */
async function tryTables(file: string, tables: readonly string[], round: number): Promise<string[]> {
  using copy = scratchDir("svc-types");
  cpSync(whole.root, copy.path, { recursive: true });
  const at = copy.path + file.slice(whole.root.length);
  const done: Record<string, string[]> = {};
  for (const table of tables) {
    if (file === whole.path && !COPY.test(table)) addRow(at, table);
    const columns = retypeColumns(at, table, createRng(seed).fork(`${table} ${round}`));
    if (columns.length > 0) done[table] = columns;
  }
  const harmed = Object.keys(done);
  if (harmed.length === 0) return [];
  {
    await using server = await startServer({ dataDir: copy.path, bootstrapped: false });
    const items = again(whole, server);
    expect({ done, faults: await faultsOf(server, items, "a") }).toEqual({ done, faults: [] });
    expect({ done, said: failuresIn(server.stderr()) }).toEqual({ done, said: [] });
    expect(await server.stop()).toBe(0);
  }
  // The log of rights has no copy: a record that is lost is refused in words, and that is all.
  if (done["acl_records"]?.some((each) => each.endsWith("NULL"))) return harmed;
  await using server = await startChecking(copy.path);
  const items = again(whole, server);
  // The first server was asked to delete one, and may have refused that.
  const idsOf = (rows: readonly Row[]): string[] =>
    rows.map(({ id }) => id).filter((id) => id.startsWith("r") && id !== "r3");
  const read = async (): Promise<string[]> => {
    const { path, target } = items;
    const reply = await server.client.request("POST", `${path}/query`, { body: { ...target, sort: ["id"] } });
    return reply.status === 200 ? idsOf((JSON.parse(reply.text) as { records: Row[] }).records) : [];
  };
  const isRight = async (): Promise<boolean> => Bun.deepEquals(await read(), idsOf(whole.rows));
  await until(isRight, `all to be right again, after ${JSON.stringify(done)}`, 20_000);
  expect({ done, faults: await faultsOf(server, items, "b") }).toEqual({ done, faults: [] });
  expect({ done, said: failuresIn(server.stderr()) }).toEqual({ done, said: [] });
  expect(await server.stop()).toBe(0);
  return harmed;
}

const failuresIn = (log: string): string[] => log.split("\n").filter((line) => FAILED.test(line));
