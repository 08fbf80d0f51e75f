/** A table of the index's own kind, and whether it finds a text by a query. */
import { Database } from "bun:sqlite";
import { indexTokens } from "../../../src/search/index/index-tokens.ts";
import { anyOf, termExpression } from "../../../src/search/text/match-expression.ts";
import { queryTerms } from "../../../src/search/text/query-terms.ts";

const db = new Database(":memory:");
db.exec("CREATE VIRTUAL TABLE ft USING fts5(exact, words, place, content='', tokenize='ascii')");
const add = db.query("INSERT INTO ft(rowid, exact, words) VALUES(?, ?, ?)");
const match = db.query<{ rowid: number }, [string]>("SELECT rowid FROM ft WHERE ft MATCH ?");

let last = 0;

/** Whether an expression of FTS5 meets a text. */
export function meets(expression: string, text: string): boolean {
  const { exact, words } = indexTokens(text);
  const id = ++last;
  add.run(id, exact, words);
  return match.all(expression).some(({ rowid }) => rowid === id);
}

export function finds(query: string, text: string): boolean {
  const terms = queryTerms(query);
  return terms.length > 0 && meets(anyOf(terms.map(termExpression)), text);
}
