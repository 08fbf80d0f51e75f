/** Streams all matches by id ascending, as a pipeline reads them. */
import type { NarrowIndex } from "../plan/query-plan.ts";
import type { MatchedRow, RowReader } from "../rows/row-reader.ts";
import { ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import type { Sql } from "../rows/sql-superset.ts";

/**
 * Streams the rows that `may` lets through and the reader's filter accepts. Only the current row is held in memory; where an
 * index narrows, SQLite sorts the ids of its candidates.
 */
export function streamMatches(
  reader: RowReader,
  source: RowSource,
  may: Sql,
  narrow: NarrowIndex | undefined,
): Iterable<MatchedRow> {
  if (!narrow) return reader.matching(selectFrom(source, { columns: ROW_COLUMNS, conditions: [may], orderBy: "id" }));
  if (narrow.ranges.length === 0) return [];
  const parts = narrow.ranges.map((range) =>
    selectFrom(source, {
      columns: `${narrow.hasArrays ? "DISTINCT " : ""}row AS no, rid`,
      index: narrow.no,
      keysOnly: true,
      conditions: [range],
    }),
  );
  // Where a row may come twice, each SELECT is made distinct as well.
  const union = narrow.hasArrays ? " UNION " : " UNION ALL ";
  return reader.matchingNumbers({
    text: `${parts.map(({ text }) => text).join(union)} ORDER BY rid`,
    params: parts.flatMap(({ params }) => params),
  });
}
