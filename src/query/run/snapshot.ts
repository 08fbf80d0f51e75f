/** Gives all statements of a read the same view of the database. */
import type { Database } from "bun:sqlite";
import { useStatement } from "../rows/statement-cache.ts";

/** Runs `read` in a read transaction, so that a page and its total agree even if others commit meanwhile. */
export function inSnapshot<T>(db: Database, read: () => T): T {
  if (db.inTransaction) return read();
  useStatement(db, "BEGIN", (begin) => begin.run());
  try {
    return read();
  } finally {
    useStatement(db, "ROLLBACK", (rollback) => rollback.run());
  }
}
