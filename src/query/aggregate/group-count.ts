/**
 * A `$group` that only counts, run in SQL over an index. It is exact: rows with an opaque key are read and grouped by their
 * value.
 */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { readPath } from "../expression/expression-path.ts";
import { ARRAY, KEPT_KEY, OWN_ENTRY } from "../rows/index-key.ts";
import type { KeyCount, Row, RowReader } from "../rows/row-reader.ts";
import { ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import type { Sql } from "../rows/sql-superset.ts";
import { valueKey } from "../value/value-key.ts";
import { compareStrings } from "../value/value-order.ts";
import { type CountedGroup, countDocument } from "./aggregate-plan.ts";
import { checkGroupLimit } from "./group-sink.ts";
import { type MemoryMeter, measureValue } from "./memory-meter.ts";

interface Counted {
  readonly id: Json;
  count: number;
  /** The least record id of the group: groups come in the order of their first record. */
  first: string;
}

/**
 * Returns the groups of the rows that the filter (exact in SQL) selects, in the order of their first record. Returns undefined
 * where a key cannot be read back faithfully (a string that is not well-formed), so that the documents have to be read after all.
 */
export function countGroups(
  reader: RowReader,
  source: RowSource,
  { index: { no: index, path, sql }, names }: CountedGroup,
  bounds: { readonly groupLimit: number; readonly meter: MemoryMeter },
): JsonObject[] | undefined {
  const key = KEPT_KEY.text;
  const groups = createGroups(bounds);
  const known: Sql = { text: `${key} < ${ARRAY} AND ${OWN_ENTRY}`, params: [] };
  const columns = `${key} AS key, count(*) AS n, min(rid) AS first`;
  const counted = selectFrom(source, { columns, index, keysOnly: !sql.needsRow, conditions: [known, sql.may] });
  for (const row of reader.keyCounts({ ...counted, text: `${counted.text} GROUP BY ${key}` })) {
    const id = decodeKey(row.key);
    if (id === undefined) return undefined;
    groups.add(id, row.n, row.first);
  }
  const opaque: Sql = { text: `${key} >= ${ARRAY} AND ${OWN_ENTRY}`, params: [] };
  const unread = selectFrom(source, { columns: `id, ${ROW_COLUMNS}`, index, conditions: [opaque, sql.may] });
  for (const { id, doc } of reader.rows<Row & { readonly id: string }>(unread))
    groups.add(readPath(JSON.parse(doc), path) ?? null, 1, id);
  return groups.inOrder().map(({ id, count }) => countDocument({ id }, names, count));
}

function createGroups({ groupLimit, meter }: { readonly groupLimit: number; readonly meter: MemoryMeter }) {
  const countedByKey = new Map<string, Counted>();
  return {
    add(id: Json, count: number, first: string): void {
      const key = valueKey(id);
      const counted = countedByKey.get(key);
      if (counted) {
        counted.count += count;
        if (compareStrings(first, counted.first) < 0) counted.first = first;
        return;
      }
      checkGroupLimit(countedByKey.size + 1, groupLimit);
      meter.add(measureValue(id) + 2 * key.length);
      countedByKey.set(key, { id, count, first });
    },
    inOrder: () => [...countedByKey.values()].sort((a, b) => compareStrings(a.first, b.first)),
  };
}

/** Returns the value that a key stands for; undefined where the key does not tell. */
function decodeKey(key: KeyCount["key"]): Json | undefined {
  if (typeof key === "number") return key === Number.NEGATIVE_INFINITY ? null : key;
  if (typeof key === "string") return key.includes("\ufffd") ? undefined : key;
  if (key.length === 1) return key[0] === 0x11;
  return { $date: Buffer.from(key.subarray(1)).toString("latin1") };
}
