import type { Schema } from "./database/database.ts";
import { type KeptThrice, keepThrice } from "./database/kept-thrice.ts";
import { QUERY_KEY_SCHEMA } from "./rows/query-key-schema.ts";
import { ROW_LOG_SCHEMA } from "./rows/row-log-table.ts";
import { ACL_SCHEMA } from "./tables/acl-table.ts";
import { UNCOUNTED_ROW_BYTES } from "./tables/change-table.ts";
import { EARLY_REQUEST_SCHEMA } from "./tables/early-request-table.ts";
import { FILE_SCHEMA } from "./tables/file-table.ts";
import { INBOX_SCHEMA } from "./tables/inbox-table.ts";
import { PLACE_SCHEMA } from "./tables/place-table.ts";
import { UNNOTIFIED_SCHEMA } from "./tables/unnotified-table.ts";

const isRegular = (row: string): string => `(${row}.derived = 0 AND ${row}.deleted = 0)`;

/**
 * The tables of a space; each space has its own database. `changes`, `writers`, the ACL's tables, `parked` and `pending_bodies`
 * are the truth; `objects`, `heads`, `rows`, `touches`, `checkpoints` and `history` are projections of it and can be rebuilt;
 * `locals` exists on this device only. Tables refer to each other's rows by `no`.
 */
