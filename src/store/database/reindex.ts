import { type Database, SQLiteError } from "bun:sqlite";

/** How making the indexes of a table anew went. `twins`: two rows say that they are the same one, so no index can be made of them. */
export type Reindexed = "done" | "twins";

const TWINS = ["SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"];

export function reindex(db: Database, table: string): Reindexed {
  try {
    db.exec(`REINDEX ${table}`);
    return "done";
  } catch (error) {
    if (error instanceof SQLiteError && TWINS.includes(error.code ?? "")) return "twins";
    throw error;
  }
}
