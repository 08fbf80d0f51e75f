/** Single values of a stopped server's databases that the disk changed: SQLite finds nothing wrong with them. */
import { Database } from "bun:sqlite";
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
