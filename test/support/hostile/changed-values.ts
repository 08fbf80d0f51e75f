/** Single values of a stopped server's databases that the disk changed: SQLite finds nothing wrong with them. */
import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
import type { Rng } from "../rng.ts";

type Value = number | string | Uint8Array | null;
type StoredRow = Record<string, Value>;

/** The columns of a table whose values something else tells, unless only these are given. */
export interface Damageable {
  readonly table: string;
  readonly columns?: readonly string[];
  /** Rows that the damage may meet. */
  readonly where?: string;
}

const KEYS = "SELECT name FROM pragma_table_info(?) WHERE pk > 0";

/** What a table says, all of it, whatever the order of its rows. */
export function dumpOf(path: string, { table, columns, where = "1" }: Damageable): string {
  using db = new Database(path, { readonly: true });
  db.run("PRAGMA busy_timeout = 5000");
  const keys = db.query<{ name: string }, [string]>(KEYS).all(table);
  const wanted = columns ? [...new Set([...keys.map(({ name }) => name), ...columns])].join(", ") : "*";
  const rows = db.query<StoredRow, []>(`SELECT ${wanted} FROM ${table} WHERE ${where}`).all();
  const text = (value: Value): Value => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value);
  return rows
    .map((row) => JSON.stringify(Object.values(row).map(text)))
    .sort()
    .join("\n");
}

function flipped(value: Value, rng: Rng): Value {
  if (typeof value === "number") return value ^ (1 << rng.int(0, 12));
  if (value === null || value.length === 0) return null;
  const at = rng.int(0, value.length - 1);
  if (typeof value === "string")
    return value.slice(0, at) + String.fromCharCode(value.charCodeAt(at) ^ 1) + value.slice(at + 1);
  const bytes = Uint8Array.from(value);
  bytes[at]! ^= 1 << rng.int(0, 7);
  return bytes;
}

/**
 * Changes a bit of one value of a table, as the disk would: without the triggers that see what is written. Answers which, in
 * words; undefined where the table has no row.
 */
export function flipValue(path: string, damageable: Damageable, rng: Rng): string | undefined {
  const { table, columns, where = "1" } = damageable;
  using db = new Database(path);
  const rows = db.query<StoredRow, []>(`SELECT * FROM ${table} WHERE ${where}`).all();
  if (rows.length === 0) return undefined;
  const keys = db
    .query<{ name: string }, [string]>(KEYS)
    .all(table)
    .map(({ name }) => name);
  const triggers = db
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (;;) {
    const row = rng.pick(rows);
    const column = rng.pick(columns ?? Object.keys(row));
    const value = flipped(row[column]!, rng);
    if (value === null) continue;
    const sql = `UPDATE ${table} SET ${column} = ? WHERE ${keys.map((key) => `${key} IS ?`).join(" AND ") || "1"}`;
    try {
      db.transaction(() => {
        for (const { name } of triggers) db.run(`DROP TRIGGER ${name}`);
        db.run(sql, [value, ...keys.map((key) => row[key]!)]);
        for (const trigger of triggers) db.run(trigger.sql);
      })();
    } catch (error) {
      if (String(error).includes("UNIQUE")) continue; // two rows of one key are no database any more
      throw error;
    }
    return `${table}.${column} of ${JSON.stringify(keys.map((key) => row[key]))}: ${row[column]} became ${value}`;
  }
}

/** Writes another text of the same length in the place of the SQL of a table, which SQLite reads when the file is opened again. */
function replaceSql(path: string, from: string, to: string): void {
  const bytes = readFileSync(path);
  // What SQLite moved to another page may be left where it was.
  const places: number[] = [];
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) places.push(at);
  if (places.length === 0 || from.length !== to.length) throw new Error(`cannot replace ${from}`);
  for (const at of places) bytes.write(to, at);
  writeFileSync(path, bytes);
}

const COLUMN_TYPES =
  /\b(?:OPTIONAL|SOME)? ?(?:BLOB|TEXT|NUMERIC|INTEGERS?(?! PRIMARY KEY))(?: NOT NULL)?|(?<=\w) NOT NULL/g;

/** The same value as another type has it, as one bit of a record's header makes it, in SQL; or none at all. */
function retyped(column: string, value: Value, rng: Rng): string {
  if (rng.int(0, 2) === 0) return value === null ? "'nothing'" : "NULL";
  if (value === null) return "x'010203'";
  if (typeof value === "number") return rng.int(0, 1) === 0 ? `CAST(${column} AS TEXT)` : `${column} + 0.5`;
  return typeof value === "string" ? `CAST(${column} AS BLOB)` : `CAST(${column} AS TEXT)`;
}

/** Tables of a database, but for those that SQLite itself keeps. */
export function tablesOf(path: string): string[] {
  using db = new Database(path, { readonly: true });
  return db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => name);
}

const SOMETHING = { "": "1", INTEGER: "1", NUMERIC: "1", TEXT: "'$.x'", BLOB: "zeroblob(32)" } as const;

/** A row of a table that has none, of values that have the right types and say nothing. */
export function addRow(path: string, table: string): void {
  using db = new Database(path);
  db.run("PRAGMA recursive_triggers = ON");
  const columns = db.query<{ name: string; type: string }, [string]>("SELECT name, type FROM pragma_table_info(?)");
  const typed = columns.all(table).filter(({ type }) => type in SOMETHING);
  const values = typed.map(({ type }) => SOMETHING[type as keyof typeof SOMETHING]);
  if (db.query(`SELECT 1 AS n FROM ${table} LIMIT 1`).get() === null && typed.length > 0)
    db.run(`INSERT INTO ${table}(${typed.map(({ name }) => name).join(", ")}) VALUES(${values.join(", ")})`);
}

/**
 * Gives a value of each column of a table another type, in whatever row, as the disk would. Answers what became of which; of a
 * column that numbers the rows nothing can be changed so, and of a key of a table without such numbers no value can be taken away.
 */
export function retypeColumns(path: string, table: string, rng: Rng): string[] {
  const { sql, triggers } = schemaOf(path, table);
  const loose = sql.replaceAll(COLUMN_TYPES, (found) => " ".repeat(found.length));
  replaceSql(path, sql, loose);
  const done: string[] = [];
  {
    using db = new Database(path);
    const rows = db.query<StoredRow, []>(`SELECT * FROM ${table}`).all();
    const columns = Object.keys(rows[0] ?? {});
    const keys = db.query<{ name: string }, [string]>(KEYS).all(table);
    const wanted = (keys.length > 0 ? keys.map(({ name }) => name) : columns).map((name) => `${name} IS ?`);
    for (const { name } of triggers) db.run(`DROP TRIGGER ${name}`);
    for (const column of columns) {
      const row = rng.pick(rows);
      const value = retyped(column, row[column]!, rng);
      const of = (keys.length > 0 ? keys.map(({ name }) => name) : columns).map((name) => row[name]!);
      try {
        const { changes } = db.run(`UPDATE ${table} SET ${column} = ${value} WHERE ${wanted.join(" AND ")}`, of);
        if (changes > 0) done.push(`${column}, ${row[column]}: ${value}`);
      } catch (error) {
        if (!/UNIQUE|NOT NULL|datatype mismatch|malformed JSON/.test(String(error))) throw error;
      }
    }
    for (const trigger of triggers) db.run(trigger.sql);
  }
  replaceSql(path, loose, sql);
  return done;
}

function schemaOf(path: string, table: string) {
  using db = new Database(path, { readonly: true });
  const { sql } = db
    .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?")
    .get(table)!;
  const triggers = db
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  return { sql, triggers };
}
