import type { Json } from "../../protocol/json.ts";
import type { FieldPath } from "../../query/field-path.ts";
import type { Filter } from "../../query/filter-types.ts";
import { instantOf } from "../../query/instant.ts";

/** A value as a map's key: scalars are themselves, null stands for missing too, dates are marked texts. */
export type GuardKey = string | number | boolean | null;

/** A document without one of these values at the path does not match. */
export interface Guard {
  readonly path: FieldPath;
  readonly keys: readonly GuardKey[];
}

/** A filter with longer lists is cheaper to try than to file under every value. */
const MAX_KEYS = 128;

/**
 * The ways to say which documents a filter can match by the value of a path: within each, every match satisfies at least
 * one of its guards. None where the filter has no equality that all matches must meet.
 */
export function guardOptions(filter: Filter): (readonly Guard[])[] {
  return optionsOf(filter).filter((guards) => countKeys(guards) <= MAX_KEYS);
}

function optionsOf(filter: Filter): (readonly Guard[])[] {
  switch (filter.kind) {
    case "and":
      return filter.filters.flatMap(optionsOf);
    case "or": {
      const branches = filter.filters.map((branch) => fewestKeys(optionsOf(branch)));
      return branches.every((guards) => guards !== undefined) ? [branches.flat()] : [];
    }
    case "not":
      return [];
    case "field": {
      const { condition, path } = filter;
      if (condition.op !== "eq" && condition.op !== "in") return [];
      const keys = (condition.op === "eq" ? [condition.value] : condition.values).map(guardKeyOf);
      return keys.every((key) => key !== undefined) ? [[{ path, keys }]] : [];
    }
  }
}

function fewestKeys(options: readonly (readonly Guard[])[]): readonly Guard[] | undefined {
  return options.toSorted((a, b) => countKeys(a) - countKeys(b))[0];
}

function countKeys(guards: readonly Guard[]): number {
  return guards.reduce((sum, { keys }) => sum + keys.length, 0);
}

/** Equal values have equal keys; undefined for objects and arrays, which are not filed. */
export function guardKeyOf(value: Json | undefined): GuardKey | undefined {
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  const instant = instantOf(value);
  return instant === undefined ? undefined : `\0date ${instant}`;
}
