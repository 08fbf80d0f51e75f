import type { Database } from "bun:sqlite";

export const ROW_LOG_SCHEMA = `
  -- Rows whose text has changed, in the order of commits: what the search index follows. A projection of rows, trimmed
  -- once it was followed; the last entry stays, so that numbers are never given twice.
  CREATE TABLE row_log(seq INTEGER PRIMARY KEY, row INTEGER NOT NULL, collectionId INTEGER NOT NULL);
  CREATE TRIGGER log_new_row AFTER INSERT ON rows WHEN NEW.doc IS NOT NULL
    BEGIN INSERT INTO row_log(row, collectionId) VALUES(NEW.no, NEW.collectionId); END;
  CREATE TRIGGER log_changed_row AFTER UPDATE OF doc ON rows WHEN NEW.doc IS NOT OLD.doc
    BEGIN INSERT INTO row_log(row, collectionId) VALUES(NEW.no, NEW.collectionId); END;
  CREATE TRIGGER log_gone_row AFTER DELETE ON rows WHEN OLD.doc IS NOT NULL
    BEGIN INSERT INTO row_log(row, collectionId) VALUES(OLD.no, OLD.collectionId); END;
  -- Another file under the same name has another log.
  INSERT INTO meta(key, value) VALUES('row-log', randomblob(16));
`;

/** The rows whose text has changed, in the order of commits. Triggers write it. */
export function createRowLogTable(db: Database) {
  const trim = db.query<null, [number, number]>(
    "DELETE FROM row_log WHERE seq < ?1 AND seq < (SELECT max(seq) FROM row_log) AND seq < ?2 + (SELECT min(seq) FROM row_log)",
  );
  const head = db.query<{ seq: number | null }, []>("SELECT max(seq) AS seq FROM row_log");
  return {
    /** The number of the last entry; 0 when there never was one. */
    head: (): number => head.get()?.seq ?? 0,
    /** Drops up to `limit` entries before a number, but never the last entry of all. Returns how many. */
    trim: (before: number, limit: number): number => trim.run(before, limit).changes,
  };
}
