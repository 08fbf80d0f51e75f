/**
 * Keys of records by the values at chosen paths, for queries (design § 6). Kept in step with `rows` by triggers, so
 * whoever writes a row, and however the process ends, they agree. Part of a migration: never edited once released; a
 * change of what a key is makes every index anew.
 *
 *   -9e999          null or missing (no JSON number is as small)
 *   REAL            a number
 *   TEXT            a string
 *   x'10' x'11'     false, true
 *   x'20…'          a canonical date, its ISO text behind a space
 *   x'ff'           an array on the path or at its end, an object, a date not in canonical form
 */

const ISO_GLOB = "dddd-dd-ddTdd:dd:dd.dddZ".replaceAll("d", "[0-9]");

/**
 * The key of a document for the index whose row of `query_indexes` goes by `i`. `src/query/index-key.ts` says the same of
 * a path that is written into the statement; a test holds the two together.
 */
export function storedKeySql(doc: string): string {
  return `CASE WHEN i.prefixes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(i.prefixes) p WHERE json_type(${doc}, p.value) = 'array') THEN x'ff'
    ELSE CASE json_type(${doc}, i.at)
      WHEN 'text' THEN ${doc} ->> i.at
      WHEN 'integer' THEN cast(${doc} ->> i.at AS REAL)
      WHEN 'real' THEN cast(${doc} ->> i.at AS REAL)
      WHEN 'true' THEN x'11' WHEN 'false' THEN x'10' WHEN 'array' THEN x'ff'
      WHEN 'object' THEN CASE
        WHEN (${doc} -> i.at) GLOB '{"$date":"${ISO_GLOB}"}' AND strftime('%Y-%m-%dT%H:%M:%fZ', ${doc} ->> i.date_at) = ${doc} ->> i.date_at
        THEN cast(' ' || (${doc} ->> i.date_at) AS BLOB) ELSE x'ff' END
      ELSE -9e999 END END`;
}

export const QUERY_KEY_SCHEMA = `
  -- state: 0 being filled, 1 in use, 2 being dropped. at, date_at, prefixes: JSON paths of the value, of the text of a date
  -- there, and (a JSON array, null where there is none) of what stands above it.
  CREATE TABLE query_indexes(
    no INTEGER PRIMARY KEY AUTOINCREMENT, coll INTEGER NOT NULL, path TEXT NOT NULL, at TEXT NOT NULL, date_at TEXT NOT NULL,
    prefixes TEXT, state INTEGER NOT NULL DEFAULT 0);
  CREATE INDEX query_indexes_of_coll ON query_indexes(coll);

  -- One entry for each live row of the index's collection. rid is the record's id, row its number in rows.
  CREATE TABLE query_keys(
    idx INTEGER NOT NULL, key NOT NULL, rid TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY(idx, key, rid)) WITHOUT ROWID;

  -- Takes a row's key before and after a change; null where it was not or is no longer live.
  CREATE VIEW query_key_moves AS SELECT 0 AS idx, NULL AS old, NULL AS new, '' AS rid, 0 AS row;
  CREATE TRIGGER query_key_moved INSTEAD OF INSERT ON query_key_moves WHEN NEW.old IS NOT NEW.new BEGIN
    DELETE FROM query_keys WHERE idx = NEW.idx AND key = NEW.old AND rid = NEW.rid;
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row) SELECT NEW.idx, NEW.new, NEW.rid, NEW.row WHERE NEW.new IS NOT NULL;
  END;

  CREATE TRIGGER query_keys_of_new_row AFTER INSERT ON rows WHEN NEW.state = 1 BEGIN
    INSERT OR IGNORE INTO query_keys(idx, key, rid, row)
      SELECT i.no, ${storedKeySql("NEW.doc")}, NEW.id, NEW.no FROM query_indexes i WHERE i.coll = NEW.coll AND i.state < 2;
  END;
  CREATE TRIGGER query_keys_of_changed_row AFTER UPDATE OF doc, state ON rows BEGIN
    INSERT INTO query_key_moves(idx, old, new, rid, row)
      SELECT i.no, CASE WHEN OLD.state = 1 THEN ${storedKeySql("OLD.doc")} END,
        CASE WHEN NEW.state = 1 THEN ${storedKeySql("NEW.doc")} END, NEW.id, NEW.no
      FROM query_indexes i WHERE i.coll = NEW.coll AND i.state < 2;
  END;
  CREATE TRIGGER query_keys_of_gone_row AFTER DELETE ON rows WHEN OLD.state = 1 BEGIN
    DELETE FROM query_keys WHERE (idx, key, rid) IN
      (SELECT i.no, ${storedKeySql("OLD.doc")}, OLD.id FROM query_indexes i WHERE i.coll = OLD.coll AND i.state < 2);
  END;
`;
