import type { Database, Statement } from "bun:sqlite";
import { StoredFileError } from "../../protocol/storage-fault.ts";

type SqlType = "integer" | "real" | "text" | "blob" | "null";

/**
 * What a column may hold, by the type that its table declares: SQLite itself holds to none of it, and gives out what the disk
 * says. A column without a type of this list may hold anything.
 */
const TYPES: Readonly<Record<string, readonly SqlType[]>> = {
  INTEGER: ["integer"],
  NUMERIC: ["integer", "real"],
  TEXT: ["text"],
  BLOB: ["blob"],
  "OPTIONAL INTEGER": ["integer", "null"],
  "OPTIONAL TEXT": ["text", "null"],
  "OPTIONAL BLOB": ["blob", "null"],
  "SOME INTEGERS": ["integer", "text", "null"],
};

/** A value of a row is of another type than its column's: the disk changed it (STORE-3). */
export class MistypedValueError extends StoredFileError {
  constructor(path: string, column: string) {
    super("damaged", `${path}: a value of the column ${column} is not what was stored: it has another type`);
  }
}

type IsOf = (value: unknown) => boolean;

/** Whether a value is one that SQLite gives out for its type. */
const IS: Readonly<Record<SqlType, IsOf>> = {
  integer: (value) => Number.isInteger(value),
  real: (value) => typeof value === "number",
  text: (value) => typeof value === "string",
  blob: (value) => value instanceof Uint8Array,
  null: (value) => value === null,
};

const isOf: ReadonlyMap<string, IsOf> = new Map(
  Object.entries(TYPES).map(([declared, types]) => [
    declared,
    types.map((type) => IS[type]).reduce((is, or) => (value) => is(value) || or(value)),
  ]),
);

/** Answers which column of a row of this statement holds what its table does not allow it; undefined where none does. */
export function mistypedColumn(statement: Statement): (row: Readonly<Record<string, unknown>>) => string | undefined {
  const { columnNames, declaredTypes } = statement;
  const checks = columnNames.flatMap((name, index) => {
    const isRight = isOf.get(declaredTypes[index] ?? "");
    return isRight ? [{ name, isRight }] : [];
  });
  return (row) => {
    for (const { name, isRight } of checks) if (!isRight(row[name])) return name;
    return undefined;
  };
}

interface TypedColumn {
  readonly name: string;
  readonly declared: string;
  /** Part of what tells its row from others. */
  readonly isKey: boolean;
}

interface TypedTable {
  readonly table: string;
  readonly columns: readonly TypedColumn[];
}

const known = new WeakMap<Database, readonly TypedTable[]>();

/** The tables of a database with their columns that have types. */
function typedTables(db: Database): readonly TypedTable[] {
  const found = known.get(db);
  if (found) return found;
  const keys = db.query<{ name: string }, [string]>(
    `SELECT name FROM pragma_table_info(?1) WHERE pk > 0 UNION SELECT c.name FROM pragma_index_list(?1) i
     CROSS JOIN pragma_index_info(i.name) c WHERE i."unique" = 1 AND c.name IS NOT NULL`,
  );
  const columns = db.query<{ name: string; type: string }, [string]>("SELECT name, type FROM pragma_table_info(?)");
  const tables = db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name: table }) => {
      const isKey = new Set(keys.all(table).map(({ name }) => name));
      const typed = columns.all(table).filter(({ type }) => type in TYPES);
      return { table, columns: typed.map(({ name, type }) => ({ name, declared: type, isKey: isKey.has(name) })) };
    })
    .filter((each) => each.columns.length > 0);
  known.set(db, tables);
  return tables;
}

const listOf = ({ declared }: TypedColumn): string => TYPES[declared]!.map((type) => `'${type}'`).join(", ");
const isMistyped = (column: TypedColumn): string => `typeof(${column.name}) NOT IN (${listOf(column)})`;
const anyMistyped = ({ columns }: TypedTable): string => columns.map(isMistyped).join(" OR ");

/** A statement for a reader, which has a row for each table with a value of another type than its column's. A pass over all. */
export const searchForMistyped = (db: Database): string =>
  typedTables(db)
    .map(
      (each) => `SELECT '${each.table}' AS name WHERE EXISTS(SELECT 1 FROM ${each.table} WHERE ${anyMistyped(each)})`,
    )
    .join(" UNION ALL ");

/** Columns of the rows of a table that have a value of another type than its column's. */
export function mistypedRows(db: Database, table: string, columns: readonly string[]): Record<string, unknown>[] {
  const typed = typedTables(db).find((each) => each.table === table)!;
  using rows = db.prepare<Record<string, unknown>, []>(
    `SELECT ${columns.join()} FROM ${table} WHERE ${anyMistyped(typed)}`,
  );
  return rows.all();
}

/** What a value of another type is made: what its bytes say as the type that it should have, and nothing where it was lost. */
function valueFor({ name, declared, isKey }: TypedColumn): string {
  const [type] = TYPES[declared]!;
  const nothing = { integer: "0", text: "''", blob: "x''", real: "0", null: "NULL" }[type!];
  const another = { integer: "abs(random() % 1000000000000)", text: "hex(randomblob(16))", blob: "randomblob(32)" };
  const lost = TYPES[declared]!.includes("null") ? "NULL" : isKey ? another[type as keyof typeof another] : nothing;
  return `CASE typeof(${name}) WHEN 'null' THEN ${lost} ELSE CAST(${name} AS ${declared === "NUMERIC" ? declared : type}) END`;
}

/**
 * Gives values their types again, in a write: of a blob that became a text, or the other way round, that makes it what it was. What
 * it does not make so is a wrong value of the right type, like any other that the disk changed. A row whose key is then
 * another row's goes. Answers how many values each table had of another type.
 */
export function mendTypes(db: Database): Record<string, number> {
  const mended: Record<string, number> = {};
  const indexesOf = db.query<{ name: string; sql: string }, [string]>(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
  );
  for (const each of typedTables(db)) {
    const { table, columns } = each;
    if (db.query(`SELECT 1 AS n FROM ${table} WHERE ${anyMistyped(each)} LIMIT 1`).get() === null) continue;
    // An index may lead to the row by what its value was, and does not lead to a value of another type as a write looks for it.
    const indexes = indexesOf.all(table);
    for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
    db.exec(`REINDEX ${table}`);
    const count = (sql: string): number => db.query<null, []>(sql).run().changes;
    mended[table] = columns
      .map((column) =>
        count(`UPDATE OR IGNORE ${table} SET ${column.name} = ${valueFor(column)} WHERE ${isMistyped(column)}`),
      )
      .reduce((sum, changes) => sum + changes, 0);
    mended[table] += count(`DELETE FROM ${table} WHERE ${anyMistyped(each)}`);
    for (const { sql } of indexes) db.exec(sql);
  }
  return mended;
}
