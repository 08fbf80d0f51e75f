/**
 * Writes filters as SQL. Every filter becomes two conditions over a row: `may` holds for every document that the exact matcher
 * accepts (a superset), and `sure` holds only for such documents (a subset). Where the two are the same, the SQL is exact. Values
 * are bound; only checked paths and constants become text.
 */
import type { RE2JS } from "re2js";
import type { Json } from "../../protocol/json.ts";
import type { Condition, Filter, TypeName } from "../filter/filter-types.ts";
import { afterPrefix, literalsOf } from "../filter/regex-literal.ts";
import { instantOf, toInstant } from "../value/instant.ts";
import { ARRAY, computedKey, KEPT_KEY, type KeyColumn, OPAQUE } from "./index-key.ts";

export type SqlValue = string | number;

export interface Sql {
  readonly text: string;
  readonly params: readonly SqlValue[];
}

export interface SqlFilter {
  /** True of every row the matcher accepts. */
  readonly may: Sql;
  /** True only of rows the matcher accepts. */
  readonly sure: Sql;
  /** `may` and `sure` are the same: LIMIT and COUNT may be pushed down. */
  readonly exact: boolean;
  /** Whether the conditions name columns of `rows`; false if they need only a kept key. */
  readonly needsRow: boolean;
}

/** SQLite takes 32,766 parameters; a filter that would bind more than this is left to the matcher. */
const MAX_PARAMS = 10_000;
const MAX_TEXT_CHARS = 200_000;

const TRUE: Sql = { text: "1", params: [] };
/** True of no row. */
export const NONE: Sql = { text: "0", params: [] };

/** A bare parameter that is compared for equality in a join makes SQLite plan the statement anew each time it is run. */
export const BOUND = "+?";

interface Bounds {
  readonly may: Sql;
  readonly sure: Sql;
}

const UNKNOWN: Bounds = { may: TRUE, sure: NONE };
const NEVER: Bounds = { may: NONE, sure: NONE };

/**
 * Compiles a filter over rows with the columns `id` and `doc`. The key of the path `kept` is read from `query_keys`, which must
 * have exactly one entry a row for that path: no arrays. `key` says what is known about that key.
 */
export function filterToSql(filter: Filter, kept?: string, key: KeyColumn = KEPT_KEY): SqlFilter {
  const scope: Scope = { kept, key, needsRow: false };
  const bounds = toBounds(filter, scope);
  const fits = [bounds.may, bounds.sure].every(
    ({ text, params }) => params.length <= MAX_PARAMS && text.length <= MAX_TEXT_CHARS,
  );
  if (!fits) return { ...UNKNOWN, exact: false, needsRow: false };
  return { ...bounds, exact: sameSql(bounds.may, bounds.sure), needsRow: scope.needsRow };
}

export function conjoin(parts: readonly Sql[]): Sql {
  return join(parts, " and ", TRUE, NONE);
}

function disjoin(parts: readonly Sql[]): Sql {
  return join(parts, " or ", NONE, TRUE);
}

function join(parts: readonly Sql[], word: string, neutral: Sql, absorbing: Sql): Sql {
  if (parts.some((part) => part.text === absorbing.text)) return absorbing;
  const kept = parts.filter((part) => part.text !== neutral.text);
  const [only] = kept;
  if (only === undefined) return neutral;
  if (kept.length === 1) return only;
  return { text: `(${kept.map((part) => part.text).join(word)})`, params: kept.flatMap((part) => part.params) };
}

function negate(part: Sql): Sql {
  if (part.text === "1") return NONE;
  if (part.text === "0") return TRUE;
  // A NULL key makes a comparison NULL, which is no match; the negation must then be a match.
  return { text: `(${part.text}) is not true`, params: part.params };
}

/** Whether two conditions are the same, word for word. */
export function sameSql(a: Sql, b: Sql): boolean {
  return (
    a.text === b.text && a.params.length === b.params.length && a.params.every((value, i) => value === b.params[i])
  );
}

interface Scope {
  readonly kept: string | undefined;
  readonly key: KeyColumn;
  needsRow: boolean;
}

function toBounds(filter: Filter, scope: Scope): Bounds {
  switch (filter.kind) {
    case "and": {
      const parts = filter.filters.map((part) => toBounds(part, scope));
      return { may: conjoin(parts.map((part) => part.may)), sure: conjoin(parts.map((part) => part.sure)) };
    }
    case "or": {
      const parts = filter.filters.map((part) => toBounds(part, scope));
      return { may: disjoin(parts.map((part) => part.may)), sure: disjoin(parts.map((part) => part.sure)) };
    }
    case "not": {
      const { may, sure } = toBounds(filter.filter, scope);
      return { may: negate(sure), sure: negate(may) };
    }
    case "field": {
      const path = filter.path.text;
      const isKept = path === scope.kept;
      scope.needsRow ||= !isKept;
      if (isIdPath(path)) return idBounds(filter.condition);
      const key = isKept ? scope.key : computedKey(path);
      return (key && keyTestOf(filter.condition, key)) ?? UNKNOWN;
    }
  }
}

