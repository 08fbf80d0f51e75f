/** Counts the rows that match: SQL counts those it is sure of, the matcher decides the others. */
import type { KeyRange } from "../plan/key-ranges.ts";
import { countKeys } from "../plan/key-window.ts";
import { type NarrowIndex, type QueryPlan, selectNarrow } from "../plan/query-plan.ts";
import type { RowReader } from "../rows/row-reader.ts";
import { ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import { type Sql, sameSql } from "../rows/sql-superset.ts";

export function countMatches(reader: RowReader, source: RowSource, plan: QueryPlan): number {
  return countByKeys(reader, plan) ?? countByRows(reader, source, plan);
}

/** Where the indexes express all of the filter, no row is read. */
function countByKeys(reader: RowReader, { exact, narrow }: QueryPlan): number | undefined {
  if (!exact || exact.length === 0) return undefined;
  const first = exact.find(({ path }) => path === narrow?.path);
  const select = [...(first ? [first] : []), ...exact].map((each) => countKeys(exact, each)).find((each) => each);
  return select && count(reader, select);
}

function countByRows(reader: RowReader, source: RowSource, { narrow, sql }: QueryPlan): number {
  if (narrow?.hasArrays) return countEach(reader, selectNarrow(source, narrow, ROW_COLUMNS));
  if (narrow) return narrow.ranges.reduce((total, range) => total + countInRange(reader, source, narrow, range), 0);
  const { may, sure, exact } = sql;
  if (exact && may.text === "1") return reader.liveRows(source);
  if (exact) return count(reader, selectFrom(source, { columns: "count(*) AS n", conditions: [may] }));
  return countInOnePass(reader, source, may, sure);
}

/** Both halves step through the range of an index, which is cheap. */
function countInRange(
  reader: RowReader,
  source: RowSource,
  { no: index, sql: { may, sure, exact, needsRow } }: NarrowIndex,
  range: KeyRange,
): number {
  // The range expresses the whole filter: everything in it matches.
  if (sameSql(range.meets ?? range, sure))
    return count(
      reader,
      selectFrom(source, { columns: "count(*) AS n", index, keysOnly: !needsRow, conditions: [range] }),
    );
  let total = 0;
  if (sure.text !== "0") {
    const conditions = [range, sure];
    total += count(reader, selectFrom(source, { columns: "count(*) AS n", index, keysOnly: !needsRow, conditions }));
  }
  if (exact) return total;
  const unsure: Sql = { text: `(${sure.text}) is not true`, params: sure.params };
  const conditions = [range, may, unsure];
  return total + countEach(reader, [selectFrom(source, { columns: ROW_COLUMNS, index, conditions })]);
}

/** Counts the rows that the matcher accepts, one by one. */
function countEach(reader: RowReader, selects: readonly Sql[]): number {
  let total = 0;
  for (const select of selects) for (const _ of reader.matching(select)) total++;
  return total;
}

function count(reader: RowReader, select: Sql): number {
  return reader.get<{ n: number }>(select)?.n ?? 0;
}

/**
 * Without an index every row is read anyway, so it is read only once; a row comes with its text only where SQL is not sure of it.
 */
function countInOnePass(reader: RowReader, source: RowSource, may: Sql, sure: Sql): number {
  const columns = `no, CASE WHEN ${sure.text} THEN NULL ELSE doc END AS doc, doc_sum`;
  const { text, params } = selectFrom(source, { columns, conditions: [may] });
  // The parameters of the columns stand before those of the conditions.
  return reader.countMatching({ text, params: [...sure.params, ...params] });
}
