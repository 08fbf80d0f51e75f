import type { Database } from "bun:sqlite";
import type { RowSource } from "../rows/row-source.ts";
import { iterateStatement } from "../rows/statement-cache.ts";

/**
 * Returns the indexes that queries of a source may use, by path: those that the source names, else those that the database has
 * now.
 */
export function indexesOf(db: Database, { collectionId, indexes }: RowSource): ReadonlyMap<string, number> {
  if (indexes) return indexes;
  if (collectionId === undefined) return new Map();
  const text = "SELECT path, no FROM query_indexes WHERE collectionId = ? AND state = 1 ORDER BY no";
  const found = new Map<string, number>();
  for (const { path, no } of iterateStatement<{ path: string; no: number }>(db, { text, params: [collectionId] }))
    found.set(path, no);
  return found;
}