const TRUTH = `
  CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL);

  -- A writer belongs to its author: the same 16 bytes under another author are another writer. changes: how many there are
  -- of it, more than its highest seq when its chain forks; counted: how many of these count.
  CREATE TABLE writers(
    no INTEGER PRIMARY KEY, author BLOB NOT NULL, id BLOB NOT NULL,
    seq INTEGER NOT NULL DEFAULT 0, last OPTIONAL BLOB, lamport INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0, counted INTEGER NOT NULL DEFAULT 0,
    UNIQUE(author, id));
  CREATE INDEX writers_uncounted ON writers(no) WHERE counted = 0;

  CREATE TABLE datasets(no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

  -- derived: a root without author. deleted: 1 when the deletion log holds it. mod_*: newest counted change. deleted_ms: when
  -- this device learned of the deletion. purged: of its changes stubs are kept. deleted_sum: a checksum of both; see
  -- object-table.ts.
  CREATE TABLE objects(
    no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, derived INTEGER NOT NULL, root BLOB NOT NULL,
    author OPTIONAL BLOB, created_ms INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,
    projection INTEGER NOT NULL, mod_lamport INTEGER NOT NULL DEFAULT 0, mod_change OPTIONAL BLOB, mod_ms INTEGER NOT NULL DEFAULT 0,
    deleted_ms INTEGER NOT NULL DEFAULT 0, purged INTEGER NOT NULL DEFAULT 0, deleted_sum INTEGER NOT NULL DEFAULT 0);
  CREATE INDEX objects_by_projection ON objects(projection);
  CREATE INDEX objects_derived ON objects(no) WHERE derived = 1;
  CREATE INDEX objects_to_purge ON objects(deleted_ms) WHERE deleted = 1 AND purged = 0;

  -- How many objects there are that were made by somebody and are not deleted. One row.
  CREATE TABLE regular_objects(count INTEGER NOT NULL);
  INSERT INTO regular_objects VALUES(0);
  CREATE TRIGGER object_added AFTER INSERT ON objects WHEN ${isRegular("NEW")} BEGIN
    UPDATE regular_objects SET count = count + 1;
  END;
  CREATE TRIGGER object_changed AFTER UPDATE OF derived, deleted ON objects WHEN ${isRegular("NEW")} <> ${isRegular("OLD")} BEGIN
    UPDATE regular_objects SET count = count + ${isRegular("NEW")} - ${isRegular("OLD")};
  END;

  -- acl_pos: of the ACL record that it names; between two of them, where that has no position any more.
  -- counts: whether the author had the right (verdict); never decides membership of the graph. kind: 0 a root, which has no
  -- body, 1 whole, 2 a stub. datasetNo: its dataset, 0 while its body is not folded.
  CREATE TABLE changes(
    no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, objectNo INTEGER NOT NULL, lamport INTEGER NOT NULL,
    writer INTEGER NOT NULL, seq INTEGER NOT NULL, acl_pos NUMERIC NOT NULL, time INTEGER NOT NULL,
    datasetNo INTEGER NOT NULL, counts INTEGER NOT NULL, kind INTEGER NOT NULL DEFAULT 0, bytes BLOB NOT NULL);
  CREATE INDEX changes_by_object ON changes(objectNo, lamport);
  CREATE INDEX changes_by_writer ON changes(writer, seq);

  -- What is in the graph and does not count: its number, its bytes and what a row costs besides. One row.
  CREATE TABLE uncounted(count INTEGER NOT NULL, bytes INTEGER NOT NULL);
  INSERT INTO uncounted VALUES(0, 0);
  CREATE TRIGGER uncounted_added AFTER INSERT ON changes WHEN NEW.counts = 0 BEGIN
    UPDATE uncounted SET count = count + 1, bytes = bytes + length(NEW.bytes) + ${UNCOUNTED_ROW_BYTES};
  END;
  CREATE TRIGGER change_judged AFTER UPDATE OF counts ON changes WHEN NEW.counts <> OLD.counts BEGIN
    UPDATE writers SET counted = counted + NEW.counts - OLD.counts WHERE no = NEW.writer;
    UPDATE uncounted SET count = count + OLD.counts - NEW.counts,
      bytes = bytes + (OLD.counts - NEW.counts) * (length(NEW.bytes) + ${UNCOUNTED_ROW_BYTES});
  END;
  -- Writers of whose changes none counted, and now one does.
  CREATE TABLE counted_anew(writer INTEGER PRIMARY KEY);
  CREATE TRIGGER writer_counted_anew AFTER UPDATE OF counted ON writers
    WHEN OLD.counted = 0 AND NEW.counted > 0 AND OLD.changes > 0 BEGIN
    INSERT OR IGNORE INTO counted_anew(writer) VALUES(NEW.no);
  END;
  CREATE TRIGGER uncounted_rewritten AFTER UPDATE OF bytes ON changes WHEN NEW.counts = 0 BEGIN
    UPDATE uncounted SET bytes = bytes + length(NEW.bytes) - length(OLD.bytes);
  END;

  CREATE TABLE heads(objectNo INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY(objectNo, change)) WITHOUT ROWID;

  -- rounds: how many passed with somebody without what it waits for. object: whose change it is, where the format is known.
  CREATE TABLE parked(
    id BLOB PRIMARY KEY, wait_kind TEXT NOT NULL, wait_for BLOB NOT NULL, author BLOB NOT NULL,
    received_ms INTEGER NOT NULL, rounds INTEGER NOT NULL DEFAULT 0, object OPTIONAL BLOB,
    -- Last, and in a table of rowids: whoever looks for another row, or at the rest of one, does not read them.
    bytes BLOB NOT NULL);
  CREATE INDEX parked_by_wait ON parked(wait_kind, wait_for, id);
  CREATE INDEX parked_by_rounds ON parked(rounds, author, wait_kind);

  CREATE TABLE quarantine(id BLOB PRIMARY KEY, code TEXT NOT NULL, facts TEXT NOT NULL, received_ms INTEGER NOT NULL, sum INTEGER NOT NULL,
    bytes BLOB NOT NULL);
  CREATE INDEX quarantine_by_time ON quarantine(received_ms, id);

  -- In the graph, but not folded. wait_kind: body (only a stub is here, wait_for: the change's id), or as in parked.
  CREATE TABLE pending_bodies(
    change INTEGER PRIMARY KEY, objectNo INTEGER NOT NULL, wait_kind TEXT NOT NULL, wait_for BLOB NOT NULL,
    rounds INTEGER NOT NULL DEFAULT 0);
  CREATE INDEX pending_bodies_by_wait ON pending_bodies(wait_kind, wait_for);
  CREATE INDEX pending_bodies_by_rounds ON pending_bodies(rounds);
  CREATE INDEX pending_bodies_by_object ON pending_bodies(objectNo);

  -- What has come that changes wait for, parked or as pending bodies, until all of them were tried; see unblocked-table.ts.
  CREATE TABLE unblocked(
    kind TEXT NOT NULL, what BLOB NOT NULL, after_for BLOB NOT NULL, after_id BLOB NOT NULL, after_no OPTIONAL INTEGER,
    PRIMARY KEY(kind, what)) WITHOUT ROWID;

  -- Versions of dataset definitions by the hash of their text. Part of the truth: what is known stays known.
  CREATE TABLE declarations(id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

  -- What is known to be kept elsewhere. target: network or peer. All changes up to a number but for the exceptions, and
  -- beyond it the exceptions alone. sum: a checksum of change; see sync-table.ts.
  CREATE TABLE sync_marks(target TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE sync_exceptions(
    target TEXT NOT NULL, change INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(target, change)) WITHOUT ROWID;
  CREATE INDEX sync_exceptions_by_change ON sync_exceptions(change);
  -- Changes that are kept there, but still parked here.
  CREATE TABLE sync_early_changes(target TEXT NOT NULL, id BLOB NOT NULL, PRIMARY KEY(target, id)) WITHOUT ROWID;
  -- ACL records, in the log or proposed, that were found there.
  CREATE TABLE sync_acl_records(target TEXT NOT NULL, id BLOB NOT NULL, PRIMARY KEY(target, id)) WITHOUT ROWID;
`;

