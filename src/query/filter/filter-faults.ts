/** The errors with which a filter is refused. They say where (`details.path`), which rule, and what to write instead. */
import { type SvcError, svcError } from "../../protocol/errors.ts";
import { OPERATORS } from "./filter-grammar.ts";

/** Callers choose keys and operators freely; an error repeats at most this many of their characters. */
const SHOWN_CHARS = 256;

export function joinPath(parent: string, key: string): string {
  return parent === "" ? key : `${parent}.${key}`;
}

export function invalidFilter(where: string, reason: string): SvcError {
  const path = shorten(where);
  return svcError("filter.invalid", { path, reason }, `The filter is not valid${path ? ` at ${path}` : ""}: ${reason}`);
}

export function tooComplex(where: string, limit: number, unit: string): SvcError {
  const path = shorten(where);
  return svcError("filter.too_complex", { limit, path }, `The filter has more than ${limit} ${unit}; make it smaller`);
}

export function unknownOperator(operator: string, where: string): SvcError {
  const shown = shorten(operator);
  const message = `The filter uses ${shown}, which is not among the operators: ${[...OPERATORS].join(" ")}`;
  return svcError("filter.unknown_operator", { operator: shown, path: shorten(where) }, message);
}

export function shorten(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`;
}
