/** Loads sqlite-vec into a connection. Search goes on without vectors where that is impossible, and says why. */
import type { Database } from "bun:sqlite";
import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { makeLibraryDirectory, putLibrary } from "../../base/native-library.ts";
import { sqliteVecLibrary } from "./sqlite-vec-library.ts";

export type SqliteVecResult = { loaded: true; version: string } | { loaded: false; reason: string };

/**
 * Loads the vec0 module into `db`. `privateDir` (absolute, inside the data root) receives the embedded library, since
 * a file inside the executable can be read but not loaded. On macOS the system's SQLite takes no extensions, so the
 * result there is `loaded: false` unless `Database.setCustomSQLite` named another one before the first open.
 * Never throws: a missing or refused library is a result, not a failure of the caller.
 */
export function loadSqliteVec(
  db: Database,
  privateDir: string,
  library: string | null = sqliteVecLibrary,
): SqliteVecResult {
  if (library === null) {
    return { loaded: false, reason: `sqlite-vec has no library for ${process.platform}-${process.arch}` };
  }
  try {
    const path = Bun.isStandaloneExecutable ? extractLibrary(library, privateDir) : library;
    db.loadExtension(path, "sqlite3_vec_init");
    const row = db.query<{ version: string }, []>("select vec_version() as version").get();
    return row ? { loaded: true, version: row.version } : { loaded: false, reason: "vec_version() gave no row" };
  } catch (error) {
    return { loaded: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Copies the library `source` into `privateDir` (made 0700) under a name that its content decides, and returns the
 * copy's path. An existing copy is used only if its bytes are the same.
 */
export function extractLibrary(source: string, privateDir: string): string {
  const bytes = readFileSync(source);
  makeLibraryDirectory(privateDir);
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const target = join(privateDir, `${basename(source, extname(source)).split("-")[0]}-${digest}${extname(source)}`);
  const isThere = () => sameBytes(target, bytes);
  if (!isThere()) putLibrary(target, bytes, isThere);
  return target;
}

function sameBytes(path: string, expected: Buffer): boolean {
  try {
    return readFileSync(path).equals(expected);
  } catch {
    return false;
  }
}
