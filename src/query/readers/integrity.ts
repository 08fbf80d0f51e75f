/**
 * Finds the faults of a database's structure that only a full pass over it shows. The pass takes long, so it runs on a reader.
 */
import type { Database } from "bun:sqlite";

/** Faults beyond this many tell nothing new. */
const MOST_FAULTS = 20;

export interface Miscounts {
  /** Numbers of collections whose stored count differs from the number of their live rows. */
  readonly collections: readonly number[];
  /** Numbers of indexes whose number of entries differs from the number of live rows. */
  readonly indexes: readonly number[];
}

const ROWS = `SELECT c.no, c.live,
  (SELECT count(*) FROM rows INDEXED BY sqlite_autoindex_rows_1 WHERE collectionId = c.no)
    - (SELECT count(*) FROM rows INDEXED BY rows_not_live WHERE collectionId = c.no AND state <> 1) AS rows FROM collections c`;

/** Returns what SQLite reports about a table and its indexes, one fault an entry; empty when they are in order. */
export const faultsOfTable = (db: Database, table: string): string[] =>
  db
    .query<{ integrity_check: string }, []>(`PRAGMA integrity_check("${table.replaceAll('"', '""')}")`)
    .all()
    .map((row) => row.integrity_check)
    .filter((line) => line !== "ok")
    .slice(0, MOST_FAULTS);

/** Compares the counts that the store keeps with what they count, and returns those that differ. */
export function miscountsIn(db: Database): Miscounts {
  const collections = db.query<{ no: number; live: number; rows: number }, []>(ROWS).all();
  const rowsByCollection = new Map(collections.map(({ no, rows }) => [no, rows]));
  const indexes = db
    .query<{ no: number; collectionId: number; entries: number }, []>(
      `SELECT no, collectionId, (SELECT count(*) FROM query_keys k WHERE k.idx = i.no AND k.part = 0) AS entries
       FROM query_indexes i WHERE state = 1`,
    )
    .all();
  return {
    collections: collections.filter(({ live, rows }) => live !== rows).map(({ no }) => no),
    indexes: indexes
      .filter(({ collectionId, entries }) => entries !== rowsByCollection.get(collectionId))
      .map(({ no }) => no),
  };
}
