/** Keeps prepared statements by their text, a bounded number per connection: preparing one costs more than a read by id. */
import type { Database, Statement } from "bun:sqlite";
import type { Sql } from "./sql-superset.ts";

const MAX_STATEMENTS = 128;
/** Longer texts hold lists of values and hardly ever come twice. */
const MAX_TEXT_CHARS = 8_000;

const idleByDatabase = new WeakMap<Database, Map<string, Statement>>();

/** Runs `use` with the prepared statement of a text. A statement has only one cursor, so it is out of the cache while in use. */
export function useStatement<T>(db: Database, text: string, use: (statement: Statement) => T): T {
  const statement = take(db, text);
  try {
    return use(statement);
  } finally {
    giveBack(db, text, statement);
  }
}

/** The first row of a SELECT; undefined where there is none. */
export function getRow<T>(db: Database, { text, params }: Sql): T | undefined {
  return useStatement(db, text, (statement) => (statement.get(...params) as T | null) ?? undefined);
}

/** Yields the rows of a SELECT one by one. The caller may stop at any row. */
export function* iterateStatement<T>(db: Database, { text, params }: Sql): Generator<T> {
  const statement = take(db, text);
  try {
    for (const row of statement.iterate(...params)) yield row as T;
  } finally {
    giveBack(db, text, statement);
  }
}

/** Closes a connection together with its statements, because the file stays open as long as one of them is left. */
export function closeWithStatements(db: Database): void {
  for (const statement of idleByDatabase.get(db)?.values() ?? []) statement.finalize();
  idleByDatabase.delete(db);
  db.close();
}

function take(db: Database, text: string): Statement {
  const idle = idleByDatabase.get(db);
  const statement = idle?.get(text);
  if (statement === undefined) return db.prepare(text);
  idle?.delete(text);
  return statement;
}

function giveBack(db: Database, text: string, statement: Statement): void {
  let idle = idleByDatabase.get(db);
  if (!idle) {
    idle = new Map();
    idleByDatabase.set(db, idle);
  }
  if (text.length > MAX_TEXT_CHARS || idle.has(text)) {
    statement.finalize();
    return;
  }
  idle.set(text, statement);
  if (idle.size <= MAX_STATEMENTS) return;
  const [oldest] = idle;
  if (!oldest) return;
  idle.delete(oldest[0]);
  oldest[1].finalize();
}
