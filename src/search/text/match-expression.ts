import type { Term, TokenRun } from "./query-terms.ts";

/** Returns an FTS5 expression that matches the texts of a term. Tokens hold no quote, because the tokeniser leaves none. */
export function termExpression(term: Term): string {
  const rows = new Map<string, TokenRun["row"][]>();
  for (const { row, tokens, prefix } of term) {
    const phrase = `"${tokens.join(" ")}"${prefix ? " *" : ""}`;
    rows.set(phrase, [...(rows.get(phrase) ?? []), row]);
  }
  // A phrase that is looked for in both rows is read once.
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

/** Returns an expression for texts with one of these tokens; they are in the column for filters. */
export function filterExpression(tokens: readonly string[]): string {
  return `(${tokens.map((token) => `filters : "${token}"`).join(" OR ")})`;
}
