/** A parsed filter. Negations, `$nor`, `$all` and several operators in one condition are all expressed with these few nodes. */
import type { RE2JS } from "re2js";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { FieldPath } from "../value/field-path.ts";
import { isDateShaped } from "../value/instant.ts";

export type Filter =
  | { readonly kind: "and"; readonly filters: readonly Filter[] }
  | { readonly kind: "or"; readonly filters: readonly Filter[] }
  | { readonly kind: "not"; readonly filter: Filter }
  /** Some value to which the path leads satisfies the condition. A path of no segments is the value itself. */
  | { readonly kind: "field"; readonly path: FieldPath; readonly condition: Condition };

export type ComparisonOperator = "gt" | "gte" | "lt" | "lte";

export const TYPE_NAMES = ["null", "number", "int", "double", "string", "bool", "array", "object", "date"] as const;
export type TypeName = (typeof TYPE_NAMES)[number];

export type Condition =
  | { readonly op: "eq"; readonly value: Json }
  | { readonly op: ComparisonOperator; readonly value: Json }
  | { readonly op: "in"; readonly values: readonly Json[] }
  | { readonly op: "exists" }
  | { readonly op: "type"; readonly types: readonly TypeName[] }
  | { readonly op: "size"; readonly size: number }
  | { readonly op: "mod"; readonly divisor: number; readonly remainder: number }
  | { readonly op: "regex"; readonly regex: RE2JS }
  /** `$elemMatch` with a filter: some element that is an object (or array, by its indexes) matches. */
  | { readonly op: "elemMatchDocument"; readonly filter: Filter }
  /** `$elemMatch` with operators: some element matches; the filter's paths have no segments. */
  | { readonly op: "elemMatchValue"; readonly filter: Filter };

export const MATCH_ALL: Filter = { kind: "and", filters: [] };
export const MATCH_NONE: Filter = { kind: "or", filters: [] };

/** Whether a filter accepts every document without looking at it. */
export function isMatchAll(filter: Filter): boolean {
  return filter.kind === "and" && filter.filters.length === 0;
}

export function allOf(filters: readonly Filter[]): Filter {
  const [only] = filters;
  return filters.length === 1 && only !== undefined ? only : { kind: "and", filters };
}

export function toField(path: FieldPath, condition: Condition): Filter {
  return { kind: "field", path, condition };
}

/** Whether a condition is made of operators: some key starts with `$` and it is not a `{$date}`. */
export function isOperators(value: Json): value is JsonObject {
  return isJsonObject(value) && !isDateShaped(value) && Object.keys(value).some((key) => key.startsWith("$"));
}
