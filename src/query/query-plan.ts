/** Which way to the rows of a query is the shortest. The plan decides cost alone, never the result. */
import type { Database } from "bun:sqlite";
import { type Filter, isMatchAll } from "./filter-types.ts";
import { indexedPaths, indexKeySql, indexName } from "./index-key.ts";
import { type RowSource, selectFrom } from "./row-source.ts";
import type { SortKey } from "./sort.ts";
import { filterToSql, type KeyRanges, keyRangesOf, type Sql, type SqlFilter } from "./sql-superset.ts";
import { getRow } from "./statement-cache.ts";

export interface SortIndex {
  readonly name: string;
  /** The key expression of the first sort path. */
  readonly key: string;
}

/** An index and the disjoint ranges of it that hold everything a filter may match. */
export interface NarrowIndex {
  readonly index: string;
  readonly ranges: readonly Sql[];
  /** Rows in the ranges, counted up to COUNTED_CANDIDATES. */
  readonly candidates: number;
}

type Access =
  /** Rows by id; stops as soon as the window is full. */
  | { readonly kind: "byId"; readonly descending: boolean }
  /** Rows in the order of an index on the first sort path. */
  | { readonly kind: "bySort"; readonly index: SortIndex }
  /** The candidates one index gives, in no useful order. */
  | ({ readonly kind: "byFilter" } & NarrowIndex)
  /** Every row, in no useful order. */
  | { readonly kind: "scan" };

export interface QueryPlan {
  readonly access: Access;
  /** The best index for the filter, whether or not `access` takes it; counting does. */
  readonly narrow: NarrowIndex | undefined;
  /** An index that holds every live row of the collection: counting it reads no row. */
  readonly whole: string | undefined;
  /** The paths of the collection that have an index. */
  readonly indexed: ReadonlySet<string>;
  readonly sql: SqlFilter;
}

export interface PlanRequest {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  /** Whether only a bounded window is wanted, so that reading in order can stop early. */
  readonly bounded: boolean;
}

/** Up to so many candidates are fetched and sorted rather than looked for in sorted order. */
const FEW_CANDIDATES = 2_000;
/** How far candidates are counted to tell which index has the fewest; an index steps through this in half a millisecond. */
export const COUNTED_CANDIDATES = 10_000;

export function planQuery(db: Database, source: RowSource, { filter, sort, bounded }: PlanRequest): QueryPlan {
  const sql = filterToSql(filter);
  const indexed = source.coll === undefined ? new Set<string>() : indexedPaths(db, source.coll);
  const sortIndex = sortIndexOf(source, sort, indexed);
  const byId = idOrderOf(sort);
  const ordered = byId ?? (sortIndex && { kind: "bySort", index: sortIndex });
  const narrow = isMatchAll(filter) ? undefined : narrowest(db, source, keyRangesOf(filter), indexed);
  const inOrder: Access | undefined = bounded ? ordered : undefined;
  const [anyPath] = indexed;
  const whole = anyPath === undefined ? undefined : indexName(source.coll ?? 0, anyPath);
  const byFilter = narrow && !(inOrder && narrow.candidates >= FEW_CANDIDATES);
  const otherwise: Access = inOrder ?? byId ?? { kind: "scan" };
  return { access: byFilter ? { kind: "byFilter", ...narrow } : otherwise, narrow, whole, indexed, sql };
}

/** Whether reading the rows of `narrow` at random is cheaper than reading all: always if few, else below a quarter. */
export function isNarrowEnough(db: Database, source: RowSource, { narrow, whole }: QueryPlan): boolean {
  if (!narrow) return false;
  if (narrow.candidates < COUNTED_CANDIDATES || whole === undefined) return true;
  const unbounded = Number.MAX_SAFE_INTEGER;
  const all = countUpTo(db, source, whole, [{ text: "1", params: [] }], unbounded);
  return countUpTo(db, source, narrow.index, narrow.ranges, unbounded) * 4 < all;
}

/** No sort is the order of ids, and so is one that begins with the id: nothing ties after it. */
function idOrderOf([first]: readonly SortKey[]): Extract<Access, { kind: "byId" }> | undefined {
  if (first !== undefined && first.path.text !== "id") return undefined;
  return { kind: "byId", descending: first?.descending ?? false };
}

function sortIndexOf(source: RowSource, sort: readonly SortKey[], indexed: ReadonlySet<string>): SortIndex | undefined {
  const path = sort[0]?.path.text;
  if (path === undefined || source.coll === undefined || !indexed.has(path)) return undefined;
  const key = indexKeySql(path);
  return key === undefined ? undefined : { name: indexName(source.coll, path), key };
}

/** The condition with the fewest candidates by its index, counted as far as deciding needs. */
function narrowest(db: Database, source: RowSource, conditions: readonly KeyRanges[], indexed: ReadonlySet<string>) {
  let best: NarrowIndex | undefined;
  const usable = conditions.filter(({ path }) => indexed.has(path));
  for (const { path, ranges } of usable) {
    const index = indexName(source.coll ?? 0, path);
    const bound = best?.candidates ?? COUNTED_CANDIDATES;
    const candidates = countUpTo(db, source, index, ranges, bound);
    if (!best || candidates < best.candidates) best = { index, ranges, candidates };
  }
  return best;
}

function countUpTo(db: Database, source: RowSource, index: string, ranges: readonly Sql[], bound: number): number {
  let count = 0;
  for (const range of ranges) {
    if (count >= bound) break;
    const inner = selectFrom(source, { columns: "1", index, conditions: [range] });
    const text = `SELECT count(*) AS n FROM (${inner.text} LIMIT ?+0)`;
    count += getRow<{ n: number }>(db, { text, params: [...inner.params, bound - count] })?.n ?? 0;
  }
  return count;
}
