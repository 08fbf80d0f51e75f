/**
 * Keys of records by the values at chosen paths, for queries (STORE-1). Kept in step with `rows` by triggers, so
 * whoever writes a row, and however the process ends, they agree. Part of a migration: never edited once released; a
 * change of what a key is makes every index anew.
 *
 *   -9e999          null or missing (no JSON number is as small)
 *   REAL            a number
 *   TEXT            a string
 *   x'10' x'11'     false, true
 *   x'20…'          a canonical date, its ISO text behind a space
 *   x'fe'           an array of up to MAX_ELEMENTS elements; each element has its own key beside this one
 *   x'ff'           what only the matcher can tell: a longer array, an array above the value, an object, another date
 */

const ISO_GLOB = "dddd-dd-ddTdd:dd:dd.dddZ".replaceAll("d", "[0-9]");
const MAX_ELEMENTS = 256;

/** The key of JSON text that is an object. `date` is the text of a date in it. */
const objectKey = (json: string, date: string): string =>
  `CASE WHEN ${json} GLOB '{"$date":"${ISO_GLOB}"}' AND strftime('%Y-%m-%dT%H:%M:%fZ', ${date}) = ${date}
    THEN cast(' ' || ${date} AS BLOB) ELSE x'ff' END`;

/**
 * Computes the key of a document for the index whose row of `query_indexes` is aliased `i`. `src/query/rows/index-key.ts`
 * computes the same for a path that is written into the statement, except for arrays, into which it does not look; a test checks
 * that the two agree.
 */
const keyOf = (doc: string): string =>
  `CASE WHEN i.prefixes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(i.prefixes) p WHERE json_type(${doc}, p.value) = 'array')
    THEN x'ff' ELSE CASE json_type(${doc}, i.at)
      WHEN 'text' THEN ${doc} ->> i.at
      WHEN 'integer' THEN cast(${doc} ->> i.at AS REAL)
      WHEN 'real' THEN cast(${doc} ->> i.at AS REAL)
      WHEN 'true' THEN x'11' WHEN 'false' THEN x'10'
      WHEN 'array' THEN CASE WHEN json_array_length(${doc}, i.at) > ${MAX_ELEMENTS} THEN x'ff' ELSE x'fe' END
      WHEN 'object' THEN ${objectKey(`(${doc} -> i.at)`, `(${doc} ->> i.date_at)`)}
      ELSE -9e999 END END`;

const ELEMENT_KEY = `CASE e.type
    WHEN 'text' THEN e.value WHEN 'integer' THEN cast(e.value AS REAL) WHEN 'real' THEN e.value
    WHEN 'true' THEN x'11' WHEN 'false' THEN x'10' WHEN 'null' THEN -9e999
    WHEN 'object' THEN ${objectKey("e.value", `(e.value ->> '$."$date"')`)}
    ELSE x'ff' END`;

/** The array of a document at the index's path; null where there is none. */
const arrayOf = (doc: string): string => `CASE json_type(${doc}, i.at) WHEN 'array' THEN ${doc} -> i.at END`;

/** Rows of collections without an index cost a single look-up. */
const isIndexed = (row: string): string =>
  `EXISTS (SELECT 1 FROM query_indexes WHERE collectionId = ${row}.collectionId AND state < 2)`;

/** Writes into `query_key_moves` what a row was before and after a change; `after` undefined stands for a row that is gone. */
function moves(before: string, after: string | undefined): string {
  const key = (side: string | undefined): string =>
    side === undefined ? "NULL" : `CASE ${side}.state WHEN 1 THEN ${keyOf(`${side}.doc`)} END`;
  const array = (side: string | undefined): string => (side === undefined ? "NULL" : arrayOf(`${side}.doc`));
  return `INSERT INTO query_key_moves(idx, old, new, was, becomes, rid, row)
      SELECT i.no, ${key(before)}, ${key(after)}, ${array(before)}, ${array(after)}, ${before}.id, ${before}.no
      FROM query_indexes i WHERE i.collectionId = ${before}.collectionId AND i.state < 2;`;
}

/** Parameters have a plus in front: a bare one in a join makes SQLite plan the statement anew each time it is run. */
const SOME_ROWS = `FROM query_indexes i CROSS JOIN json_each(+?2) some
  CROSS JOIN rows r ON r.no = some.value AND r.collectionId = i.collectionId AND r.state = 1`;

