/** Where rows come from: `rows(no, collectionId, id, doc, doc_sum, state)` with UNIQUE(collectionId, id); live rows have state 1. */
import { BOUND, type Sql, type SqlValue } from "./sql-superset.ts";

export interface RowSource {
  /** The collection; undefined for one to which nothing was ever written. */
  readonly collectionId: number | undefined;
  /** The indexes of the collection, by path. Absent: the code that reads looks them up in the database. */
  readonly indexes?: ReadonlyMap<string, number> | undefined;
  /** How many live rows it has, where whoever asks knows it: looking it up in the database costs a tenth of a read by id. */
  readonly live?: number;
}

/** The live rows of one collection. */
export function rowsOf(collectionId: number, indexes?: ReadonlyMap<string, number>): RowSource {
  return { collectionId, indexes };
}

export const NO_ROWS: RowSource = { collectionId: undefined, indexes: new Map() };

/** What is read of a row whose text is wanted: also its number and checksum, so that a damaged row is noticed and named. */
export const ROW_COLUMNS = "no, doc, doc_sum";

export interface SelectParts {
  readonly columns: string;
  /**
   * The number of the index from which the rows come. Its columns are key, rid (the record's id) and row (its number); the
   * columns of `rows` are there as well, unless `keysOnly`.
   */
  readonly index?: number | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly conditions: readonly Sql[];
  readonly orderBy?: string | undefined;
  readonly limit?: { readonly limit: number; readonly offset: number } | undefined;
}

/** With a bare parameter here, SQLite would plan the statement anew each time it is bound. */
const LIMITED = "LIMIT ?+0 OFFSET ?+0";

/** Builds one SELECT over a source. */
export function selectFrom(source: RowSource, parts: SelectParts): Sql {
  const { columns, conditions, orderBy, limit } = parts;
  const from = fromOf(source, parts);
  const kept = conditions.filter(({ text }) => text !== "1");
  const text = [
    `SELECT ${columns} FROM ${from.table} WHERE ${[from.where, ...kept.map((condition) => condition.text)].join(" AND ")}`,
    orderBy === undefined ? "" : `ORDER BY ${orderBy}`,
    limit === undefined ? "" : LIMITED,
  ];
  const params = [...from.params, ...kept.flatMap((condition) => condition.params)];
  if (limit) params.push(Number.isSafeInteger(limit.limit) ? limit.limit : -1, limit.offset);
  return { text: text.filter((part) => part !== "").join(" "), params };
}

/** Selects the numbers of the rows of a source that are not live (deleted, or only touched), from an index of them. */
export function notLive({ collectionId }: RowSource): Sql {
  return { text: "SELECT no FROM rows WHERE collectionId = ? AND state <> 1", params: [collectionId ?? -1] };
}

/** Selects the numbers of the live rows by id, from indexes alone. */
export function numbersById(source: RowSource, descending: boolean, limit: number, offset: number): Sql {
  const dead = notLive(source);
  const order = descending ? "id DESC" : "id";
  return {
    text: `SELECT no FROM rows WHERE collectionId = ? AND no NOT IN (${dead.text}) ORDER BY ${order} ${LIMITED}`,
    params: [source.collectionId ?? -1, ...dead.params, Number.isSafeInteger(limit) ? limit : -1, offset],
  };
}

interface From {
  readonly table: string;
  readonly where: string;
  readonly params: readonly SqlValue[];
}

function fromOf({ collectionId }: RowSource, { index, keysOnly }: SelectParts): From {
  if (collectionId === undefined) return { table: "rows", where: "0", params: [] };
  if (index === undefined) return { table: "rows", where: "collectionId = ? AND state = 1", params: [collectionId] };
  // CROSS JOIN keeps the order of the tables: SQLite has no statistics with which to choose a better one.
  const table = keysOnly ? "query_keys" : "query_keys CROSS JOIN rows ON no = row";
  return { table, where: `idx = ${BOUND}`, params: [index] };
}
