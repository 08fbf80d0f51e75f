/**
 * The index key of a path: an SQL expression over `doc` that holds the value found there, in an order that is the
 * service's own (gaps § 3), or a sentinel where only the exact matcher can tell.
 *
 *   NULL            null or missing
 *   REAL            a number (cast, because JSON.stringify writes 2^60 as an integer that is not 2^60)
 *   TEXT            a string
 *   x'10' x'11'     false, true
 *   x'20…'          a canonical date, its ISO text behind a space
 *   x'ff'           OPAQUE: an array on the path or at its end, an object, a date not in canonical form
 *
 * The same text stands in CREATE INDEX and in WHERE, which is how SQLite's planner recognizes the index. Paths reach
 * SQL only through `jsonPathOf`, which refuses whatever cannot be quoted without doubt.
 */
import type { Database } from "bun:sqlite";
import { toFieldPath } from "./field-path.ts";
import { getRow } from "./statement-cache.ts";

export const OPAQUE = "x'ff'";

const SAFE_SEGMENT = /^[A-Za-z0-9_:/ -]{1,128}$/;
const MAX_SEGMENTS = 8;
const MAX_PATH_CHARS = 256;
const DIGIT = "[0-9]";
const ISO_GLOB = "dddd-dd-ddTdd:dd:dd.dddZ".replaceAll("d", DIGIT);

/** The key expression of a path, or undefined where the path is not safe to write into SQL. Deterministic. */
export function indexKeySql(path: string): string | undefined {
  const { segments } = toFieldPath(path);
  if (!isIndexablePath(path)) return undefined;
  const at = jsonPathOf(segments);
  const date = jsonPathOf([...segments, "$date"]);
  const value = [
    `case json_type(doc,${at})`,
    `when 'text' then doc->>${at}`,
    `when 'integer' then cast(doc->>${at} as real)`,
    `when 'real' then cast(doc->>${at} as real)`,
    `when 'true' then x'11' when 'false' then x'10' when 'array' then ${OPAQUE}`,
    `when 'object' then case when (doc->${at}) glob '{"$date":"${ISO_GLOB}"}'`,
    // strftime turns 30 February into 2 March: a date that is none does not come back the same.
    `and strftime('%Y-%m-%dT%H:%M:%fZ',doc->>${date})=doc->>${date}`,
    `then cast(' '||(doc->>${date}) as blob) else ${OPAQUE} end end`,
  ].join(" ");
  if (segments.length === 1) return `(${value})`;
  const arrays = segments.slice(1).map((_, i) => `json_type(doc,${jsonPathOf(segments.slice(0, i + 1))})='array'`);
  return `(case when ${arrays.join(" or ")} then ${OPAQUE} else ${value} end)`;
}

/** Whether a path can be pushed into SQL and have an index. */
export function isIndexablePath(path: string): boolean {
  const { segments } = toFieldPath(path);
  if (path.length > MAX_PATH_CHARS || segments.length > MAX_SEGMENTS) return false;
  return segments.every((segment) => SAFE_SEGMENT.test(segment));
}

/** A quoted SQL literal of a quoted JSON path. Segments are SAFE_SEGMENT or `$date`: no quote, backslash or NUL. */
function jsonPathOf(segments: readonly string[]): string {
  return `'$${segments.map((segment) => `."${segment}"`).join("")}'`;
}

/** The name an index on a path of a collection has; `indexedPaths` reads it back. */
export function indexName(coll: number, path: string): string {
  return `rows_q_${checkedColl(coll)}_${Buffer.from(path, "utf8").toString("hex")}`;
}

/**
 * DDL of the index that serves a path of one collection. It ends in `id`, so that equal keys come in the order of ids.
 * Undefined where `isIndexablePath` says no.
 */
export function createIndexSql(coll: number, path: string): string | undefined {
  const key = indexKeySql(path);
  if (key === undefined) return undefined;
  const name = indexName(coll, path);
  return `CREATE INDEX IF NOT EXISTS ${name} ON rows(${key}, id) WHERE coll = ${checkedColl(coll)} AND state = 1`;
}

/** DDL that drops the index of `createIndexSql`. */
export function dropIndexSql(coll: number, path: string): string {
  return `DROP INDEX IF EXISTS ${indexName(coll, path)}`;
}

/** A collection's number as SQL text: partial indexes are only used where it stands as a literal. */
export function checkedColl(coll: number): string {
  if (!Number.isSafeInteger(coll) || coll < 0) throw new RangeError(`collection number ${coll}`);
  return String(coll);
}

interface KnownIndexes {
  readonly schemaVersion: number;
  readonly pathsByColl: Map<number, ReadonlySet<string>>;
}

const knownByDatabase = new WeakMap<Database, KnownIndexes>();

/** The paths of a collection that have an index right now, on this connection. Cached until the schema changes. */
export function indexedPaths(db: Database, coll: number): ReadonlySet<string> {
  const row = getRow<{ schema_version: number }>(db, { text: "PRAGMA schema_version", params: [] });
  const schemaVersion = row?.schema_version ?? 0;
  let known = knownByDatabase.get(db);
  if (known?.schemaVersion !== schemaVersion) {
    known = { schemaVersion, pathsByColl: new Map() };
    knownByDatabase.set(db, known);
  }
  let paths = known.pathsByColl.get(coll);
  if (!paths) {
    const prefix = indexName(coll, "");
    const names = db
      .query<{ name: string }, [string]>("SELECT name FROM sqlite_schema WHERE type = 'index' AND name GLOB ?")
      .all(`${prefix}*`);
    paths = new Set(names.map(({ name }) => Buffer.from(name.slice(prefix.length), "hex").toString("utf8")));
    known.pathsByColl.set(coll, paths);
  }
  return paths;
}
