import type { Database } from "bun:sqlite";
import { ENTRIES_OF_ELEMENTS, ENTRIES_OF_ROWS } from "./query-key-schema.ts";

const FILLING = 0;
const IN_USE = 1;
const DROPPING = 2;

/** An index that queries of one collection use, or will use once it is filled. */
export interface QueryIndex {
  readonly no: number;
  readonly collectionId: number;
  readonly path: string;
}

/** Where in a document the value of a path is, as JSON paths. */
export interface IndexedPath {
  readonly path: string;
  readonly at: string;
  /** The text of a date at that place. */
  readonly dateAt: string;
  /** The places above it, from the root down. */
  readonly prefixes: readonly string[];
}

const MAX_CACHED_COLLS = 10_000;

/** The indexes of collections and their keys (see query-key-schema.ts). Writes happen inside a transaction of the caller. */
export type QueryIndexTable = ReturnType<typeof createQueryIndexTable>;

export function createQueryIndexTable(db: Database) {
  const byState = db.query<QueryIndex, [number]>(
    "SELECT no, collectionId, path FROM query_indexes WHERE state = ? ORDER BY no",
  );
  const ofCollection = db.query<QueryIndex, [number]>(
    `SELECT no, collectionId, path FROM query_indexes WHERE collectionId = ? AND state = ${IN_USE} ORDER BY no`,
  );
  const add = db.query<null, [number, string, string, string, string | null]>(
    `INSERT INTO query_indexes(collectionId, path, at, date_at, prefixes, state) VALUES(?,?,?,?,?,${FILLING})`,
  );
  const stateOf = db.query<{ state: number }, [number]>("SELECT state FROM query_indexes WHERE no = ?");
  const setState = db.query<null, [number, number]>("UPDATE query_indexes SET state = ? WHERE no = ?");
  const addEntries = db.query<null, [number, string]>(
    `INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part) ${ENTRIES_OF_ROWS}`,
  );
  const lacksEntry = db.query<{ one: number }, [number, string]>(
    `WITH due(idx, key, rid, row, part) AS (${ENTRIES_OF_ROWS} UNION ALL ${ENTRIES_OF_ELEMENTS})
     SELECT 1 AS one FROM due LEFT JOIN query_keys k ON k.idx = due.idx AND k.key = due.key AND k.rid = due.rid
     WHERE k.row IS NOT due.row LIMIT 1`,
  );
  const addElements = db.query<null, [number, string]>(
    `INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part) ${ENTRIES_OF_ELEMENTS}`,
  );
  const kept = db.query<{ no: number; state: number }, [number]>(
    `SELECT no, state FROM query_indexes WHERE collectionId = ? AND state < ${DROPPING}`,
  );
  const dropEntries = db.query<null, [number, number]>("DELETE FROM query_keys WHERE idx = ? AND row = ?");
  const someKeys = db.query<null, [number, number]>(
    "DELETE FROM query_keys WHERE (idx, key, rid) IN (SELECT idx, key, rid FROM query_keys WHERE idx = ? LIMIT ?+0)",
  );
  const remove = db.query<null, [number]>("DELETE FROM query_indexes WHERE no = ?");
  const retireOfCollection = db.query<null, [number]>(
    `UPDATE query_indexes SET state = ${DROPPING} WHERE collectionId = ? AND state < ${DROPPING}`,
  );

  /** The indexes in use, by collection. It is never filled inside a transaction; every method that changes them drops it. */
  const inUse = new Map<number, ReadonlyMap<string, number>>();

  const fill = (no: number, rows: readonly number[]): void => {
    const numbers = JSON.stringify(rows);
    addEntries.run(no, numbers);
    addElements.run(no, numbers);
  };

  return {
    /** The indexes of a collection that hold every live row, by path. */
    inUse(collectionId: number): ReadonlyMap<string, number> {
      const known = inUse.get(collectionId);
      if (known) return known;
      const found = new Map(ofCollection.all(collectionId).map(({ path, no }) => [path, no]));
      if (db.inTransaction) return found;
      if (inUse.size >= MAX_CACHED_COLLS) inUse.clear();
      inUse.set(collectionId, found);
      return found;
    },
    filling: (): QueryIndex[] => byState.all(FILLING),
    byNo: (no: number): QueryIndex | undefined => byState.all(IN_USE).find((index) => index.no === no),
    allInUse: (): QueryIndex[] => byState.all(IN_USE),
    dropping: (): QueryIndex[] => byState.all(DROPPING),

    /** Adds an index: every row written from now on has its key, and `fill` adds the keys of older rows. Returns its number. */
    add: (collectionId: number, { path, at, dateAt, prefixes }: IndexedPath): number =>
      Number(
        add.run(collectionId, path, at, dateAt, prefixes.length === 0 ? null : JSON.stringify(prefixes))
          .lastInsertRowid,
      ),
    isFilling: (no: number): boolean => stateOf.get(no)?.state === FILLING,
    /** Adds the current keys of rows that are missing; none of a row that is gone. */
    fill,
    /**
     * Runs a change of a row without keeping its keys in step, and computes them anew afterwards. This is for a row whose former
     * content is not known.
     */
    rekeyed(collectionId: number, row: number, change: () => void): void {
      const indexes = kept.all(collectionId);
      for (const { no } of indexes) setState.run(DROPPING, no);
      change();
      for (const { no, state } of indexes) {
        setState.run(state, no);
        dropEntries.run(no, row);
        fill(no, [row]);
      }
    },
    /** Computes the keys of a row anew where one is missing. Returns whether one was. */
    mend(collectionId: number, row: number): boolean {
      const lacking = [...this.inUse(collectionId).values()].filter((no) => lacksEntry.get(no, `[${row}]`) !== null);
      for (const no of lacking) {
        dropEntries.run(no, row);
        fill(no, [row]);
      }
      return lacking.length > 0;
    },
    /** Makes an index available to queries: every row has its key. */
    finish({ no, collectionId }: QueryIndex): void {
      setState.run(IN_USE, no);
      inUse.delete(collectionId);
    },
    /** Takes an index out of use: queries and triggers ignore it from now on, and `dropSome` removes its keys. */
    retire({ no, collectionId }: QueryIndex): void {
      setState.run(DROPPING, no);
      inUse.delete(collectionId);
    },
    /** Removes up to `limit` keys of a retired index, and the index itself with the last one. Returns whether it is gone. */
    dropSome(no: number, limit: number): boolean {
      if (someKeys.run(no, limit).changes === limit) return false;
      remove.run(no);
      return true;
    },
    /** The same for all indexes of a collection. */
    retireCollection(collectionId: number): void {
      retireOfCollection.run(collectionId);
      inUse.delete(collectionId);
    },
  };
}