/** `id` is a column: it is always a string, and the same as in the document. */
export function isIdPath(path: string): boolean {
  return path === "id";
}

/** Whether a filter gives the ids of all it can match. */
export function namesIds(filter: Filter): boolean {
  if (filter.kind === "and") return filter.filters.some(namesIds);
  if (filter.kind !== "field" || !isIdPath(filter.path.text)) return false;
  return filter.condition.op === "eq" || filter.condition.op === "in";
}

/** Whether a filter gives the id of the only row that it can match. */
export function namesOneId(filter: Filter): boolean {
  if (filter.kind === "and") return filter.filters.some(namesOneId);
  return filter.kind === "field" && isIdPath(filter.path.text) && filter.condition.op === "eq";
}

/** Returns what a filter demands of ids: where its matches lie in the order of ids. It tests nothing else of a row. */
export function idConditions(filter: Filter): Sql {
  if (filter.kind === "and") return conjoin(filter.filters.map(idConditions));
  if (filter.kind !== "field" || !isIdPath(filter.path.text)) return TRUE;
  return filterToSql(filter).may;
}

function idBounds(condition: Condition): Bounds {
  switch (condition.op) {
    case "eq":
      return typeof condition.value === "string" ? idTest("=", condition.value) : NEVER;
    case "in": {
      const ids = condition.values.filter((value) => typeof value === "string");
      if (!ids.every((id) => id.isWellFormed())) return UNKNOWN;
      return ids.length === 0 ? NEVER : exactly({ text: `id in (${placeholders(ids)})`, params: ids });
    }
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return typeof condition.value === "string" ? idTest(COMPARE[condition.op], condition.value) : NEVER;
    case "exists":
      return exactly(TRUE);
    default:
      return UNKNOWN;
  }
}

function idTest(operator: string, value: string): Bounds {
  return value.isWellFormed() ? exactly({ text: `id ${operator} ?`, params: [value] }) : UNKNOWN;
}

function exactly(sql: Sql): Bounds {
  return { may: sql, sure: sql };
}

/** The operators of comparisons, in SQL. */
export const COMPARE = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

interface KeyTest extends Bounds {
  readonly ranges: readonly Sql[];
}

/** Writes a condition as a test of the key; undefined where the key says nothing about it. Opaque keys may always match. */
export function keyTestOf(condition: Condition, key: KeyColumn): KeyTest | undefined {
  switch (condition.op) {
    case "eq":
      return listTest([condition.value], key);
    case "in":
      return listTest(condition.values, key);
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return comparisonTest(condition.op, condition.value, key);
    case "type":
      return typeTest(condition.types, key);
    case "regex":
      return prefixTest(condition.regex, key);
    case "mod":
    case "size":
    case "elemMatchDocument":
    case "elemMatchValue":
    case "exists":
      // For these the key excludes few rows: reading the key would cost more than the rows it saves.
      return undefined;
  }
}

/** The ranges of the type classes in the order of keys, written so that SQLite can seek to them. */
const CLASS_RANGES = {
  number: (key: KeyColumn): Sql => ({ text: bounded(`${key.text} < ''`, key.isNotNull), params: [] }),
  string: ({ text }: KeyColumn): Sql => ({ text: `(${text} >= '' and ${text} < x'')`, params: [] }),
  bool: ({ text }: KeyColumn): Sql => ({ text: `(${text} >= x'10' and ${text} <= x'11')`, params: [] }),
  date: ({ text }: KeyColumn): Sql => ({ text: `(${text} >= x'20' and ${text} < x'21')`, params: [] }),
} as const;

/** `arrays`: arrays may match as a whole, not by their elements. */
function withOpaque(key: KeyColumn, ranges: readonly Sql[], sure: Sql, arrays = false): KeyTest {
  const rest = arrays ? orArray(key) : { text: `${key.text} = ${OPAQUE}`, params: [] };
  const all = key.isPlain ? ranges : [...ranges, rest];
  return { ranges: all, may: disjoin(all), sure };
}

function isArray(key: KeyColumn): Sql {
  return { text: `${key.text} = ${ARRAY}`, params: [] };
}

/** ARRAY and OPAQUE are the two greatest keys. */
function orArray(key: KeyColumn): Sql {
  return { text: `${key.text} >= ${ARRAY}`, params: [] };
}

function isNull(key: KeyColumn): Sql {
  return { text: key.isNull, params: [] };
}

