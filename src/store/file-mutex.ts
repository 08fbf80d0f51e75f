import { Database } from "bun:sqlite";
import { forItsOwnerAlone } from "./database.ts";

/**
 * Takes the operating system's lock on a file and keeps it until disposed of or the process ends, however it ends.
 * `undefined` when another process (or another holder in this one) has it. The file is made if it is not there, for its owner
 * alone, and stays; it holds nothing. It is a SQLite database only because that gives such locks on every platform.
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
