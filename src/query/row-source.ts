/** Where rows come from: `rows(no, coll, id, doc, state)` with UNIQUE(coll, id); live rows have state 1. */
import { checkedColl } from "./index-key.ts";
import type { Sql, SqlValue } from "./sql-superset.ts";

export interface RowSource {
  readonly table: "rows";
  /** The condition that selects the collection's live rows. For the partial indexes to be used it says `coll = <number>` literally. */
  readonly where: string;
  readonly params: readonly SqlValue[];
  /** The collection, where it is one: only then are its indexes looked for. */
  readonly coll?: number;
}

/** The live rows of one collection. */
export function rowsOf(coll: number): RowSource {
  return { table: "rows", where: `coll = ${checkedColl(coll)} AND state = 1`, params: [], coll };
}

/** A collection that nothing was ever written to. */
export const NO_ROWS: RowSource = { table: "rows", where: "0", params: [] };

export interface SelectParts {
  readonly columns: string;
  /** An index by name: SQLite, without statistics, would otherwise prefer the one on (coll, id). */
  readonly index?: string | undefined;
  readonly conditions: readonly Sql[];
  readonly orderBy?: string | undefined;
  readonly limit?: { readonly limit: number; readonly offset: number } | undefined;
}

/** Where a bare parameter stands here, SQLite plans the statement anew each time it is bound. */
const LIMITED = "LIMIT ?+0 OFFSET ?+0";

/** One SELECT over a source. */
export function selectFrom(source: RowSource, { columns, index, conditions, orderBy, limit }: SelectParts): Sql {
  const kept = conditions.filter(({ text }) => text !== "1");
  const where = [`(${source.where})`, ...kept.map(({ text }) => text)].join(" AND ");
  const text = [
    `SELECT ${columns} FROM ${source.table}`,
    index === undefined ? "" : `INDEXED BY ${index}`,
    `WHERE ${where}`,
    orderBy === undefined ? "" : `ORDER BY ${orderBy}`,
    limit === undefined ? "" : LIMITED,
  ];
  const params = [...source.params, ...kept.flatMap((condition) => condition.params)];
  if (limit) params.push(Number.isSafeInteger(limit.limit) ? limit.limit : -1, limit.offset);
  return { text: text.filter((part) => part !== "").join(" "), params };
}