function listTest(values: readonly Json[], key: KeyColumn): KeyTest | undefined {
  const keys: Sql[] = [];
  let orNull = false;
  let arrays = false;
  for (const value of values) {
    if (value === null) orNull = true;
    else {
      const operand = keyOperand(value);
      if (operand === "unknown") return undefined;
      if (operand !== "opaque") keys.push(operand);
      else arrays ||= Array.isArray(value);
    }
  }
  const nulls: Sql[] = orNull ? [isNull(key)] : [];
  const sure = disjoin([...(keys.length > 0 ? [keyIn(key, keys)] : []), ...nulls]);
  const operands = key.isPlain ? keys : [...keys, { text: OPAQUE, params: [] }];
  const ranges = [
    ...(operands.length > 0 ? [keyIn(key, operands)] : []),
    ...nulls,
    ...(arrays && !key.isPlain ? [isArray(key)] : []),
  ];
  return { ranges, may: disjoin(ranges), sure };
}

/** A regex that begins with a plain text matches only strings that begin with that text. */
function prefixTest(regex: RE2JS, key: KeyColumn): KeyTest | undefined {
  const { prefix } = literalsOf(regex);
  if (prefix === undefined) return undefined;
  const params = [prefix, afterPrefix(prefix)];
  return withOpaque(key, [{ text: `(${key.text} >= ? and ${key.text} < ?)`, params }], NONE);
}

function keyIn({ text: key }: KeyColumn, operands: readonly Sql[]): Sql {
  const [only] = operands;
  const params = operands.flatMap((operand) => operand.params);
  if (operands.length === 1 && only) return { text: `${key} = ${only.text}`, params };
  return { text: `${key} in (${operands.map((operand) => operand.text).join(",")})`, params };
}

function comparisonTest(op: "gt" | "gte" | "lt" | "lte", value: Json, key: KeyColumn): KeyTest | undefined {
  const orEqual = op === "gte" || op === "lte";
  if (value === null) return orEqual ? withOpaque(key, [isNull(key)], isNull(key)) : { ...NEVER, ranges: [] };
  const operand = keyOperand(value);
  if (operand === "unknown") return undefined;
  if (operand === "opaque") return withOpaque(key, [], NONE, Array.isArray(value));
  const bound = op === "lt" || op === "lte" ? lowerBound(value, key) : `${key.text} ${upperBound(value)}`;
  const text = bounded(`${key.text} ${COMPARE[op]} ${operand.text}`, bound);
  const range: Sql = { text, params: operand.params };
  return withOpaque(key, [range], range);
}

function bounded(range: string, bound: string | undefined): string {
  return bound === undefined ? range : `(${range} and ${bound})`;
}

/** Where the operand's class begins in the order of keys. */
function lowerBound(value: Json, { text, isNotNull }: KeyColumn): string | undefined {
  if (typeof value === "number") return isNotNull;
  if (typeof value === "string") return `${text} >= ''`;
  return `${text} >= ${typeof value === "boolean" ? "x'10'" : "x'20'"}`;
}

/** Where the operand's class ends. */
function upperBound(value: Json): string {
  if (typeof value === "number") return "< ''";
  if (typeof value === "string") return "< x''";
  return typeof value === "boolean" ? "<= x'11'" : "< x'21'";
}

/** Returns the key of a non-null value; `opaque` if only opaque keys can match it, `unknown` if its key cannot be written. */
export function keyOperand(value: Json): Sql | "opaque" | "unknown" {
  // JSON text may hold 1e999, which no record holds, and -1e999 would equal the kept key of null.
  if (typeof value === "number") return Number.isFinite(value) ? { text: BOUND, params: [value] } : "unknown";
  // A lone surrogate becomes U+FFFD when bound.
  if (typeof value === "string") return value.isWellFormed() ? { text: BOUND, params: [value] } : "unknown";
  if (typeof value === "boolean") return { text: value ? "x'11'" : "x'10'", params: [] };
  const instant = instantOf(value);
  if (instant === undefined) return "opaque";
  return { text: "cast(' '||? as blob)", params: [toInstant(instant).$date] };
}

function typeTest(types: readonly TypeName[], key: KeyColumn): KeyTest {
  const ranges: Sql[] = [];
  const sure: Sql[] = [];
  for (const type of new Set(types)) {
    if (type === "null") ranges.push(isNull(key));
    else if (type === "string" || type === "bool" || type === "date" || type === "number") {
      ranges.push(CLASS_RANGES[type](key));
      sure.push(CLASS_RANGES[type](key));
    } else if ((type === "int" || type === "double") && !types.includes("number"))
      ranges.push(CLASS_RANGES.number(key));
  }
  return withOpaque(key, dedupe(ranges), disjoin(sure), types.includes("array"));
}

function dedupe(parts: readonly Sql[]): Sql[] {
  const seen = new Set<string>();
  return parts.filter(({ text }) => !seen.has(text) && seen.add(text));
}

function placeholders(values: readonly unknown[]): string {
  return values.map(() => "?").join(",");
}
