/** How many rows match: those SQL is sure of are counted there, the others by the matcher. */
import type { QueryPlan } from "./query-plan.ts";
import type { RowReader } from "./row-reader.ts";
import { type RowSource, selectFrom } from "./row-source.ts";
import type { Sql } from "./sql-superset.ts";

export function countMatches(reader: RowReader, source: RowSource, plan: QueryPlan): number {
  const { narrow, whole, sql } = plan;
  if (!narrow) return countWithin(reader, source, plan, sql.may.text === "1" ? whole : undefined, []);
  const counts = narrow.ranges.map((range) => countWithin(reader, source, plan, narrow.index, [range]));
  return counts.reduce((total, count) => total + count, 0);
}

function countWithin(
  reader: RowReader,
  source: RowSource,
  { sql: { may, sure, exact } }: QueryPlan,
  index: string | undefined,
  conditions: readonly Sql[],
): number {
  let total = 0;
  if (sure.text !== "0") {
    const select = selectFrom(source, { columns: "count(*) AS n", index, conditions: [...conditions, sure] });
    total += reader.all<{ n: number }>(select)[0]?.n ?? 0;
  }
  if (exact) return total;
  const unsure: Sql = { text: `(${sure.text}) is not true`, params: sure.params };
  const rest = selectFrom(source, { columns: "id, doc", index, conditions: [...conditions, may, unsure] });
  for (const _ of reader.matching(rest)) total++;
  return total;
}
