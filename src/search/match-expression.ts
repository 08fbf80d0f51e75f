import type { Term, TokenRun } from "./query-terms.ts";

/** An expression of FTS5 that a term's texts meet. Tokens hold no quote: the tokeniser leaves none. */
export function termExpression(term: Term): string {
  const rows = new Map<string, TokenRun["row"][]>();
  for (const { row, tokens, prefix } of term) {
    const phrase = `"${tokens.join(" ")}"${prefix ? " *" : ""}`;
    rows.set(phrase, [...(rows.get(phrase) ?? []), row]);
  }
  // What is looked for in both rows is read once.
  return `(${[...rows].map(([phrase, of]) => `{${of.join(" ")}} : ${phrase}`).join(" OR ")})`;
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
