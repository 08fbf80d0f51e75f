import type { Schema } from "./database/database.ts";
import { keepThrice } from "./database/kept-thrice.ts";

const KEPT_AT_FIRST = [
  "meta",
  "intents",
  "local_spaces",
  "space_members",
  "profiles",
  "farewells",
  "space_claims",
  "space_checks",
  "pending_spaces",
].map((table) => ({ table }));

export const KEPT_IN_ACCOUNT = [...KEPT_AT_FIRST, { table: "space_repairs" }];

/** What of an account is this device's own: intents of what spans databases, and which spaces were closed in order. */
export const ACCOUNT_SCHEMA: Schema = {
  migrations: [
    (db) => {
      db.exec(`
      CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
      -- Begun but perhaps not finished: carried out again at boot until it is.
      CREATE TABLE intents(space_id TEXT PRIMARY KEY, payload BLOB NOT NULL) WITHOUT ROWID;
      -- clean: closed in order with nothing left to do; such a space needs no visit at boot.
      CREATE TABLE local_spaces(space_id TEXT PRIMARY KEY, clean INTEGER NOT NULL DEFAULT 0, projection INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
    `);
    },
    (db) => {
      db.exec(`
      -- Who belongs to which space, as their ACLs said when last read; and what is known of each.
      CREATE TABLE space_members(space_id TEXT NOT NULL, identity TEXT NOT NULL, PRIMARY KEY(space_id, identity)) WITHOUT ROWID;
      CREATE INDEX space_members_by_identity ON space_members(identity);
      CREATE TABLE profiles(identity TEXT PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID;
    `);
    },
    (db) => {
      // Rows of spaces that this device alone shows: one-to-one spaces that nobody has answered yet.
      db.exec(`
      CREATE TABLE pending_spaces(space_id TEXT PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID;
      -- Ended here, and kept until others have heard of it.
      CREATE TABLE farewells(space_id TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
    `);
    },
    (db) => {
      // What somebody says of a space to which they added this account, until the space itself says so.
      db.exec(`
      CREATE TABLE space_claims(space_id TEXT NOT NULL, adder TEXT NOT NULL, transport BLOB NOT NULL, name TEXT NOT NULL,
        since INTEGER NOT NULL, PRIMARY KEY(space_id, adder)) WITHOUT ROWID;
    `);
    },
    (db) => {
      // When what is stored of a space was last gone over, all of it.
      db.exec("CREATE TABLE space_checks(space_id TEXT PRIMARY KEY, checked_ms INTEGER NOT NULL) WITHOUT ROWID;");
    },
    (db) => {
      // In the order in which they came. known: the other shared a space with this account by then.
      db.exec(`
      ALTER TABLE pending_spaces RENAME TO unordered;
      CREATE TABLE pending_spaces(no INTEGER PRIMARY KEY AUTOINCREMENT, space_id TEXT NOT NULL UNIQUE,
        known INTEGER NOT NULL, row TEXT NOT NULL);
      CREATE INDEX pending_spaces_by_age ON pending_spaces(known, no);
      INSERT INTO pending_spaces(space_id, known, row)
        SELECT space_id, json_extract(row, '$.author') IN (SELECT identity FROM space_members), row
        FROM unordered ORDER BY json_extract(row, '$.createdAt."$date"');
      DROP TABLE unordered;
    `);
    },
    (db) => {
      for (const kept of KEPT_AT_FIRST) keepThrice(db, kept);
    },
    (db) => {
      // What the disk changed of a space, and what became of it, as JSON.
      db.exec("CREATE TABLE space_repairs(space_id TEXT PRIMARY KEY, repairs TEXT NOT NULL) WITHOUT ROWID;");
      keepThrice(db, { table: "space_repairs" });
    },
  ],
};
