import { Database } from "bun:sqlite";
import { forItsOwnerAlone } from "./database.ts";

/**
 * Takes the operating system's lock on a file and keeps it until it is disposed of or the process ends, however it ends. Returns
 * `undefined` when another process (or another holder in this one) has the lock. It creates the file if it is missing, readable
 * by its owner alone; the file stays and holds nothing. It is a SQLite database only because SQLite gives such locks on every
 * platform.
 */
export function holdFile(path: string): Disposable | undefined {
  forItsOwnerAlone(path);
  const db = new Database(path, { create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { [Symbol.dispose]: () => db.close() };
}
