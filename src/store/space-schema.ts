import type { Migration } from "./database.ts";
import { FILE_SCHEMA } from "./file-table.ts";
import { QUERY_KEY_SCHEMA } from "./query-key-schema.ts";
import { ROW_LOG_SCHEMA } from "./row-log-table.ts";

/**
 * One database per space. `changes`, `writers`, `acl_records`, `parked` and `unopened` are the truth; `objects`, `heads`,
 * `rows`, `touches`, `checkpoints` and `history` are projections of it and can be rebuilt; `locals` exists on this device
 * only.
 */
export const SPACE_MIGRATIONS: readonly Migration[] = [
  (db) => {
    db.exec(`
      CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

      CREATE TABLE acl_records(pos INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);

      -- A writer belongs to its author: the same 16 bytes under another author are another writer.
      CREATE TABLE writers(
        no INTEGER PRIMARY KEY, author BLOB NOT NULL, id BLOB NOT NULL,
        seq INTEGER NOT NULL DEFAULT 0, last BLOB, lamport INTEGER NOT NULL DEFAULT 0, acl_pos INTEGER NOT NULL DEFAULT 0,
        UNIQUE(author, id));

      CREATE TABLE datasets(no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

      -- derived: a root without author. deleted: 1 when the deletion log holds it. mod_*: newest counted change.
      CREATE TABLE objects(
        no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, derived INTEGER NOT NULL, root BLOB NOT NULL,
        author BLOB, created_ms INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,
        projection INTEGER NOT NULL, mod_lamport INTEGER NOT NULL DEFAULT 0, mod_change BLOB, mod_ms INTEGER NOT NULL DEFAULT 0);

      -- counts: whether the author had the right (verdict); never decides membership of the graph.
      CREATE TABLE changes(
        no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, obj INTEGER NOT NULL, lamport INTEGER NOT NULL,
        writer INTEGER NOT NULL, seq INTEGER NOT NULL, acl_pos INTEGER NOT NULL, time INTEGER NOT NULL,
        ds INTEGER NOT NULL, counts INTEGER NOT NULL, bytes BLOB NOT NULL);
      CREATE INDEX changes_by_object ON changes(obj, lamport);
      CREATE INDEX changes_by_writer ON changes(writer, seq);

      CREATE TABLE heads(obj INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY(obj, change)) WITHOUT ROWID;

      -- A collection is a dataset of an object; number 0 is the collection of all objects.
      CREATE TABLE collectionIds(no INTEGER PRIMARY KEY, obj INTEGER NOT NULL, ds INTEGER NOT NULL, live INTEGER NOT NULL DEFAULT 0, UNIQUE(obj, ds));
      INSERT INTO collectionIds(no, obj, ds) VALUES(0, 0, 0);

      -- state: 0 absent (only touched), 1 live, 2 tombstone. (lamport, change): the last one folded. ops: how many were.
      CREATE TABLE rows(
        no INTEGER PRIMARY KEY, collectionId INTEGER NOT NULL, id TEXT NOT NULL, doc TEXT, state INTEGER NOT NULL,
        lamport INTEGER NOT NULL, change BLOB NOT NULL, ops INTEGER NOT NULL, has_local INTEGER NOT NULL DEFAULT 0,
        UNIQUE(collectionId, id));

      CREATE INDEX rows_with_local ON rows(collectionId) WHERE has_local = 1;
      CREATE INDEX rows_by_folder ON rows(doc ->> '$.nav.parentId', doc ->> '$.nav.pos') WHERE collectionId = 0 AND state = 1;

      CREATE TABLE touches(row INTEGER NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY(row, lamport, change)) WITHOUT ROWID;

      CREATE TABLE checkpoints(row INTEGER NOT NULL, lamport INTEGER NOT NULL, change BLOB NOT NULL, ops INTEGER NOT NULL, state INTEGER NOT NULL, doc TEXT, PRIMARY KEY(row, lamport, change)) WITHOUT ROWID;

      -- Device-local fields of a row: base is the row without them.
      CREATE TABLE locals(row INTEGER PRIMARY KEY, base TEXT NOT NULL, fields TEXT NOT NULL);

      CREATE TABLE parked(
        id BLOB PRIMARY KEY, bytes BLOB NOT NULL, wait_kind TEXT NOT NULL, wait_for BLOB NOT NULL, author BLOB NOT NULL,
        received_ms INTEGER NOT NULL, rounds INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
      CREATE INDEX parked_by_wait ON parked(wait_kind, wait_for);

      CREATE TABLE quarantine(id BLOB PRIMARY KEY, reason TEXT NOT NULL, bytes BLOB NOT NULL, received_ms INTEGER NOT NULL) WITHOUT ROWID;
    `);
  },
  (db) => {
    db.exec(`
      -- Versions of dataset definitions by the hash of their text. Part of the truth: what is known stays known.
      CREATE TABLE declarations(id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

      -- The few rows of objects that are types, among all objects.
      CREATE INDEX rows_of_types ON rows(no) WHERE collectionId = 0 AND state = 1 AND instr(doc, '"__type__"') > 0;

      CREATE INDEX colls_by_dataset ON collectionIds(ds);

      -- Reverse of the links (svc://<objectId>) in array values of the objects' rows. A projection of rows.doc.
      CREATE TABLE links(target TEXT NOT NULL, row INTEGER NOT NULL, ns TEXT NOT NULL, prop TEXT NOT NULL, PRIMARY KEY(target, row, ns, prop)) WITHOUT ROWID;
      CREATE INDEX links_by_row ON links(row);

      CREATE VIEW links_of_rows AS
        SELECT r.no AS row, n.key AS ns, p.key AS prop, substr(v.value, 7) AS target
        FROM rows r, json_each(r.doc) n, json_each(CASE n.type WHEN 'object' THEN n.value ELSE '{}' END) p,
          json_each(CASE p.type WHEN 'array' THEN p.value ELSE '[]' END) v
        WHERE r.collectionId = 0 AND substr(n.key, 1, 1) <> '_' AND v.type = 'text'
          AND substr(v.value, 1, 6) = 'svc://';
      CREATE TRIGGER links_of_new_row AFTER INSERT ON rows
        WHEN NEW.collectionId = 0 AND instr(NEW.doc, 'svc://') > 0
        BEGIN INSERT OR IGNORE INTO links(target, row, ns, prop) SELECT target, row, ns, prop FROM links_of_rows WHERE row = NEW.no; END;
      CREATE TRIGGER links_of_changed_row AFTER UPDATE OF doc ON rows
        WHEN NEW.collectionId = 0 AND (instr(NEW.doc, 'svc://') > 0 OR instr(OLD.doc, 'svc://') > 0)
        BEGIN
          DELETE FROM links WHERE row = NEW.no;
          INSERT OR IGNORE INTO links(target, row, ns, prop) SELECT target, row, ns, prop FROM links_of_rows WHERE row = NEW.no;
        END;
      CREATE TRIGGER links_of_gone_row AFTER DELETE ON rows
        WHEN OLD.collectionId = 0 BEGIN DELETE FROM links WHERE row = OLD.no; END;
      INSERT OR IGNORE INTO links(target, row, ns, prop)
        SELECT l.target, l.row, l.ns, l.prop FROM links_of_rows l JOIN rows r ON r.no = l.row WHERE instr(r.doc, 'svc://') > 0;
    `);
  },
  (db) => {
    db.exec(`
      -- What is known to be kept elsewhere. target: network or peer. All changes up to a number, and single ones beyond.
      CREATE TABLE sync_marks(target TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE sync_ahead(target TEXT NOT NULL, change INTEGER NOT NULL, PRIMARY KEY(target, change)) WITHOUT ROWID;
      CREATE INDEX sync_ahead_by_change ON sync_ahead(change);
      -- Kept there, but still parked here.
      CREATE TABLE sync_early(target TEXT NOT NULL, id BLOB NOT NULL, PRIMARY KEY(target, id)) WITHOUT ROWID;
    `);
  },
  (db) => {
    db.exec(`
      -- The graphs of objects without the bytes: enough to find a version's ancestors and to list changes. A projection of
      -- changes. parents: one number, or several as text joined by commas. hidden: its dataset keeps no history.
      CREATE TABLE history(
        obj INTEGER NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL, writer INTEGER NOT NULL, ds INTEGER NOT NULL,
        hidden INTEGER NOT NULL, time INTEGER NOT NULL, parents, PRIMARY KEY(obj, lamport, change)) WITHOUT ROWID;

      -- trace: 16 bytes of a hash of the trace id.
      CREATE TABLE history_traces(
        obj INTEGER NOT NULL, trace BLOB NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL,
        PRIMARY KEY(obj, trace, lamport, change)) WITHOUT ROWID;
    `);
  },
  (db) => {
    db.exec(QUERY_KEY_SCHEMA);
  },
  (db) => {
    // Ids and signatures were over the bodies themselves: nobody could check or make them any more.
    if (db.query("SELECT 1 FROM changes WHERE writer <> 0 LIMIT 1").get())
      throw new Error("it was written by a version from before the first release, in a format that is given up");
    db.exec(`
      -- In the graph, but not folded. wait_kind: body (only a stub is here, wait_for: the change's id), or as in parked.
      CREATE TABLE unopened(
        change INTEGER PRIMARY KEY, obj INTEGER NOT NULL, wait_kind TEXT NOT NULL, wait_for BLOB NOT NULL);
      CREATE INDEX unopened_by_wait ON unopened(wait_kind, wait_for);
      CREATE INDEX unopened_by_object ON unopened(obj);

      -- deleted_ms: when this device learned of the deletion. purged: of its changes stubs are kept.
      ALTER TABLE objects ADD COLUMN deleted_ms INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE objects ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
      CREATE INDEX objects_to_purge ON objects(deleted_ms) WHERE deleted = 1 AND purged = 0;
    `);
  },
  (db) => {
    db.exec(`
      -- What has come that changes wait for, parked or unopened, until all of them were tried; see arrival-table.ts.
      CREATE TABLE arrivals(
        kind TEXT NOT NULL, what BLOB NOT NULL, after_for BLOB NOT NULL, after_id BLOB NOT NULL, after_no INTEGER,
        PRIMARY KEY(kind, what)) WITHOUT ROWID;
    `);
  },
  (db) => {
    // rounds: how many passed with somebody while the body was missing.
    db.exec("ALTER TABLE unopened ADD COLUMN rounds INTEGER NOT NULL DEFAULT 0");
  },
  (db) => {
    db.exec(FILE_SCHEMA);
  },
  (db) => {
    db.exec(ROW_LOG_SCHEMA);
  },
];
