/** The errors with which a filter is refused. They say where (`details.path`), which rule, and what to write instead. */
import { refusedAs, refusedPart, type SvcError } from "../../protocol/errors.ts";
import type { FilterUnit } from "../../protocol/query-words.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { OPERATORS } from "./filter-grammar.ts";

/** Callers choose keys and operators freely; an error repeats at most this many of their characters. */
const SHOWN_CHARS = 256;

export function joinPath(parent: string, key: string): string {
  return parent === "" ? key : `${parent}.${key}`;
}

export function invalidFilter(where: string, why: Refusal): SvcError {
  return refusedPart("filter.invalid", { path: shorten(where) }, why, "filter");
}

export function tooComplex(where: string, limit: number, unit: FilterUnit): SvcError {
  return refusedAs("filter.too_complex", { limit, path: shorten(where) }, refusal("filter.too_much", { limit, unit }));
}

export function unknownOperator(name: string, where: string): SvcError {
  const operator = shorten(name);
  const why = refusal("filter.no_operator", { operator, operators: [...OPERATORS] });
  return refusedAs("filter.unknown_operator", { operator, path: shorten(where) }, why);
}

export function shorten(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`;
}