const PROJECTION = `
  -- A collection is a dataset of an object; number 0 is the collection of all objects.
  CREATE TABLE collections(no INTEGER PRIMARY KEY, objectNo INTEGER NOT NULL, datasetNo INTEGER NOT NULL, live INTEGER NOT NULL DEFAULT 0, UNIQUE(objectNo, datasetNo));
  INSERT INTO collections(no, objectNo, datasetNo) VALUES(0, 0, 0);
  CREATE INDEX collections_by_dataset ON collections(datasetNo);

  -- state: 0 absent (only touched), 1 live, 2 tombstone. (lamport, change): the last one folded. ops: how many were.
  -- doc_sum, head_sum: checksums of doc, and of state, lamport, change and ops; see row-sums.ts.
  CREATE TABLE rows(
    no INTEGER PRIMARY KEY, collectionId INTEGER NOT NULL, id TEXT NOT NULL, doc OPTIONAL TEXT, state INTEGER NOT NULL,
    lamport INTEGER NOT NULL, change BLOB NOT NULL, ops INTEGER NOT NULL, has_local INTEGER NOT NULL DEFAULT 0,
    doc_sum INTEGER NOT NULL, head_sum INTEGER NOT NULL, UNIQUE(collectionId, id));
  CREATE INDEX rows_not_live ON rows(collectionId) WHERE state <> 1;
  CREATE INDEX rows_with_local ON rows(collectionId) WHERE has_local = 1;
  CREATE INDEX rows_by_folder ON rows(doc ->> '$.nav.parentId', doc ->> '$.nav.pos') WHERE collectionId = 0 AND state = 1;
  -- The few rows of objects that are types, among all objects.
  CREATE INDEX rows_of_types ON rows(no) WHERE collectionId = 0 AND state = 1 AND instr(doc, '"__type__"') > 0;

  CREATE TABLE touches(row INTEGER NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY(row, lamport, change)) WITHOUT ROWID;

  -- With rowids: a key of a table without them is found by reading whole rows, and a document can be a MiB.
  CREATE TABLE checkpoints(row INTEGER NOT NULL, lamport INTEGER NOT NULL, change BLOB NOT NULL, ops INTEGER NOT NULL, state INTEGER NOT NULL, doc OPTIONAL TEXT, sum INTEGER NOT NULL, PRIMARY KEY(row, lamport, change));

  -- Rows to be folded anew, with the first and the last position in their history where something changed; see dirty-row-table.ts.
  CREATE TABLE dirty_rows(
    row INTEGER PRIMARY KEY, objectNo INTEGER NOT NULL, datasetNo INTEGER NOT NULL,
    from_lamport INTEGER NOT NULL, from_change BLOB NOT NULL, from_sum INTEGER NOT NULL,
    to_lamport INTEGER NOT NULL, to_change BLOB NOT NULL, to_sum INTEGER NOT NULL);
  CREATE INDEX dirty_rows_by_position ON dirty_rows(from_lamport, from_change);

  -- Device-local fields of a row: base is the row without them.
  CREATE TABLE locals(row INTEGER PRIMARY KEY, base TEXT NOT NULL, fields TEXT NOT NULL, sum INTEGER NOT NULL);

  -- The graphs of objects without the bytes: enough to find a version's ancestors and to list changes. parents: one number,
  -- or several as text joined by commas. hidden: its dataset keeps no history.
  CREATE TABLE history(
    objectNo INTEGER NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL, writer INTEGER NOT NULL, datasetNo INTEGER NOT NULL,
    hidden INTEGER NOT NULL, time INTEGER NOT NULL, parents SOME INTEGERS, PRIMARY KEY(objectNo, lamport, change)) WITHOUT ROWID;
  -- trace: 16 bytes of a hash of the trace id.
  CREATE TABLE history_traces(
    objectNo INTEGER NOT NULL, trace BLOB NOT NULL, lamport INTEGER NOT NULL, change INTEGER NOT NULL,
    PRIMARY KEY(objectNo, trace, lamport, change)) WITHOUT ROWID;
`;

