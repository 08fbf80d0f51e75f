/**
 * Gives matches in the descending order of an index, with ties by id ascending, without sorting. An index read backwards gives
 * ties by id descending, so short runs of ties are reversed in memory and long ones are read again forwards.
 */

import type { PathIndex } from "../plan/query-plan.ts";
import { ARRAY, indexKeySql, KEPT_KEY, OWN_ENTRY } from "../rows/index-key.ts";
import type { MatchedRow, Row, RowReader } from "../rows/row-reader.ts";
import { ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import type { Sql } from "../rows/sql-superset.ts";
import { compareEntries, type SortEntry, type SortKey, toSortEntry } from "../value/sort.ts";

export interface SortedRow {
  readonly doc: string;
  readonly entry: SortEntry;
}

/** How many ties are held in order to be reversed; a run of this many is read forwards instead. */
const MAX_TURNED = 64;

/** Yields the matches whose key is not opaque. `may` narrows what is read; the reader's filter decides. */
export function* rowsDescending(
  reader: RowReader,
  source: RowSource,
  { no: index, path, span }: PathIndex,
  sortKey: SortKey,
  may: Sql,
): Generator<SortedRow> {
  const key = KEPT_KEY.text;
  const own: Sql = { text: OWN_ENTRY, params: [] };
  const sort = [sortKey];
  const compareKeys = compareEntries(sort);
  const sorted = ({ doc, parsed }: MatchedRow): SortedRow => ({ doc, entry: toSortEntry(sort, parsed) });
  // Starts below arrays and opaque keys, which are the greatest, and ends above null, which comes last.
  const low: Sql = span?.low ?? { text: `${key} > -9e999`, params: [] };
  const isTie = (a: SortEntry, b: SortEntry) => compareKeys({ ...a, id: "" }, { ...b, id: "" }) === 0;
  const forwards = (condition: Sql) =>
    reader.matching(
      selectFrom(source, { columns: ROW_COLUMNS, index, conditions: [condition, own, may], orderBy: "rid" }),
    );
  const backwards = (condition: Sql) =>
    reader.matching<Row>(
      selectFrom(source, {
        columns: ROW_COLUMNS,
        index,
        conditions: [low, condition, own, may],
        orderBy: `${key} DESC`,
      }),
    );

  let below: Sql | undefined = span?.high ?? { text: `${key} < ${ARRAY}`, params: [] };
  while (below) {
    const ties: SortedRow[] = [];
    const from: Sql = below;
    below = undefined;
    for (const row of backwards(from)) {
      const next = sorted(row);
      const [tie] = ties;
      if (tie && !isTie(tie.entry, next.entry)) yield* ties.splice(0).reverse();
      ties.push(next);
      if (ties.length < MAX_TURNED) continue;
      // The statement takes the key from its row: a string that is not well-formed would be altered by reading and binding it.
      const same = `(SELECT ${indexKeySql(path)} FROM rows WHERE no = ?)`;
      for (const each of forwards({ text: `${key} = ${same}`, params: [row.no] })) yield sorted(each);
      below = { text: `${key} < ${same}`, params: [row.no] };
      break;
    }
    if (!below) yield* ties.reverse();
  }
  // No comparison matches null, so the rows without a value are left out.
  if (span) return;
  for (const row of forwards({ text: KEPT_KEY.isNull, params: [] })) yield sorted(row);
}
