/** How many rows match: those SQL is sure of are counted there, the others by the matcher. */
import type { QueryPlan } from "./query-plan.ts";
import type { RowReader } from "./row-reader.ts";
import { type RowSource, selectFrom } from "./row-source.ts";
import type { Sql } from "./sql-superset.ts";

export function countMatches(reader: RowReader, source: RowSource, { narrow, whole, sql }: QueryPlan): number {
  const { may, sure, exact } = sql;
  if (narrow) {
    const counts = narrow.ranges.map((range) => countInRange(reader, source, sql, narrow.index, range));
    return counts.reduce((total, count) => total + count, 0);
  }
  if (exact) return countRows(reader, source, may.text === "1" ? whole : undefined, [may]);
  return countInOnePass(reader, source, may, sure);
}

/** Both halves step through the range of an index, which costs little. */
function countInRange(
  reader: RowReader,
  source: RowSource,
  { may, sure, exact }: QueryPlan["sql"],
  index: string,
  range: Sql,
): number {
  let total = sure.text === "0" ? 0 : countRows(reader, source, index, [range, sure]);
  if (exact) return total;
  const unsure: Sql = { text: `(${sure.text}) is not true`, params: sure.params };
  for (const _ of reader.matching(selectFrom(source, { columns: "id, doc", index, conditions: [range, may, unsure] })))
    total++;
  return total;
}

function countRows(
  reader: RowReader,
  source: RowSource,
  index: string | undefined,
  conditions: readonly Sql[],
): number {
  const select = selectFrom(source, { columns: "count(*) AS n", index, conditions });
  return reader.get<{ n: number }>(select)?.n ?? 0;
}

/** Without an index every row is read anyway, so it is read once: only what SQL is not sure of comes with its text. */
function countInOnePass(reader: RowReader, source: RowSource, may: Sql, sure: Sql): number {
  const columns = `id, CASE WHEN ${sure.text} THEN NULL ELSE doc END AS doc`;
  const { text, params } = selectFrom(source, { columns, conditions: [may] });
  // The parameters of the columns stand before those of the conditions.
  return reader.countMatching({ text, params: [...sure.params, ...params] });
}
