/**
 * Finds windows in indexes alone. Where the keys give every condition and the order, only the rows of the answer are read, and
 * none is parsed.
 */
import type { Database } from "bun:sqlite";
import type { Filter } from "../filter/filter-types.ts";
import { ARRAY, KEPT_KEY, PLAIN_KEY } from "../rows/index-key.ts";
import type { RowReader } from "../rows/row-reader.ts";
import { BOUND, filterToSql, isIdPath, type Sql } from "../rows/sql-superset.ts";
import { getRow } from "../rows/statement-cache.ts";

/** What a filter demands of one path, where the keys of the path's index express all of it. */
export interface KeyCondition {
  readonly path: string;
  readonly no: number;
  /** A condition on the column `key`. */
  readonly sql: Sql;
  /**
   * It asks for one value: that value's entries are in the order of ids, and another index's entries can be looked up among them.
   */
  readonly isValue: boolean;
  /** It asks for a few values: another index's entries can be looked up among theirs. */
  readonly isList: boolean;
}

export interface KeyWindow {
  readonly path: string;
  readonly no: number;
  /** A condition on the `key` of the walked index; undefined means all entries. */
  readonly condition: Sql | undefined;
  /** What other indexes must hold for the record. */
  readonly members: readonly KeyCondition[];
  readonly order: "id" | "idDescending" | "key" | "keyDescending";
  /** Whether the index's entries come in that order; otherwise all of them have to be sorted. */
  readonly isInOrder: boolean;
  /** After this many entries another way is cheaper: the matches are elsewhere than was estimated. */
  readonly giveUpAfter: number;
}

/** Returns the conditions of a filter by path, if the indexes express all of them exactly; undefined otherwise. */
export function exactConditions(
  db: Database,
  filter: Filter,
  indexes: ReadonlyMap<string, number>,
): KeyCondition[] | undefined {
  const partsByPath = new Map<string, Filter[]>();
  for (const part of filter.kind === "and" ? filter.filters : [filter]) {
    if (part.kind !== "field" || isIdPath(part.path.text)) return undefined;
    const { text } = part.path;
    partsByPath.set(text, [...(partsByPath.get(text) ?? []), part]);
  }
  const numbered = [...partsByPath].map(([path, filters]) => ({ path, filters, no: indexes.get(path) }));
  if (numbered.some(({ no }) => no === undefined)) return undefined;
  const conditions: KeyCondition[] = [];
  for (const { path, filters, no } of numbered) {
    if (no === undefined || !isPlain(db, no)) return undefined;
    const { may, exact, needsRow } = filterToSql({ kind: "and", filters }, path, PLAIN_KEY);
    if (!exact || needsRow) return undefined;
    conditions.push({ path, no, sql: may, ...shapeOf(filters) });
  }
  return conditions;
}

function shapeOf(filters: readonly Filter[]): Pick<KeyCondition, "isValue" | "isList"> {
  const [only] = filters;
  const condition = filters.length === 1 && only?.kind === "field" ? only.condition : undefined;
  const isValue = condition?.op === "eq";
  return { isValue, isList: isValue || condition?.op === "in" };
}

/** Whether every entry of an index is a row's own value: it holds no arrays, no objects and no dates in another form. */
export function isPlain(db: Database, no: number): boolean {
  const text = `SELECT 1 AS found FROM query_keys WHERE idx = ? AND ${KEPT_KEY.text} >= ${ARRAY} LIMIT 1`;
  return getRow(db, { text, params: [no] }) === undefined;
}

/**
 * Returns a SELECT that counts the records that meet the conditions, over the entries of `first`; undefined where no such SELECT
 * exists.
 */
export function countKeys(conditions: readonly KeyCondition[], first: KeyCondition): Sql | undefined {
  const members = conditions.filter((each) => each !== first);
  if (!members.every(({ isList }) => isList)) return undefined;
  const { where, params } = entriesWhere({ no: first.no, condition: first.sql, members });
  return { text: `SELECT count(*) AS n FROM query_keys AS k WHERE ${where}`, params };
}

const FIRST_CHUNK = 1_024;

/**
 * Returns the rows of a window by number, in order; undefined once it has passed more entries than the plan expected. It reads
 * the entries in chunks, so that a walk on the server's event loop can be stopped between them.
 */
