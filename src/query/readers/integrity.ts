/** What of a database's structure shows only to who goes over all of it: on a reader, for that takes its time. */
import type { Database } from "bun:sqlite";

/** More say nothing more. */
const MOST_FAULTS = 20;

export interface Miscounts {
  /** Numbers of collections that have not as many live rows as stands beside them. */
  readonly collections: readonly number[];
  /** Numbers of indexes that have not one entry for each live row. */
  readonly indexes: readonly number[];
}

const ROWS = `SELECT c.no, c.live,
  (SELECT count(*) FROM rows INDEXED BY sqlite_autoindex_rows_1 WHERE collectionId = c.no)
    - (SELECT count(*) FROM rows INDEXED BY rows_not_live WHERE collectionId = c.no AND state <> 1) AS rows FROM collections c`;

/** What SQLite says of a table and its indexes, in lines; none when they are in order. */
export const faultsOfTable = (db: Database, table: string): string[] =>
  db
    .query<{ integrity_check: string }, []>(`PRAGMA integrity_check("${table.replaceAll('"', '""')}")`)
    .all()
    .map((row) => row.integrity_check)
    .filter((line) => line !== "ok")
    .slice(0, MOST_FAULTS);

/** Counts that are kept, against what they count. */
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
