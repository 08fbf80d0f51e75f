/** All matches by id ascending, as a pipeline reads them. */
import type { NarrowIndex } from "./query-plan.ts";
import type { MatchedRow, RowReader } from "./row-reader.ts";
import { type RowSource, selectFrom } from "./row-source.ts";
import type { Sql } from "./sql-superset.ts";

/**
 * Streams the rows that `may` lets through and the reader's filter accepts; nothing but the current row is held, apart
 * from SQLite's own sorter where an index narrows.
 */
export function streamMatches(
  reader: RowReader,
  source: RowSource,
  may: Sql,
  narrow: NarrowIndex | undefined,
): Iterable<MatchedRow> {
  const columns = "id, doc";
  if (!narrow) return reader.matching(selectFrom(source, { columns, conditions: [may], orderBy: "id" }));
  if (narrow.ranges.length === 0) return [];
  const { index } = narrow;
  const parts = narrow.ranges.map((range) => selectFrom(source, { columns: "no", index, conditions: [range] }));
  const candidates: Sql = {
    text: `no IN (${parts.map(({ text }) => text).join(" UNION ALL ")})`,
    params: parts.flatMap(({ params }) => params),
  };
  return reader.matching(selectFrom(source, { columns, conditions: [candidates, may], orderBy: "id" }));
}
