/** SQLite's own opinion of every database file under `sdk/`. */
import { Database } from "bun:sqlite";
import { cpSync } from "node:fs";
import { databaseFiles } from "../support/database-files.ts";
import { scratchDir } from "../support/scratch.ts";

/** Opens each file read-only and checks it. Returns the faults. For a stopped server. */
export function checkDatabases(root: string): string[] {
  const files = databaseFiles(root);
  if (files.length === 0) return [`no database file under ${root}`];
  return files.flatMap((path) => checkFile(path));
}

/** The same over a copy, so that the recovery that opening does is not done in the server's stead. */
export function checkCopiedDatabases(root: string): string[] {
  using copy = scratchDir("svc-dbcheck");
  cpSync(root, copy.path, { recursive: true });
  return checkDatabases(copy.path);
}

function checkFile(path: string): string[] {
  const db = new Database(path, { readonly: true });
  try {
    const integrity = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
    const foreign = db.query("PRAGMA foreign_key_check").all();
    const faults = integrity.map((row) => row.integrity_check).filter((text) => text !== "ok");
    return [...faults, ...foreign.map((row) => `foreign key: ${JSON.stringify(row)}`)].map(
      (fault) => `${path}: ${fault}`,
    );
  } finally {
    db.close();
  }
}
