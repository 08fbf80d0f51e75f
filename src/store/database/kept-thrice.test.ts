import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { createRng, type Rng, runSeed } from "../../../test/support/rng.ts";
import { keepThrice, keptDifference, mendKept } from "./kept-thrice.ts";

const KEPT = [{ table: "notes", except: "key = 'large'" }, { table: "hints" }];
const TABLES = ["notes", "notes_copy1", "notes_copy2", "hints", "hints_copy1", "hints_copy2"];

function opened(): Database {
  const db = new Database(":memory:");
  db.exec(`PRAGMA recursive_triggers = ON;
    CREATE TABLE notes(key TEXT PRIMARY KEY, value BLOB NOT NULL);
    CREATE TABLE hints(no INTEGER PRIMARY KEY, space TEXT NOT NULL, secret BLOB, UNIQUE(space, secret));
    INSERT INTO notes VALUES('before', x'01'), ('large', x'02');`);
  for (const kept of KEPT) keepThrice(db, kept);
  return db;
}

const rowsOf = (db: Database): unknown[] =>
  ["notes", "hints"].map((table) => db.query(`SELECT * FROM ${table} ORDER BY 1`).all());

const differing = (db: Database): string[] =>
  KEPT.filter((kept) => db.query(keptDifference(kept)).get() !== null).map(({ table }) => table);

/** Writes of every kind that stores use. */
function write(db: Database, rng: Rng): void {
  const [name, space, value] = [`k${rng.int(0, 6)}`, `s${rng.int(0, 3)}`, Buffer.from([rng.int(0, 3)])];
  const writes = [
    () => db.run("INSERT INTO notes VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", [name, value]),
    () => db.run("INSERT OR IGNORE INTO notes VALUES(?, ?)", [name, value]),
    () => db.run("UPDATE notes SET key = key || 'x' WHERE key = ?", [name]),
    () => db.run("UPDATE notes SET value = ? WHERE key IN ('large', ?)", [value, name]),
    () => db.run("DELETE FROM notes WHERE key = ?", [name]),
    () => db.run("INSERT OR REPLACE INTO hints(space, secret) VALUES(?, ?)", [space, value]),
    () => db.run("INSERT INTO hints(space, secret) VALUES(?, NULL)", [space]),
    () => db.run("DELETE FROM hints WHERE no IN (SELECT no FROM hints ORDER BY no DESC LIMIT -1 OFFSET 5)"),
  ];
  try {
    rng.pick(writes)();
  } catch (error) {
    if (!String(error).includes("UNIQUE")) throw error;
  }
}

/** Changes one value, as a disk would, without the triggers. Answers whether there was one. */
function damage(db: Database, rng: Rng): boolean {
  const triggers = db
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  const table = rng.pick(TABLES);
  const row = db
    .query<Record<string, unknown>, []>(
      `SELECT * FROM ${table} WHERE 'large' NOT IN (SELECT ${table.startsWith("n") ? "key" : "''"})`,
    )
    .all();
  if (row.length === 0) return false;
  const chosen = rng.pick(row);
  const [keyColumn, ...others] = Object.keys(chosen);
  const column = rng.pick([keyColumn!, ...others]);
  const value = chosen[column];
  const flipped = typeof value === "number" ? value ^ (1 << rng.int(3, 20)) : `${String(value)}~`;
  for (const { name } of triggers) db.run(`DROP TRIGGER ${name}`);
  // A key that another row has already cannot be set by SQL.
  const { changes } = db.run(`UPDATE OR IGNORE ${table} SET ${column} = ? WHERE ${keyColumn} = ?`, [
    flipped,
    chosen[keyColumn!] as string,
  ]);
  for (const { sql } of triggers) db.run(sql);
  return changes > 0;
}

describe("[STORE-5] tables that are kept three times", () => {
  const seed = runSeed("kept thrice");
  test(`whatever is written, the copies agree; whichever value is changed, it is set right (SEED=${seed})`, () => {
    const rng = createRng(seed);
    for (let run = 0; run < 200; run++) {
      using db = opened();
      for (let n = rng.int(1, 40); n > 0; n--) write(db, rng);
      expect(differing(db)).toEqual([]);
      const before = rowsOf(db);
      if (!damage(db, rng)) continue;
      expect(differing(db).length).toBe(1);
      expect(mendKept(db, KEPT)).toMatchObject([{ unsure: 0 }]);
      expect(rowsOf(db)).toEqual(before);
      expect(differing(db)).toEqual([]);
      expect(mendKept(db, KEPT)).toEqual([]);
    }
  });

  test("a row of which all copies differ stays, and is told of", () => {
    using db = opened();
    db.run("DROP TRIGGER notes_row_changed");
    db.run("UPDATE notes SET value = x'05' WHERE key = 'before'");
    db.run("UPDATE notes_copy1 SET value = x'06' WHERE key = 'before'");
    expect(mendKept(db, KEPT)).toMatchObject([{ table: "notes", unsure: 1 }]);
    expect(db.query("SELECT hex(value) AS value FROM notes WHERE key = 'before'").get()).toEqual({ value: "05" });
    expect(differing(db)).toEqual([]);
  });
});
