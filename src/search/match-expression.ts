import type { Term, TokenRun } from "./query-terms.ts";

/** An expression of FTS5 that a term's texts meet. Tokens hold no quote: the tokeniser leaves none. */
export function termExpression(term: Term): string {
  return `(${term.map(runExpression).join(" OR ")})`;
}

function runExpression({ row, tokens, prefix }: TokenRun): string {
  return `${row} : "${tokens.join(" ")}"${prefix ? " *" : ""}`;
}

export function anyOf(expressions: readonly string[]): string {
  return expressions.length === 1 ? expressions[0]! : `(${expressions.join(" OR ")})`;
}

export function allOf(expressions: readonly string[]): string {
  return expressions.length === 1 ? expressions[0]! : `(${expressions.join(" AND ")})`;
}

export function without(expression: string, excluded: readonly string[]): string {
  return excluded.length === 0 ? expression : `(${expression} NOT ${anyOf(excluded)})`;
}

/** A text stands at one of these places: tokens of the column that filters look at. */
export function placeExpression(tokens: readonly string[]): string {
  return `(${tokens.map((token) => `place : "${token}"`).join(" OR ")})`;
}