/** Selects the entry of each row of a JSON array of their numbers, given as ?2, for an index, given as ?1. */
export const ENTRIES_OF_ROWS = `SELECT i.no, ${keyOf("r.doc")}, r.id, r.no, 0 ${SOME_ROWS} WHERE i.no = +?1`;

/** Selects the entries of the rows' array elements. */
export const ENTRIES_OF_ELEMENTS = `SELECT i.no, ${ELEMENT_KEY}, r.id, r.no, 1 ${SOME_ROWS} CROSS JOIN json_each(r.doc, i.at) e
  WHERE i.no = +?1 AND json_type(r.doc, i.at) = 'array' AND ${keyOf("r.doc")} = x'fe'`;

export const QUERY_KEY_SCHEMA = `
  -- state: 0 being filled, 1 in use, 2 being dropped. at, date_at, prefixes: JSON paths of the value, of the text of a date
  -- there, and (a JSON array, null where there is none) of what stands above it.
  CREATE TABLE query_indexes(
    no INTEGER PRIMARY KEY AUTOINCREMENT, collectionId INTEGER NOT NULL, path TEXT NOT NULL, at TEXT NOT NULL, date_at TEXT NOT NULL,
    prefixes OPTIONAL TEXT, state INTEGER NOT NULL DEFAULT 0);
  CREATE INDEX query_indexes_of_coll ON query_indexes(collectionId);

  -- One entry for each live row of the index's collection (part 0); one more for each different element where it has an
  -- array (part 1). rid is the record's id, row its number in rows.
  CREATE TABLE query_keys(
    idx INTEGER NOT NULL, key NOT NULL, rid TEXT NOT NULL, row INTEGER NOT NULL, part INTEGER NOT NULL,
    PRIMARY KEY(idx, key, rid)) WITHOUT ROWID;

  -- Takes the key of a row before and after a change, null where it was not or is no longer live, and the array whose
  -- elements have keys. Those of old elements go first and those of new ones come last: a row's own key may be among them.
  CREATE VIEW query_key_moves AS
    SELECT 0 AS idx, NULL AS old, NULL AS new, NULL AS was, NULL AS becomes, '' AS rid, 0 AS row;
  CREATE TRIGGER query_key_moved INSTEAD OF INSERT ON query_key_moves
    WHEN NEW.old IS NOT NEW.new OR NEW.was IS NOT NEW.becomes BEGIN
    DELETE FROM query_keys WHERE NEW.old = x'fe' AND (idx, key, rid) IN
      (SELECT NEW.idx, ${ELEMENT_KEY}, NEW.rid FROM json_each(NEW.was) e);
    DELETE FROM query_keys WHERE idx = NEW.idx AND key = NEW.old AND rid = NEW.rid;
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part)
      SELECT NEW.idx, NEW.new, NEW.rid, NEW.row, 0 WHERE NEW.new IS NOT NULL;
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part)
      SELECT NEW.idx, ${ELEMENT_KEY}, NEW.rid, NEW.row, 1 FROM json_each(NEW.becomes) e WHERE NEW.new = x'fe';
  END;

  CREATE TRIGGER query_keys_of_new_row AFTER INSERT ON rows WHEN NEW.state = 1 AND ${isIndexed("NEW")} BEGIN
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part)
      SELECT i.no, ${keyOf("NEW.doc")}, NEW.id, NEW.no, 0 FROM query_indexes i WHERE i.collectionId = NEW.collectionId AND i.state < 2;
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row, part)
      SELECT i.no, ${ELEMENT_KEY}, NEW.id, NEW.no, 1 FROM query_indexes i CROSS JOIN json_each(NEW.doc, i.at) e
      WHERE i.collectionId = NEW.collectionId AND i.state < 2 AND json_type(NEW.doc, i.at) = 'array' AND ${keyOf("NEW.doc")} = x'fe';
  END;
  CREATE TRIGGER query_keys_of_changed_row AFTER UPDATE OF doc, state ON rows WHEN ${isIndexed("NEW")} BEGIN
    ${moves("OLD", "NEW")}
  END;
  CREATE TRIGGER query_keys_of_gone_row AFTER DELETE ON rows WHEN OLD.state = 1 AND ${isIndexed("OLD")} BEGIN
    ${moves("OLD", undefined)}
  END;
`;