/** Links (svc://<objectId>) in array values of the objects' rows, by their target; derived from `rows.doc`. */
const LINKS = `
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
`;

/** What nothing else on this device says again, and is small. The snapshot of the ACL log has a checksum of its own. */
export const KEPT_IN_SPACE: readonly KeptThrice[] = [
  { table: "meta", except: "key = 'acl-snapshot'" },
  ...[
    "datasets",
    "declarations",
    "sync_marks",
    "sync_early_changes",
    "sync_acl_records",
    "unblocked",
    "pending_records",
    "lost_positions",
    "lost_position_changes",
    "kept_keys",
    "inbox_outgoing",
    "inbox_taken",
    "early_requests",
    "network_places",
    "place_hints",
    "unnotified",
    "file_refs",
    "file_contents",
    "query_indexes",
    "acl_ahead",
  ].map((table) => ({ table })),
];

/** Those that the space cannot be opened without. */
export const KEPT_FOR_OPENING = KEPT_IN_SPACE.filter(({ table }) =>
  ["meta", "datasets", "declarations", "kept_keys", "acl_ahead", "query_indexes"].includes(table),
);

/** Steps that were never released came before: their databases are refused. */
export const SPACE_SCHEMA: Schema = {
  givenUp: 30,
  migrations: [
    (db) => {
      db.exec(TRUTH);
      db.exec(ACL_SCHEMA);
      db.exec(INBOX_SCHEMA);
      db.exec(EARLY_REQUEST_SCHEMA);
      db.exec(PLACE_SCHEMA);
      db.exec(UNNOTIFIED_SCHEMA);
      db.exec(PROJECTION);
      db.exec(LINKS);
      db.exec(QUERY_KEY_SCHEMA);
      db.exec(FILE_SCHEMA);
      db.exec(ROW_LOG_SCHEMA);
      for (const kept of KEPT_IN_SPACE) keepThrice(db, kept);
    },
  ],
};
