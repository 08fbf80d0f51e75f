import type { Database } from "bun:sqlite";
import { mendTypes } from "./column-types.ts";

/** A small table that nothing else can make again (STORE-5): two more tables hold what it holds. */
export interface KeptThrice {
  readonly table: string;
  /** A condition on rows of which there is one copy alone. */
  readonly except?: string;
}

/** What a repair has found: rows set right, and rows of which all three copies differ, which stay as the table has them. */
export interface KeptRepair {
  readonly table: string;
  readonly mended: number;
  readonly unsure: number;
}

interface Columns {
  readonly all: readonly string[];
  readonly key: readonly string[];
}

const copiesOf = (table: string): readonly string[] => [1, 2].map((n) => `${table}_copy${n}`);

function columnsOf(db: Database, table: string): Columns {
  const info = db.query<{ name: string; pk: number }, [string]>("SELECT name, pk FROM pragma_table_info(?)").all(table);
  const key = info.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  return { all: info.map(({ name }) => name), key: key.map(({ name }) => name) };
}

const allBut = ({ except }: KeptThrice, row = ""): string =>
  except ? `NOT (${row ? except.replaceAll(/\bkey\b/g, `${row}.key`) : except})` : "1";

/**
 * Makes the copies of a table, in a migration. The database itself keeps them in step, so that no write can forget it; on a
 * connection with `recursive_triggers`, which tell of rows that are replaced too.
 */
export function keepThrice(db: Database, kept: KeptThrice): void {
  const { table } = kept;
  const { all, key } = columnsOf(db, table);
  const values = (row: string): string => all.map((column) => `${row}.${column}`).join(", ");
  const isRow = (row: string): string => key.map((column) => `${column} IS ${row}.${column}`).join(" AND ");
  const [drops, adds] = [
    (row: string) => copiesOf(table).map((copy) => `DELETE FROM ${copy} WHERE ${isRow(row)};`),
    () => copiesOf(table).map((copy) => `INSERT INTO ${copy} VALUES(${values("NEW")});`),
  ];
  for (const copy of copiesOf(table)) {
    db.exec(`CREATE TABLE ${copy}(${all.join(", ")}, PRIMARY KEY(${key.join(", ")})) WITHOUT ROWID`);
    db.exec(`INSERT INTO ${copy} SELECT * FROM ${table} WHERE ${allBut(kept)}`);
  }
  const trigger = (name: string, event: string, row: string, body: readonly string[]): unknown =>
    db.exec(
      `CREATE TRIGGER ${table}_${name} AFTER ${event} ON ${table} WHEN ${allBut(kept, row)} BEGIN ${body.join(" ")} END`,
    );
  trigger("row_added", "INSERT", "NEW", [...drops("NEW"), ...adds()]);
  trigger("row_changed", "UPDATE", "NEW", [...drops("OLD"), ...drops("NEW"), ...adds()]);
  trigger("row_gone", "DELETE", "OLD", drops("OLD"));
}

/** A statement that has a row where the copies of a table differ. It goes over all of them. */
export function keptDifference(kept: KeptThrice): string {
  const rows = `SELECT * FROM ${kept.table} WHERE ${allBut(kept)}`;
  const [first, second] = copiesOf(kept.table).map((copy) => `SELECT * FROM ${copy}`);
  const pairs = [
    [rows, first],
    [first, rows],
    [first, second],
    [second, first],
  ];
  return `SELECT 1 AS n FROM (${pairs.map(([a, b]) => `SELECT * FROM (${a} EXCEPT ${b})`).join(" UNION ALL ")}) LIMIT 1`;
}

/**
 * Makes three copies of each table agree on what two of them say. Runs in a transaction of its own, or within one. Answers for
 * the tables whose copies differed.
 */
export function mendKept(db: Database, tables: readonly KeptThrice[]): KeptRepair[] {
  return tables.flatMap((kept) => {
    if (db.query(keptDifference(kept)).get() === null) return [];
    return db.transaction(() => mendTable(db, kept))();
  });
}

/**
 * The same for all of a small database: values of another type than their columns are then given theirs again, so that it can be
 * read. Those have no copies, or three of them that differ. `onRepair` is told if anything was set right.
 */
export function mendSmall(
  db: Database,
  tables: readonly KeptThrice[],
  onRepair?: (repairs: readonly KeptRepair[]) => void,
): KeptRepair[] {
  const kept = mendKept(db, tables);
  const types = db.transaction(() => mendTypes(db))();
  const repairs = [...kept, ...Object.entries(types).map(([table, unsure]) => ({ table, mended: 0, unsure }))];
  if (repairs.length > 0) onRepair?.(repairs);
  return repairs;
}

function mendTable(db: Database, kept: KeptThrice): KeptRepair {
  const { table } = kept;
  const { all, key } = columnsOf(db, table);
  const rows = `SELECT * FROM ${table} WHERE ${allBut(kept)}`;
  const copies = copiesOf(table);
  const everything = [rows, ...copies.map((copy) => `SELECT * FROM ${copy}`)].join(" UNION ALL ");
  const keys = key.join(", ");
  const inTruth = (row: string): string =>
    `EXISTS(SELECT 1 FROM temp.truth t WHERE ${key.map((column) => `t.${column} IS ${row}.${column}`).join(" AND ")})`;
  db.exec(
    `CREATE TEMP TABLE truth AS SELECT ${all.join(", ")} FROM (${everything}) GROUP BY ${all.join(", ")} HAVING count(*) > 1`,
  );
  const isInCopy = copies
    .map(
      (copy) =>
        `EXISTS(SELECT 1 FROM ${copy} c WHERE ${key.map((column) => `c.${column} IS r.${column}`).join(" AND ")})`,
    )
    .join(" OR ");
  const unsure = db.run(`INSERT INTO temp.truth SELECT * FROM (${rows}) r WHERE NOT ${inTruth("r")} AND (${isInCopy})`);
  const wrong = db
    .query<{ n: number }, []>(
      `SELECT count(*) AS n FROM (SELECT ${keys} FROM (SELECT ${all.join(", ")} FROM (${everything})
         GROUP BY ${all.join(", ")} HAVING count(*) < 3) GROUP BY ${keys})`,
    )
    .get()!.n;
  db.run(`DELETE FROM ${table} WHERE ${allBut(kept)}`);
  for (const copy of copies) db.run(`DELETE FROM ${copy}`);
  db.run(`INSERT INTO ${table} SELECT * FROM temp.truth`);
  db.exec("DROP TABLE temp.truth");
  return { table, mended: wrong - unsure.changes, unsure: unsure.changes };
}
