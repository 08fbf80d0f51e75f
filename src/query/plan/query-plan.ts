/** Chooses the cheapest way to the rows of a query. The plan affects only the cost, never the result. */
import type { Database } from "bun:sqlite";
import { type Filter, isMatchAll } from "../filter/filter-types.ts";
import { ARRAY, KEPT_KEY } from "../rows/index-key.ts";
import { liveRows } from "../rows/live-rows.ts";
import { notLive, type RowSource, selectFrom } from "../rows/row-source.ts";
import { filterToSql, type Sql, type SqlFilter } from "../rows/sql-superset.ts";
import { getRow } from "../rows/statement-cache.ts";
import type { SortKey } from "../value/sort.ts";
import { cheapestKeyWindow, PATIENCE } from "./key-plan.ts";
import { type KeyRange, type KeyRanges, type KeySpan, keyRangesOf, keySpanOf } from "./key-ranges.ts";
import { exactConditions, type KeyCondition, type KeyWindow } from "./key-window.ts";
import { candidateHeap, type Estimate, idWalk, keyWalk, sortWalk, wholeScan } from "./plan-cost.ts";
import { indexesOf } from "./query-index.ts";

/** An index, and the filter in the terms of that index. */
export interface PathIndex {
  readonly path: string;
  readonly no: number;
  /** Whether rows have arrays at the path, so that several elements of one row may match. */
  readonly hasArrays: boolean;
  /** The filter in terms of the kept key where there are no arrays, else in terms of `doc`. */
  readonly sql: SqlFilter;
  /** Where in the index the matches lie that are neither arrays nor opaque; undefined means anywhere. */
  readonly span: KeySpan | undefined;
}

/** An index and the disjoint ranges of it that hold everything a filter may match. */
export interface NarrowIndex extends PathIndex {
  readonly ranges: readonly KeyRange[];
  /** How many entries the ranges have, as far as they were counted. */
  readonly candidates: number;
}

type Access =
  /** The keys of indexes name the rows, so only those of the window are read. */
  { readonly kind: "byKeys"; readonly keys: KeyWindow; readonly instead: PlainAccess } | PlainAccess;

/** After this many rows the matches are not spread as was estimated, and the keys of an index find them sooner. */
interface Patience {
  readonly rows: number;
  readonly keys: KeyWindow;
}

/** Ways that read rows and run the matcher on each. */
export type PlainAccess =
  /** Rows by id; stops as soon as the window is full. `skips`: the rows before the window are passed without being read. */
  | { readonly kind: "byId"; readonly descending: boolean; readonly skips?: boolean; readonly patience?: Patience }
  /** Rows in the order of an index on the first sort path. */
  | { readonly kind: "bySort"; readonly index: PathIndex }
  /** The candidates one index gives, in no useful order. */
  | { readonly kind: "byFilter"; readonly index: NarrowIndex }
  /** Every row, in no useful order. */
  | { readonly kind: "scan" };

export interface QueryPlan {
  readonly access: Access;
  readonly estimate: Estimate;
  /** What the filter demands, where the indexes express all of it; counting then reads no rows. */
  readonly exact: readonly KeyCondition[] | undefined;
  /** The best index for the filter. Counting uses it even where `access` does not. */
  readonly narrow: NarrowIndex | undefined;
  /** The indexes of the collection, by path. */
  readonly indexes: ReadonlyMap<string, number>;
  /** The filter in terms of `doc`. */
  readonly sql: SqlFilter;
}

export interface PlanRequest {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  /** How many matches are wanted, so that reading in order can stop early; Infinity is all. */
  readonly window: number;
  /** How many of them, counted from the end, are returned; absent means all. */
  readonly limit?: number;
}

/** Up to this many candidates are always fetched and sorted rather than looked for in sorted order. */
export const FEW_CANDIDATES = 2_000;
/** The share of an index's candidates that is taken to match where the filter has conditions of other paths. */
const MATCHING_SHARE = 0.1;
/** How far candidates are counted to tell which index has the fewest; an index steps through this in half a millisecond. */
export const COUNTED_CANDIDATES = 10_000;

