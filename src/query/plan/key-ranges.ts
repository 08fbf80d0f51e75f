/** Finds the parts of an index that a filter can match. */
import type { Json } from "../../protocol/json.ts";
import type { Condition, Filter } from "../filter/filter-types.ts";
import { ARRAY, isIndexablePath, KEPT_KEY } from "../rows/index-key.ts";
import { COMPARE, conjoin, isIdPath, keyOperand, keyTestOf, NONE, type Sql } from "../rows/sql-superset.ts";
import { instantOf } from "../value/instant.ts";

/** A part of an index to which SQLite can seek. */
export interface KeyRange extends Sql {
  /**
   * The condition that every entry in the range meets, written as `filterToSql` writes it for a kept key; absent: the range's own
   * text.
   */
  readonly meets?: Sql;
}

/** The disjoint parts of an index that a condition can match. */
export interface KeyRanges {
  readonly path: string;
  readonly ranges: readonly KeyRange[];
}

/** Where the keys of a filter's matches begin and end, except keys of arrays and opaque keys. */
export interface KeySpan {
  readonly low: Sql;
  readonly high: Sql;
  /** Whether the span expresses all of the comparisons. */
  readonly isWhole: boolean;
}

/** A condition that nothing meets and that no filter has. */
const UNKNOWN: Sql = { text: "", params: [] };

type FieldFilter = Extract<Filter, { kind: "field" }>;
type Comparison = Extract<Condition, { op: "gt" | "gte" | "lt" | "lte" }>;

/**
 * Returns the ranges of kept keys for the conditions that every match must satisfy: what one index can narrow the search to. A
 * path with both a low and a high bound comes first. One element of an array may meet the low bound and another the high one, so
 * those ranges contain every array as a whole.
 */
export function keyRangesOf(filter: Filter): KeyRanges[] {
  const conditions = conditionsOf(filter);
  const paths = new Set(conditions.map(({ path }) => path.text));
  const spans = [...paths].flatMap((path): KeyRanges[] => {
    const bounds = comparisonsOf(conditions, path);
    const span = bounds.some(isLow) && bounds.some((bound) => !isLow(bound)) ? spanOf(bounds) : undefined;
    if (!span) return [];
    const meets = span.isWhole ? conjoin(bounds.map((bound) => keyTestOf(bound, KEPT_KEY)?.sure ?? NONE)) : UNKNOWN;
    const between: KeyRange = { text: `(${span.low.text} and ${span.high.text})`, params: paramsOf(span), meets };
    return [{ path, ranges: [between, { text: `${KEPT_KEY.text} >= ${ARRAY}`, params: [] }] }];
  });
  return [...spans, ...conditions.flatMap(rangesOf)];
}

/** Returns where matches lie by the comparisons that every match must satisfy; undefined where the path has none. */
export function keySpanOf(filter: Filter, path: string): KeySpan | undefined {
  return isIndexablePath(path) ? spanOf(comparisonsOf(conditionsOf(filter), path)) : undefined;
}

/** Returns the conditions on a path that every match must satisfy; undefined where there are none. */
export function conditionsOn(filter: Filter, path: string): Filter | undefined {
  const filters = conditionsOf(filter).filter((condition) => condition.path.text === path);
  return filters.length === 0 ? undefined : { kind: "and", filters };
}

function paramsOf({ low, high }: KeySpan): Sql["params"] {
  return [...low.params, ...high.params];
}

/** Returns the conditions that every match must satisfy, on paths that can have an index. */
function conditionsOf(filter: Filter): FieldFilter[] {
  if (filter.kind === "and") return filter.filters.flatMap(conditionsOf);
  if (filter.kind !== "field") return [];
  const { text } = filter.path;
  return isIdPath(text) || !isIndexablePath(text) ? [] : [filter];
}

function rangesOf({ path, condition }: FieldFilter): KeyRanges[] {
  const test = keyTestOf(condition, KEPT_KEY);
  return !test || test.may.text === "1" ? [] : [{ path: path.text, ranges: test.ranges }];
}

function comparisonsOf(conditions: readonly FieldFilter[], path: string): Comparison[] {
  return conditions.flatMap(({ path: { text }, condition }) =>
    text === path && isComparison(condition) && condition.value !== null ? [condition] : [],
  );
}

function isComparison(condition: Condition): condition is Comparison {
  return condition.op in COMPARE;
}

function isLow({ op }: Comparison): boolean {
  return op === "gt" || op === "gte";
}

/**
 * Takes the first of several low bounds and the first of several high bounds, and only comparisons with the type of the first
 * one.
 */
function spanOf(comparisons: readonly Comparison[]): KeySpan | undefined {
  const bounds = comparisons.flatMap((comparison) => {
    const type = typeOf(comparison.value);
    const operand = keyOperand(comparison.value);
    return type === undefined || typeof operand === "string" ? [] : [{ comparison, type, operand }];
  });
  const [first] = bounds;
  if (!first) return undefined;
  const ends = ENDS[first.type];
  const side = (low: boolean): Sql => {
    const bound = bounds.find(({ comparison, type }) => type === first.type && isLow(comparison) === low);
    if (!bound) return { text: low ? ends.low : ends.high, params: [] };
    const { comparison, operand } = bound;
    return { text: `${KEPT_KEY.text} ${COMPARE[comparison.op]} ${operand.text}`, params: operand.params };
  };
  const isWhole = bounds.length === comparisons.length && bounds.every(({ type }) => type === first.type);
  return { low: side(true), high: side(false), isWhole: isWhole && comparisons.length === 2 };
}

type KeyType = "number" | "string" | "boolean" | "date";

/** Where the keys of a type begin and end (src/query/rows/index-key.ts). */
const ENDS: Readonly<Record<KeyType, { readonly low: string; readonly high: string }>> = {
  number: { low: `${KEPT_KEY.text} > -9e999`, high: `${KEPT_KEY.text} < ''` },
  string: { low: `${KEPT_KEY.text} >= ''`, high: `${KEPT_KEY.text} < x''` },
  boolean: { low: `${KEPT_KEY.text} >= x'10'`, high: `${KEPT_KEY.text} <= x'11'` },
  date: { low: `${KEPT_KEY.text} >= x'20'`, high: `${KEPT_KEY.text} < x'21'` },
};

function typeOf(value: Json): KeyType | undefined {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean")
    return typeof value as KeyType;
  return instantOf(value) === undefined ? undefined : "date";
}
