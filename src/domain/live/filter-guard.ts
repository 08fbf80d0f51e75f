import type { RE2JS } from "re2js";
import type { Json } from "../../protocol/json.ts";
import type { Filter } from "../../query/filter/filter-types.ts";
import { afterPrefix, literalsOf } from "../../query/filter/regex-literal.ts";
import type { FieldPath } from "../../query/value/field-path.ts";
import { instantOf } from "../../query/value/instant.ts";
import type { Bound } from "./interval-list.ts";

/** A value as a map's key: scalars are themselves, null also stands for missing, dates are marked texts. */
export type GuardKey = string | number | boolean | null;

/** The types that have ranges; dates are compared by their milliseconds. */
export type RangeType = "number" | "string" | "date";

/** A demand on a path: a document without such a value there does not match. */
export type Guard =
  | { readonly path: FieldPath; readonly keys: readonly GuardKey[] }
  /** Where the path leads to several values, one may meet the low bound and another the high one. */
  | { readonly path: FieldPath; readonly type: RangeType; readonly low: Bound; readonly high: Bound }
  /** A string contains the text, both folded (src/query/filter/regex-literal.ts). */
  | { readonly path: FieldPath; readonly contains: string }
  /** A string matches it, which only trying it can tell. */
  | { readonly path: FieldPath; readonly pattern: RE2JS };

type Guards = readonly Guard[];
type RangeGuard = Extract<Guard, { low: Bound }>;

/** Texts are found by the runs of this many characters in them. */
export const GRAM_CHARS = 3;
/** A filter with longer lists is cheaper to try than to file under every value. */
const MAX_KEYS = 128;

/**
 * Returns the ways to say, by the value of a path, which documents a filter can match: within each way, every match satisfies at
 * least one of its guards. There is none where the filter has no equality, range or regex that all matches must meet.
 */
export function guardOptions(filter: Filter): Guards[] {
  return optionsOf(filter).filter((guards) => weight(guards) <= MAX_KEYS);
}

function optionsOf(filter: Filter): Guards[] {
  switch (filter.kind) {
    case "and":
      return joinRanges(filter.filters.flatMap(optionsOf));
    case "or": {
      const branches = filter.filters.map((branch) => lightest(optionsOf(branch)));
      return branches.every((guards) => guards !== undefined) ? [branches.flat()] : [];
    }
    case "not":
      return [];
    case "field":
      return fieldOptions(filter);
  }
}

function fieldOptions({ path, condition }: Extract<Filter, { kind: "field" }>): Guards[] {
  switch (condition.op) {
    case "eq":
    case "in": {
      const keys = (condition.op === "eq" ? [condition.value] : condition.values).map(guardKeyOf);
      return keys.every((key) => key !== undefined) ? [[{ path, keys }]] : [];
    }
    case "gt":
    case "gte":
    case "lt":
    case "lte": {
      const found = rangeValueOf(condition.value);
      if (!found) return [];
      const { type, value } = found;
      const lower = condition.op === "gt" || condition.op === "gte";
      return [[lower ? { path, type, low: value, high: undefined } : { path, type, low: undefined, high: value }]];
    }
    case "regex":
      return regexOptions(path, condition.regex);
    default:
      return [];
  }
}

function regexOptions(path: FieldPath, regex: RE2JS): Guards[] {
  const { prefix, required } = literalsOf(regex);
  const options: Guards[] = [];
  if (prefix !== undefined) options.push([{ path, type: "string", low: prefix, high: afterPrefix(prefix) }]);
  if (required !== undefined && required.length >= GRAM_CHARS) options.push([{ path, contains: required }]);
  return options.length > 0 ? options : [[{ path, pattern: regex }]];
}

/** Joins a low and a high bound for one path into one range: `{n: {$gte: 1, $lt: 5}}`. */
function joinRanges(options: readonly Guards[]): Guards[] {
  const kept: Guards[] = [];
  const lowByKey = new Map<string, RangeGuard>();
  const highs: RangeGuard[] = [];
  for (const guards of options) {
    const [only] = guards;
    if (guards.length !== 1 || !only || !("low" in only)) kept.push(guards);
    else if (only.high === undefined) lowByKey.set(keyOf(only), only);
    else if (only.low === undefined) highs.push(only);
    else kept.push(guards);
  }
  for (const high of highs) {
    const low = lowByKey.get(keyOf(high));
    lowByKey.delete(keyOf(high));
    kept.push([low ? { ...high, low: low.low } : high]);
  }
  return [...kept, ...[...lowByKey.values()].map((low) => [low])];
}

function keyOf({ path, type }: RangeGuard): string {
  return `${type} ${path.text}`;
}

function lightest(options: readonly Guards[]): Guards | undefined {
  return options.toSorted((a, b) => weight(a) - weight(b))[0];
}

/** Returns in how many places a window is filed. A range, a text or a pattern is worth less than an equality. */
function weight(guards: Guards): number {
  return guards.reduce((sum, guard) => sum + ("keys" in guard ? guard.keys.length : MAX_KEYS / 16), 0);
}

/** Returns the key of a value; equal values have equal keys. Undefined for objects and arrays, which are not filed. */
export function guardKeyOf(value: Json | undefined): GuardKey | undefined {
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  const instant = instantOf(value);
  return instant === undefined ? undefined : `\0date ${instant}`;
}

/** Returns a value as a point of a range; undefined if its type has no ranges. */
export function rangeValueOf(value: Json | undefined): { type: RangeType; value: number | string } | undefined {
  if (typeof value === "number") return { type: "number", value };
  if (typeof value === "string") return { type: "string", value };
  const instant = instantOf(value);
  return instant === undefined ? undefined : { type: "date", value: instant };
}
