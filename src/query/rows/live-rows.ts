import type { Database } from "bun:sqlite";
import type { RowSource } from "./row-source.ts";
import { getRow } from "./statement-cache.ts";

/** Returns how many live rows the source has; the store keeps this count as it writes rows. */
export function liveRows(db: Database, { collectionId, live }: RowSource): number {
  if (live !== undefined) return live;
  if (collectionId === undefined) return 0;
  return (
    getRow<{ live: number }>(db, { text: "SELECT live FROM collections WHERE no = ?", params: [collectionId] })?.live ??
    0
  );
}
