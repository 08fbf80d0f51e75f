import { STEP_NS } from "../../query/filter/filter-match.ts";
import type { ReaderPool } from "../../query/readers/reader-pool.ts";
import { rowsOf } from "../../query/rows/row-source.ts";
import { type QueryRequest, type QueryResult, runQuery } from "../../query/run/run-query.ts";
import { ROW_LIVE } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { MOST_STEPS } from "./pattern-shelf.ts";

/** A read took longer than it may hold the server's event loop, and was given up. */
export class ReadTooLong extends Error {}

/** The terms of a query as its caller gave them: a reader parses them again. */
export interface RawTerms {
  readonly filter: unknown;
  readonly sort: unknown;
}

const NOTHING: QueryResult = { records: [], stats: { candidates: 0, matches: 0, ms: 0 } };

/** Reads one collection. */
export interface CollectionReader {
  /**
   * Reads it as it is after the last commit.
   * @throws ReadTooLong after `maxMs`, or before it matches what may take longer; a single step of SQLite is not interrupted
   */
  now(request: QueryRequest, maxMs?: number): QueryResult;
  /** Reads it off the loop, as it is at some moment between the call and the answer. */
  aside(terms: RawTerms, limit: number, includeTotal: boolean): Promise<QueryResult>;
  /** Returns the stored text of a live record. Throws when there is none: the window then differs from the store. */
  text(id: string): string;
}

/** What it reads a collection from. */
export type CollectionTables = Pick<SpaceStore, "db" | "rows" | "path">;

/** `collectionId` returns the collection's number; undefined while nothing was ever written there. */
export function createCollectionReader(
  { db, rows, path }: CollectionTables,
  readers: Pick<ReaderPool, "run">,
  collectionId: () => number | undefined,
): CollectionReader {
  const empty = (includeTotal: boolean): QueryResult =>
    includeTotal ? { ...NOTHING, total: 0, hasNext: false } : NOTHING;
  return {
    now(request, maxMs = Number.POSITIVE_INFINITY) {
      const no = collectionId();
      if (no === undefined) return empty(request.includeTotal ?? false);
      const until = performance.now() + maxMs;
      const mostSteps = Math.min(MOST_STEPS, (maxMs * 1_000_000) / STEP_NS);
      const shouldStop = (steps: number): boolean => {
        if (performance.now() > until || steps > mostSteps) throw new ReadTooLong();
        return false;
      };
      return rows.soundly(() => runQuery(db, rowsOf(no), { ...request, shouldStop }));
    },
    async aside({ filter, sort }, limit, includeTotal) {
      const no = collectionId();
      if (no === undefined) return empty(includeTotal);
      const job = { kind: "query", source: rowsOf(no), filter, sort, limit, includeTotal } as const;
      return rows.soundlyLater(no, () => readers.run(path, job));
    },
    text(id) {
      const no = collectionId();
      const row = no === undefined ? undefined : rows.get(no, id);
      if (row?.state !== ROW_LIVE || row.doc === null) throw new Error(`record ${id} is held but not live`);
      return row.doc;
    },
  };
}
