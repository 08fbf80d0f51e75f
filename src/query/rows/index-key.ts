/**
 * The index key of a path: the value found there, in the service's own order (INDEX-1), or a sentinel where only the exact
 * matcher can tell. There are two forms of it: one computed from `doc` (`indexKeySql`), and one that triggers keep in the column
 * `key` of `query_keys` for paths that have an index (src/store/rows/query-key-schema.ts). They differ in how they write null, and the
 * kept form also has the keys of each element of an array, beside x'fe' for the array itself.
 *
 *   null or missing NULL where computed, -9e999 where kept (a key of the table is never null)
 *   REAL            a number (cast, because JSON.stringify writes 2^60 as an integer that is not 2^60)
 *   TEXT            a string
 *   x'10' x'11'     false, true
 *   x'20…'          a canonical date, its ISO text behind a space
 *   x'ff'           OPAQUE: an array on the path or at its end, an object, a date not in canonical form
 *
 * Paths reach SQL only through `jsonPathOf`, which refuses whatever cannot be quoted safely.
 */
import { createWeightedCache } from "../../base/weighted-cache.ts";
import type { IndexedPath } from "../../store/rows/query-index-table.ts";
import { toFieldPath } from "../value/field-path.ts";

export const OPAQUE = "x'ff'";
/** The kept key of an array whose elements have keys. ARRAY and OPAQUE are the greatest keys: every key below them is a value. */
export const ARRAY = "x'fe'";
/** Holds for the one entry of a row that is the row's own, not that of an element. */
export const OWN_ENTRY = "part = 0";

/** The key of a path, as conditions name it. */
export interface KeyColumn {
  readonly text: string;
  readonly isNull: string;
  /** Keeps null out of a range that is open below, where a comparison alone does not. */
  readonly isNotNull?: string;
  /** Every key is a value: there are no arrays, and nothing that only the matcher can tell. */
  readonly isPlain?: boolean;
}

/** The key in `query_keys`. */
export const KEPT_KEY: KeyColumn = { text: "key", isNull: "key = -9e999", isNotNull: "key > -9e999" };

/** The same, in an index all of whose entries are values. */
export const PLAIN_KEY: KeyColumn = { ...KEPT_KEY, isPlain: true };

const SAFE_SEGMENT = /^[A-Za-z0-9_:/ -]{1,128}$/;
const MAX_SEGMENTS = 8;
const MAX_PATH_CHARS = 256;
const DIGIT = "[0-9]";
const ISO_GLOB = "dddd-dd-ddTdd:dd:dd.dddZ".replaceAll("d", DIGIT);

/** Returns the key expression of a path, which is deterministic; undefined where the path is not safe to write into SQL. */
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
    // strftime turns 30 February into 2 March, so an impossible date does not come back the same.
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

/**
 * Returns a quoted SQL literal of a JSON path. Segments match SAFE_SEGMENT or are `$date`: they hold no quote, backslash or NUL.
 */
function jsonPathOf(segments: readonly string[]): string {
  return `'${jsonPathText(segments)}'`;
}

function jsonPathText(segments: readonly string[]): string {
  return `$${segments.map((segment) => `."${segment}"`).join("")}`;
}

/** Keys of so many paths are kept: writing one takes as long as reading a row does. */
const KEPT_PATHS = 200;
const keyByPath = createWeightedCache<KeyColumn>(KEPT_PATHS);

/** Returns the key computed from `doc`; undefined where the path is not safe to write into SQL. */
export function computedKey(path: string): KeyColumn | undefined {
  const known = keyByPath.get(path);
  if (known) return known;
  const text = indexKeySql(path);
  if (text === undefined) return undefined;
  const key: KeyColumn = { text, isNull: `${text} is null` };
  keyByPath.keep(path, key, 1);
  return key;
}

/** Returns what the store needs in order to keep the keys of a path; undefined where `isIndexablePath` returns false. */
export function indexedPathOf(path: string): IndexedPath | undefined {
  if (!isIndexablePath(path)) return undefined;
  const { segments } = toFieldPath(path);
  const below = (length: number): string => jsonPathText(segments.slice(0, length));
  return {
    path,
    at: below(segments.length),
    dateAt: jsonPathText([...segments, "$date"]),
    prefixes: segments.slice(1).map((_, i) => below(i + 1)),
  };
}
