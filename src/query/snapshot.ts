/** One view of the database for all statements of a read. */
import type { Database } from "bun:sqlite";

/** Runs `read` in a read transaction, so that a page and its total agree whatever others commit meanwhile. */
export function inSnapshot<T>(db: Database, read: () => T): T {
  if (db.inTransaction) return read();
  db.run("BEGIN");
  try {
    return read();
  } finally {
    db.run("ROLLBACK");
  }
}
