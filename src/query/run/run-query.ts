/**
 * Runs a snapshot query over stored rows: SQL narrows, the exact matcher decides, and a bounded heap keeps what the window needs.
 * Stored texts are returned unchanged. It works on a read-only connection, in a Worker as well.
 */
import type { Database } from "bun:sqlite";
import type { Filter } from "../filter/filter-types.ts";
import { findRows, type KeyWindow } from "../plan/key-window.ts";
import { type PathIndex, type PlainAccess, planQuery, type QueryPlan, selectNarrow } from "../plan/query-plan.ts";
import { ARRAY, KEPT_KEY, OWN_ENTRY } from "../rows/index-key.ts";
import { RowReader, type ShouldStop } from "../rows/row-reader.ts";
import { numbersById, ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import { idConditions, namesIds, namesOneId, type Sql, sameSql } from "../rows/sql-superset.ts";
import { compareEntries, type SortEntry, type SortKey, toSortEntry } from "../value/sort.ts";
import { createTopK, type TopK } from "../value/top-k.ts";
import { countMatches } from "./count-matches.ts";
import { type SortedRow as Found, rowsDescending } from "./descending-rows.ts";
import { checkLength } from "./reply-length.ts";
import { inSnapshot } from "./snapshot.ts";

export interface QueryRequest {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  /** How many records are wanted; absent, 0 or negative means all. */
  readonly limit?: number | undefined;
  /** How many matches are skipped; 0 and negative mean none. */
  readonly offset?: number | undefined;
  readonly includeTotal?: boolean | undefined;
  /** Records that are longer together are refused: request.too_large with the limit `reply`. */
  readonly mostChars?: number | undefined;
  /** When it returns true, the query ends with server.unavailable. */
  readonly shouldStop?: ShouldStop | undefined;
  /**
   * Matches all rows here that are read in the order of an index, so that `shouldStop` is called in time: SQLite would pass over
   * any number of rows that cannot match in one step.
   */
  readonly everyRow?: boolean | undefined;
}

export interface QueryStats {
  /** Rows read from SQLite. */
  readonly candidates: number;
  /** Rows among them that the matcher accepted; without includeTotal reading may stop early. */
  readonly matches: number;
  readonly ms: number;
  /** The path whose index the rows came from. */
  readonly index?: string;
}

export interface QueryResult {
  /** The JSON text of each record, as stored. */
  readonly records: string[];
  /** Only with includeTotal. */
  readonly total?: number;
  readonly hasNext?: boolean;
  readonly stats: QueryStats;
}

/**
 * Runs a query on one snapshot. Without a sort, records come by id ascending. The caller may pass the plan that it made just
 * before on the same connection. Errors: server.unavailable when `shouldStop` returns true.
 */
export function runQuery(db: Database, source: RowSource, request: QueryRequest, made?: QueryPlan): QueryResult {
  if (made && isOneStatement(made, request)) return answer(db, source, request, made);
  return inSnapshot(db, () => answer(db, source, request, made ?? planRequest(db, source, request)));
}

/** Whether a query is a single SELECT, which sees one snapshot without a transaction around it. */
function isOneStatement({ access }: QueryPlan, { includeTotal = false }: QueryRequest): boolean {
  return access.kind === "byId" && !access.skips && !access.patience && !includeTotal;
}

export function planRequest(db: Database, source: RowSource, request: QueryRequest): QueryPlan {
  const { filter, sort, limit = 0 } = request;
  return planQuery(db, source, { filter, sort, window: windowOf(request), ...(limit > 0 ? { limit } : {}) });
}

/** Returns how many matches have to be found to reach the last one wanted; Infinity means all. */
export function windowOf({ limit = 0, offset = 0 }: Pick<QueryRequest, "limit" | "offset">): number {
  return limit > 0 ? limit + Math.max(0, offset) : Number.POSITIVE_INFINITY;
}

function answer(db: Database, source: RowSource, request: QueryRequest, plan: QueryPlan): QueryResult {
  const startedAt = performance.now();
  const limit = request.limit !== undefined && request.limit > 0 ? request.limit : Number.POSITIVE_INFINITY;
  const offset = Math.min(Math.max(0, request.offset ?? 0), Number.MAX_SAFE_INTEGER);
  const reader = new RowReader(db, request.filter, request.shouldStop);
  const window = new WindowFinder(reader, source, request, plan).find(offset, limit);
  const { candidates, matches } = reader;
  const total = request.includeTotal ? (window.total ?? countMatches(reader, source, plan)) : undefined;
  checkLength(window.records, request.mostChars);
  const { access } = plan;
  const index = access.kind === "byKeys" ? access.keys.path : "index" in access ? access.index.path : undefined;
  return {
    records: window.records,
    ...(total === undefined ? {} : { total, hasNext: offset + window.records.length < total }),
    stats: {
      candidates,
      matches,
      ms: performance.now() - startedAt,
      ...(index === undefined ? {} : { index }),
    },
  };
}

const ALL: Sql = { text: "1", params: [] };

/** `total` is set when finding the window went over every match. */
interface Window {
  readonly records: string[];
  readonly total?: number;
}

class WindowFinder {
  readonly #reader: RowReader;
  readonly #source: RowSource;
  readonly #sort: readonly SortKey[];
  readonly #plan: QueryPlan;
  readonly #filter: Filter;
  readonly #everyRow: boolean;
  readonly #compare: (a: SortEntry, b: SortEntry) => number;

  constructor(reader: RowReader, source: RowSource, { filter, sort, everyRow = false }: QueryRequest, plan: QueryPlan) {
    this.#filter = filter;
    this.#reader = reader;
    this.#source = source;
    this.#sort = sort;
    this.#plan = plan;
    this.#everyRow = everyRow;
    this.#compare = compareEntries(sort);
  }

  find(offset: number, limit: number): Window {
    const { access } = this.#plan;
    if (access.kind !== "byKeys") return this.#findRows(access, offset, limit);
    const rows = findRows(this.#reader, access.keys, offset, limit);
    // Undefined means that the matches are elsewhere than was estimated: the way without these indexes then ends sooner.
    return rows ? { records: this.#reader.docs(rows) } : this.#findRows(access.instead, offset, limit);
  }

  #findRows(access: PlainAccess, offset: number, limit: number): Window {
    if (access.kind === "byId") {
      const { descending, patience } = access;
      if (access.skips) return this.#pageById(descending, offset, limit);
      return patience
        ? this.#walkById(descending, patience, offset, limit)
        : this.#windowById(descending, offset, limit);
    }
    if (access.kind === "bySort") return this.#windowBySort(access.index, offset, limit);
    return this.#windowByHeap(access, offset, limit);
  }

  /** The index on (collectionId, id) gives the order, so reading stops when the window is full. */
  #windowById(descending: boolean, offset: number, limit: number): Window {
    const { exact, may: all } = this.#plan.sql;
    const may = this.#everyRow && !namesIds(this.#filter) ? idConditions(this.#filter) : all;
    const parts = { columns: ROW_COLUMNS, conditions: [may], orderBy: descending ? "id DESC" : "id" };
    if (exact && sameSql(may, all)) {
      const select = selectFrom(this.#source, { ...parts, limit: { limit, offset } });
      const records: string[] = [];
      if (namesOneId(this.#filter)) {
        const row = this.#reader.row(select);
        if (row) records.push(row.doc);
      } else for (const { doc } of this.#reader.rows(select)) records.push(doc);
      this.#reader.matches += records.length;
      return offset === 0 && records.length < limit ? { records, total: records.length } : { records };
    }
    return this.#fill(this.#reader.matching(selectFrom(this.#source, parts)), offset, limit);
  }

  /** A page far into the order of ids, where everything matches: reads only the rows of the page. */
  #pageById(descending: boolean, offset: number, limit: number): Window {
    const numbers = this.#reader.entries<{ no: number }>(numbersById(this.#source, descending, limit, offset));
    return { records: this.#reader.docs([...numbers].map(({ no }) => no)) };
  }

  /**
   * Reads in the order of ids with a bound: this loop passes the rows that do not match, not SQLite, so that they are counted.
   */
  #walkById(
    descending: boolean,
    { rows: atMost, keys }: { readonly rows: number; readonly keys: KeyWindow },
    offset: number,
    limit: number,
  ): Window {
    const select = selectFrom(this.#source, {
      columns: ROW_COLUMNS,
      conditions: [],
      orderBy: descending ? "id DESC" : "id",
    });
    const records: string[] = [];
    let seen = 0;
    let passed = 0;
    for (const { doc } of this.#reader.rows(select)) {
      if (++passed > atMost) return this.#windowByKeys(keys, offset, limit);
      if (!this.#reader.accept(doc) || seen++ < offset) continue;
      records.push(doc);
      if (records.length === limit) return { records };
    }
    return { records, total: seen };
  }

  /** Reads all of the entries, however many they are. */
  #windowByKeys(keys: KeyWindow, offset: number, limit: number): Window {
    const rows = findRows(this.#reader, { ...keys, giveUpAfter: Number.POSITIVE_INFINITY }, offset, limit) ?? [];
    return { records: this.#reader.docs(rows) };
  }

  /** Takes matches that come in order, until the window is full. */
  #fill(matches: Iterable<{ readonly doc: string }>, offset: number, limit: number): Window {
    const records: string[] = [];
    let seen = 0;
    for (const { doc } of matches) {
      if (seen++ < offset) continue;
      records.push(doc);
      if (records.length === limit) return { records };
    }
    return { records, total: seen };
  }

  /** Puts everything that may match through a heap that keeps offset + limit of it. */
  #windowByHeap(access: PlainAccess, offset: number, limit: number): Window {
    const { sql } = this.#plan;
    const columns = ROW_COLUMNS;
    const selects =
      access.kind === "byFilter"
        ? selectNarrow(this.#source, access.index, columns)
        : [selectFrom(this.#source, { columns, conditions: [sql.may] })];
    const best = this.#heap(offset + limit);
    let total = 0;
    for (const select of selects) {
      for (const { doc, parsed } of this.#reader.matching(select)) {
        total++;
        best.offer({ doc, entry: toSortEntry(this.#sort, parsed) });
      }
    }
    const records = best
      .drain()
      .slice(offset)
      .map(({ doc }) => doc);
    return { records, total };
  }

  /**
   * The index on the first sort path gives the order of all keys except arrays and opaque ones. The rows of those are matched and
   * sorted separately, and the two sequences are merged.
   */
  #windowBySort(index: PathIndex, offset: number, limit: number): Window {
    const wanted = offset + limit;
    const opaque = this.#heap(wanted);
    const may = this.#everyRow ? ALL : index.sql.may;
    const parts = { columns: ROW_COLUMNS, index: index.no };
    const isOpaque: Sql = { text: `${KEPT_KEY.text} >= ${ARRAY} AND ${OWN_ENTRY}`, params: [] };
    for (const { doc, parsed } of this.#reader.matching(
      selectFrom(this.#source, { ...parts, conditions: [isOpaque, may] }),
    ))
      opaque.offer({ doc, entry: toSortEntry(this.#sort, parsed) });
    const window = this.#fill(this.#merge(this.#inOrder(index, may, wanted), opaque.drain()), offset, limit);
    // A bounded heap has dropped matches, so the merge has not seen them all.
    return Number.isFinite(wanted) ? { records: window.records } : window;
  }

  /** Yields the matches whose key is not opaque, in order. Read forwards, an index gives ties by id ascending at no cost. */
  #inOrder(index: PathIndex, may: Sql, wanted: number): Iterable<Found> {
    const [first, second] = this.#sort;
    if (first?.descending && !second) return rowsDescending(this.#reader, this.#source, index, first, may);
    const within = index.span
      ? [index.span.low, index.span.high]
      : [{ text: `${KEPT_KEY.text} < ${ARRAY}`, params: [] }];
    const ordered = selectFrom(this.#source, {
      columns: ROW_COLUMNS,
      index: index.no,
      conditions: [...within, { text: OWN_ENTRY, params: [] }, may],
      orderBy: `${KEPT_KEY.text}${first?.descending ? " DESC" : ""}${second ? "" : ", rid"}`,
    });
    return second ? this.#tiesSorted(ordered, wanted) : this.#entries(ordered);
  }

  *#entries(select: Sql): Generator<Found> {
    for (const { doc, parsed } of this.#reader.matching(select)) yield { doc, entry: toSortEntry(this.#sort, parsed) };
  }

  /** Rows come ordered by the first key alone; each run of equal first values is sorted into the full order. */
  *#tiesSorted(select: Sql, wanted: number): Generator<Found> {
    const [first] = this.#sort;
    const compareFirst = compareEntries(first ? [first] : []);
    let last: SortEntry | undefined;
    let ties = this.#heap(wanted);
    for (const found of this.#entries(select)) {
      const head: SortEntry = { values: found.entry.values, id: "" };
      if (last && compareFirst(head, last) !== 0) {
        yield* ties.drain();
        ties = this.#heap(wanted);
      }
      last = head;
      ties.offer(found);
    }
    yield* ties.drain();
  }

  *#merge(inOrder: Iterable<Found>, others: readonly Found[]): Generator<Found> {
    let next = 0;
    for (const found of inOrder) {
      for (; next < others.length; next++) {
        const other = others[next] as Found;
        if (this.#compare(other.entry, found.entry) > 0) break;
        yield other;
      }
      yield found;
    }
    yield* others.slice(next);
  }

  #heap(size: number): TopK<Found> {
    return createTopK<Found>(size, (a, b) => this.#compare(a.entry, b.entry));
  }
}