export function findRows(
  reader: RowReader,
  window: KeyWindow,
  offset: number,
  limit: number,
): readonly number[] | undefined {
  if (window.members.length === 0 || !window.isInOrder || !Number.isFinite(limit))
    return selectRows(reader, window, offset, limit);
  const wanted = offset + limit;
  const found: number[] = [];
  for (let passed = 0, chunk = FIRST_CHUNK; ; passed += chunk, chunk *= 2) {
    reader.check();
    const { rows, isLast } = selectChunk(reader, window, passed, chunk);
    for (const row of rows) found.push(row);
    if (found.length >= wanted || isLast) return found.slice(offset, wanted);
    if (passed + chunk > window.giveUpAfter) return undefined;
  }
}

function selectRows(reader: RowReader, window: KeyWindow, offset: number, limit: number): number[] {
  const atMost = Number.isSafeInteger(limit) ? limit : -1;
  const select = window.order === "keyDescending" && offset > 0 ? selectBackwards : selectForwards;
  return [...reader.entries<{ row: number }>(select(window, offset, atMost))].map(({ row }) => row);
}

function selectForwards(window: KeyWindow, offset: number, atMost: number): Sql {
  const { where, params } = entriesWhere(window);
  const text = `SELECT row FROM query_keys AS k WHERE ${where} ORDER BY ${ORDERS[window.order]} LIMIT ?+0 OFFSET ?+0`;
  return { text, params: [...params, atMost, offset] };
}

/**
 * An index read backwards gives ties by id descending, so SQLite would have to sort all entries of each key. Finding where the
 * window begins needs no sort, because both orders have the same key at that position. Only the ties of that key are then passed in
 * the right order.
 */
function selectBackwards(window: KeyWindow, offset: number, atMost: number): Sql {
  const { where, params } = entriesWhere(window);
  const text = `WITH bound(at, id) AS MATERIALIZED
      (SELECT key, rid FROM query_keys AS k WHERE ${where} ORDER BY key DESC, rid DESC LIMIT 1 OFFSET ?+0)
    SELECT row FROM query_keys AS k WHERE ${where} AND key <= (SELECT at FROM bound)
    ORDER BY ${ORDERS[window.order]} LIMIT ?+0 OFFSET
      (SELECT count(*) FROM bound CROSS JOIN query_keys AS k WHERE ${where} AND key = at AND rid > id)`;
  return { text, params: [...params, offset, ...params, atMost, ...params] };
}

/** Returns the matches among `chunk` entries, from the `passed`th on. */
function selectChunk(
  reader: RowReader,
  window: KeyWindow,
  passed: number,
  chunk: number,
): { rows: number[]; isLast: boolean } {
  const { condition, members, no } = window;
  const walked = entriesWhere({ no, condition, members: [] });
  const inner = `SELECT row, rid FROM query_keys AS k WHERE ${walked.where} ORDER BY ${ORDERS[window.order]} LIMIT ?+0 OFFSET ?+0`;
  const isMember = members.map(membershipOf);
  const text = `SELECT row, ${isMember.map(({ text: test }) => test).join(" AND ")} AS found FROM (${inner}) AS k`;
  const params = [...isMember.flatMap((each) => each.params), ...walked.params, chunk, passed];
  const entries = [...reader.entries<{ row: number; found: number }>({ text, params })];
  return { rows: entries.filter(({ found }) => found === 1).map(({ row }) => row), isLast: entries.length < chunk };
}

const ORDERS: Readonly<Record<KeyWindow["order"], string>> = {
  id: "rid",
  idDescending: "rid DESC",
  key: "key, rid",
  keyDescending: "key DESC, rid",
};

function entriesWhere({ no, condition, members }: Pick<KeyWindow, "no" | "condition" | "members">): {
  where: string;
  params: Sql["params"];
} {
  const parts: Sql[] = [
    { text: `k.idx = ${BOUND}`, params: [no] },
    ...(condition ? [condition] : []),
    ...members.map(membershipOf),
  ];
  return { where: parts.map(({ text }) => text).join(" AND "), params: parts.flatMap(({ params }) => params) };
}

/** Inside this SELECT, `key` is the key of the other index. */
function membershipOf({ no, sql }: KeyCondition): Sql {
  const text = `EXISTS (SELECT 1 FROM query_keys AS m WHERE m.idx = ${BOUND} AND ${sql.text} AND m.rid = k.rid)`;
  return { text, params: [no, ...sql.params] };
}
