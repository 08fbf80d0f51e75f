import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { loadSqliteVec, type SqliteVecResult } from "../store/database/sqlite-vec.ts";

/**
 * Returns the directory for native libraries that are extracted from the executable; they are extracted again whenever it is
 * missing.
 */
export function nativeDirectory(accountDir: string): string {
  return join(accountDir, "index", "native");
}

/**
 * Tests whether vectors can be searched on this machine, and warns if not (SRV-6): search then goes on without them. Never
 * throws.
 */
export function probeVectorSupport(accountDir: string, log: Log): SqliteVecResult {
  const db = new Database(":memory:");
  try {
    const result = loadSqliteVec(db, nativeDirectory(accountDir));
    if (result.loaded) log.debug("vector search is available", { version: result.version });
    else log.warn("vector search is not available; full-text search goes on without it", { reason: result.reason });
    return result;
  } finally {
    db.close();
  }
}