export function planQuery(db: Database, source: RowSource, request: PlanRequest): QueryPlan {
  const { filter } = request;
  const indexes = indexesOf(db, source);
  const live = liveRows(db, source);
  const exact = isMatchAll(filter) ? [] : indexes.size === 0 ? undefined : exactConditions(db, filter, indexes);
  const plain = planRows(db, source, request, { indexes, live });
  const estimate = estimateOf(live, request, plain);
  const base = { narrow: plain.narrow, exact, indexes, sql: filterToSql(filter) };
  const keys = exact && cheapestKeyWindow(db, exact, request, { indexes, live });
  if (!keys) return { ...base, access: plain.access, estimate };
  const walk = plain.access.kind === "byId" ? idWalk(request.window, keys.matches, live) : estimate;
  if (keys.estimate.costMs < walk.costMs) {
    const access: Access = { kind: "byKeys", keys: keys.window, instead: plain.access };
    return { ...base, access, estimate: keys.estimate };
  }
  const patience: Patience = { rows: PATIENCE * walk.rows, keys: keys.window };
  const access = plain.access.kind === "byId" ? { ...plain.access, patience } : plain.access;
  return { ...base, access, estimate: walk };
}

/** Returns the cheapest of the ways that run the matcher. */
function planRows(
  db: Database,
  source: RowSource,
  { filter, sort, window, limit }: PlanRequest,
  { indexes, live }: { readonly indexes: ReadonlyMap<string, number>; readonly live: number },
): { access: PlainAccess; narrow: NarrowIndex | undefined } {
  const offset = limit === undefined ? 0 : window - limit;
  const byId = idOrderOf(sort, isMatchAll(filter) && isWorthSkipping(db, source, offset));
  const bounded = Number.isFinite(window);
  const inOrder: PlainAccess | undefined = bounded ? (byId ?? sortOrderOf(db, filter, sort, indexes)) : undefined;
  const worthFetching = inOrder ? fetchedRatherThanRead(live, filter, window) : COUNTED_CANDIDATES;
  const narrow =
    indexes.size === 0 || isMatchAll(filter)
      ? undefined
      : narrowest(db, source, filter, keyRangesOf(filter), indexes, worthFetching);
  const byFilter = narrow && !(inOrder && (narrow.candidates >= worthFetching || isSpanInOrder(inOrder, narrow)));
  const otherwise: PlainAccess = inOrder ?? byId ?? { kind: "scan" };
  return { access: byFilter ? { kind: "byFilter", index: narrow } : otherwise, narrow };
}

/**
 * Candidates are counted only up to a bound, so there may be more of them than is known here: reading in order then looks more
 * expensive than it is.
 */
function estimateOf(
  live: number,
  { filter, window, limit = window }: PlanRequest,
  { access, narrow }: { access: PlainAccess; narrow: NarrowIndex | undefined },
): Estimate {
  const matches = isMatchAll(filter) ? live : (narrow?.candidates ?? live * MATCHING_SHARE);
  switch (access.kind) {
    case "byId":
      if (access.skips) return keyWalk({ entries: Math.min(window, live), probes: 0, isSorted: false, rows: limit });
      return idWalk(window, matches, live);
    case "bySort":
      // Every entry within the span may match.
      return sortWalk(window, access.index.span ? live : matches, live);
    case "byFilter":
      return candidateHeap(access.index.candidates);
    case "scan":
      return wholeScan(live);
  }
}

/** Whether reading in order reads only the candidates, and may stop before the last of them. */
function isSpanInOrder(inOrder: PlainAccess, { path, hasArrays }: NarrowIndex): boolean {
  return inOrder.kind === "bySort" && inOrder.index.path === path && inOrder.index.span !== undefined && !hasArrays;
}

/**
 * Returns up to how many candidates it is cheaper to fetch all of them than to read rows in order until the window is full. With
 * c candidates spread over n rows, reading in order takes window * n / c rows, and more if fewer of the candidates match.
 */
function fetchedRatherThanRead(live: number, filter: Filter, window: number): number {
  const parts = filter.kind === "and" ? filter.filters : [filter];
  const paths = new Set(parts.map((part) => (part.kind === "field" ? part.path.text : part)));
  const share = paths.size === 1 ? 1 : MATCHING_SHARE;
  return Math.max(FEW_CANDIDATES, Math.ceil(Math.sqrt((window * live) / share)));
}

/**
 * Whether reading the rows of `narrow` at random is cheaper than reading all rows: always if they are few, else below a quarter.
 */
export function isNarrowEnough(db: Database, source: RowSource, { narrow }: QueryPlan): boolean {
  if (!narrow) return false;
  if (narrow.candidates < COUNTED_CANDIDATES) return true;
  const quarter = Math.ceil(liveRows(db, source) / 4);
  return countUpTo(db, source, narrow.no, narrow.ranges, quarter) < quarter;
}

