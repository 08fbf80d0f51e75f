/**
 * Values that the disk changed in the tables beside records, each table in turn: the graph of changes, verdicts, which change
 * touched what, what is kept of the account. The server derives them again, or takes them from their copies, and says so.
 */
import { describe, expect } from "bun:test";
import { cpSync } from "node:fs";
import { dirname } from "node:path";
import { again, type Stopped, startChecking, stopped } from "../support/hostile/changed-bits.ts";
import { type Damageable, dumpOf, flipValue } from "../support/hostile/changed-values.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type Client, until } from "../support/server/client.ts";
import { attach } from "../support/server/files.ts";
import { type Collection, createObject, named, setFields } from "../support/server/fixtures.ts";

const firstSeed = runSeed("changed tables");
/** What failed once: the definitions of a type, read through a collection that was another's, were kept when it was mended. */
const PAST: readonly (readonly [table: string, seed: number])[] = [
  ["collections", 1734601070],
  // The newest change of an object that is deleted was not looked at.
  ["objects", 983055523],
];
const ROUNDS = rounds(1);

/** What follows from changes. Left out: what this device alone knows of an object, and what a change is given for a number. */
const DERIVED: readonly Damageable[] = [
  { table: "heads" },
  { table: "touches" },
  { table: "history" },
  { table: "history_traces" },
  { table: "writers", columns: ["author", "id", "seq", "last", "lamport", "changes", "counted"] },
  { table: "uncounted" },
  { table: "regular_objects" },
  { table: "collections", columns: ["objectNo", "datasetNo", "live"], where: "no > 0" },
  { table: "datasets", columns: ["name"] },
  {
    table: "objects",
    columns: ["id", "root", "derived", "author", "created_ms", "mod_lamport", "mod_change", "mod_ms"],
  },
  {
    table: "changes",
    columns: ["objectNo", "lamport", "writer", "seq", "acl_pos", "time", "datasetNo", "counts"],
    where: "writer > 0",
  },
  { table: "changes", columns: ["id", "kind"], where: "writer > 0" },
];

/** What is kept three times. What the check itself writes is left out. */
const KEPT: readonly Damageable[] = [
  { table: "meta", where: "key NOT IN ('acl-snapshot', 'check', 'time.seen')" },
  { table: "declarations" },
  { table: "file_refs" },
  { table: "file_contents", columns: ["root", "size", "hash", "key_id"] },
];
const KEPT_OF_ACCOUNT: readonly Damageable[] = [
  { table: "space_members" },
  { table: "space_checks", columns: ["space_id"] },
  { table: "local_spaces", columns: ["space_id"] },
];

async function fill(items: Collection, client: Client): Promise<void> {
  for (let n = 0; n < 6; n++) {
    const { id } = await createObject(client, items.spaceId, named(`object ${n}`));
    if (n === 5) await client.request("DELETE", `/v1/spaces/${items.spaceId}/objects/${id}`);
  }
  for (let n = 0; n < 12; n++)
    await items.modify([setFields(`r${n}`, { n: n * 10 }), setFields("r20", { n })], { traceIds: [`trace-${n % 3}`] });
  await attach(client, items.spaceId, items.objectId, Buffer.alloc(300_000, "bytes of a file"), { name: "notes.txt" });
}

const DAMAGED = /damaged on the disk/;

describe("each table in turn", () => {
  const all = [...DERIVED, ...KEPT, ...KEPT_OF_ACCOUNT];
  for (let round = 0; round < ROUNDS; round++) for (const damageable of all) tryOne(damageable, firstSeed, round);
  for (const [table, seed] of PAST) tryOne(all.find((each) => each.table === table)!, seed, 0);
});

function tryOne(damageable: Damageable, seed: number, round: number): void {
  const rng = createRng(seed).fork(`${damageable.table} ${round}`);
  rule(
    `[STORE-3] [STORE-5] a value of ${damageable.table} is what it was again (SEED=${seed}, ${round})`,
    async () => {
      using harmed = await copyOfOne();
      const path = KEPT_OF_ACCOUNT.includes(damageable) ? `${dirname(harmed.path)}/account.db` : harmed.path;
      const before = dumpOf(path, damageable);
      const tables = DERIVED.map((each) => [each.table, dumpOf(harmed.path, each), each] as const);
      const what = flipValue(path, damageable, rng);
      if (what === undefined) throw new Error(`${damageable.table} is empty: nothing of it was tried`);
      expect(dumpOf(path, damageable)).not.toBe(before);
      await using server = await startChecking(harmed.root);
      // Spaces that were not gone over yet are noted meanwhile.
      const isAgain = (now: string) =>
        damageable.table === "space_checks" ? before.split("\n").every((row) => now.includes(row)) : now === before;
      await until(() => isAgain(dumpOf(path, damageable)), `what it was: ${what}`, 20_000);
      await until(() => DAMAGED.test(server.stderr()), `the log's word of it: ${what}`);
      const items = again(harmed, server);
      expect((await items.query({ sort: ["id"] })).records).toEqual([...harmed.rows]);
      // What was told wrongly of the others is taken back later in the same pass, or in the next.
      for (const [table, expected, each] of tables)
        await until(() => dumpOf(harmed.path, each) === expected, `${table} as it was: ${what}`, 20_000);
      await items.modify([setFields("r1", { n: -1 })]);
      expect(await items.find("r1")).toMatchObject({ n: -1 });
      expect(await server.stop()).toBe(0);
    },
    60_000,
  );
}

rule("[STORE-3] where nothing was changed nothing is found", async () => {
  using harmed = await copyOfOne();
  await using server = await startChecking(harmed.root);
  const account = `${dirname(harmed.path)}/account.db`;
  const checked = (): string => dumpOf(account, { table: "space_checks" });
  for (let pass = 0; pass < 3; pass++) {
    const before = checked();
    await until(() => checked() !== before, "a pass", 20_000);
  }
  expect(server.stderr()).not.toMatch(DAMAGED);
});

let one: Promise<Stopped> | undefined;

/** A copy of a data root that is filled once. */
async function copyOfOne(): Promise<Stopped> {
  one ??= stopped(fill);
  const { root, path, items, rows } = await one;
  const copy = scratchDir("svc-tables");
  cpSync(root, copy.path, { recursive: true });
  return {
    root: copy.path,
    path: copy.path + path.slice(root.length),
    items,
    rows,
    [Symbol.dispose]: () => copy[Symbol.dispose](),
  };
}