/** A query without a sort is in the order of ids, and so is one whose sort begins with the id: ids have no ties. */
function idOrderOf([first]: readonly SortKey[], skips: boolean): Extract<PlainAccess, { kind: "byId" }> | undefined {
  if (first !== undefined && first.path.text !== "id") return undefined;
  return { kind: "byId", descending: first?.descending ?? false, ...(skips ? { skips } : {}) };
}

/**
 * The order of ids does not show which rows are live. To pass rows without reading them, the rows that are not live are collected
 * first; that pays off for a page far into the order, where few rows are not live.
 */
function isWorthSkipping(db: Database, source: RowSource, offset: number): boolean {
  const live = liveRows(db, source);
  if (offset < FEW_CANDIDATES || !Number.isFinite(offset) || live === 0) return false;
  const { text, params } = notLive(source);
  const bound = 4 * Math.min(offset, live);
  const counted = { text: `SELECT count(*) AS n FROM (${text} LIMIT ?+0)`, params: [...params, bound] };
  return (getRow<{ n: number }>(db, counted)?.n ?? 0) < bound;
}

function sortOrderOf(
  db: Database,
  filter: Filter,
  [first]: readonly SortKey[],
  indexes: ReadonlyMap<string, number>,
): PlainAccess | undefined {
  const index = first && pathIndex(db, filter, first.path.text, indexes);
  return index && { kind: "bySort", index };
}

/** Returns the index of a path, if there is one. */
export function pathIndex(
  db: Database,
  filter: Filter,
  path: string,
  indexes: ReadonlyMap<string, number>,
): PathIndex | undefined {
  const no = indexes.get(path);
  if (no === undefined) return undefined;
  const text = `SELECT 1 AS found FROM query_keys WHERE idx = ? AND ${KEPT_KEY.text} = ${ARRAY} LIMIT 1`;
  const hasArrays = getRow(db, { text, params: [no] }) !== undefined;
  const sql = filterToSql(filter, hasArrays ? undefined : path);
  return { path, no, hasArrays, sql, span: keySpanOf(filter, path) };
}

/** Returns the condition whose index has the fewest candidates, counted as far as the decision needs, up to `bound`. */
function narrowest(
  db: Database,
  source: RowSource,
  filter: Filter,
  conditions: readonly KeyRanges[],
  indexes: ReadonlyMap<string, number>,
  bound: number,
): NarrowIndex | undefined {
  let best: Pick<NarrowIndex, "path" | "no" | "ranges" | "candidates"> | undefined;
  for (const { path, ranges } of conditions) {
    const no = indexes.get(path);
    if (no === undefined) continue;
    const candidates = countUpTo(db, source, no, ranges, best?.candidates ?? bound);
    if (!best || candidates < best.candidates) best = { path, no, ranges, candidates };
  }
  const index = best && pathIndex(db, filter, best.path, indexes);
  return best && index && { ...best, ...index };
}

/**
 * Selects the rows to which an index narrows a search, each once: a SELECT of columns of `rows` for each range, or one for all.
 */
export function selectNarrow(source: RowSource, narrow: NarrowIndex, columns: string): Sql[] {
  const { no: index, ranges, hasArrays, sql } = narrow;
  if (!hasArrays) return ranges.map((range) => selectFrom(source, { columns, index, conditions: [range, sql.may] }));
  const parts = ranges.map((range) =>
    selectFrom(source, { columns: "row", index, keysOnly: true, conditions: [range] }),
  );
  if (parts.length === 0) return [];
  const among: Sql = {
    text: `no IN (${parts.map(({ text }) => text).join(" UNION ALL ")})`,
    params: parts.flatMap(({ params }) => params),
  };
  return [selectFrom(source, { columns, conditions: [among, sql.may] })];
}

function countUpTo(db: Database, source: RowSource, index: number, ranges: readonly Sql[], bound: number): number {
  let count = 0;
  for (const range of ranges) {
    if (count >= bound) break;
    const inner = selectFrom(source, { columns: "1", index, keysOnly: true, conditions: [range] });
    const text = `SELECT count(*) AS n FROM (${inner.text} LIMIT ?+0)`;
    count += getRow<{ n: number }>(db, { text, params: [...inner.params, bound - count] })?.n ?? 0;
  }
  return count;
}
