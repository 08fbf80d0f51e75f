import type { Database } from "bun:sqlite";

/** Must be raised when the tables below change; indexes are then made anew. */
export const INDEX_SCHEMA = 7;

/**
 * Creates the tables of an index, one database for each space. `units` is what can be found, `ft` its words, and `embeddings` its
 * meaning by the hash of the text. Everything can be made anew from the space's own database. A unit comes from a source there,
 * (collectionId, row); row 0 stands for a whole collection. vector: 0 is not embedded, 1 waits to be, 2 is, 3 cannot be. parts:
 * how many vectors it has. hash: of the text, once it was to be embedded. sum: checksum of what does not change.
 */
export function createIndexTables(db: Database): void {
  db.exec(`
    CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS units(
      id INTEGER PRIMARY KEY, collectionId INTEGER NOT NULL, row INTEGER NOT NULL, object TEXT NOT NULL, dataset TEXT NOT NULL,
      record TEXT NOT NULL, chunk INTEGER NOT NULL, scope TEXT NOT NULL, text TEXT NOT NULL, hash BLOB, vector INTEGER NOT NULL,
      parts INTEGER NOT NULL DEFAULT 0, sum INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS units_by_source ON units(collectionId, row);
    CREATE INDEX IF NOT EXISTS units_by_object ON units(object);
    CREATE INDEX IF NOT EXISTS units_to_embed ON units(id) WHERE vector = 1;
    CREATE INDEX IF NOT EXISTS units_by_hash ON units(hash) WHERE hash IS NOT NULL;
    -- The text itself is not kept twice; what is deleted is named by its tokens, and leaves the index at once.
    CREATE VIRTUAL TABLE IF NOT EXISTS ft USING fts5(exact, words, filters, content='', tokenize='ascii', detail=full);
    INSERT INTO ft(ft, rank) VALUES('secure-delete', 1);
    -- Twice as many pieces before they are put together: half of that work, and searches hardly notice.
    INSERT INTO ft(ft, rank) VALUES('automerge', 8);
    -- A stem or a dictionary's word says less than the word itself, a filter says nothing.
    INSERT INTO ft(ft, rank) VALUES('rank', 'bm25(1.0, 0.6, 0.0)');
    CREATE TABLE IF NOT EXISTS embeddings(hash BLOB NOT NULL, part INTEGER NOT NULL, vector BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(hash, part)) WITHOUT ROWID;
    -- How often a text has ended the process that was to embed it.
    CREATE TABLE IF NOT EXISTS refused(hash BLOB PRIMARY KEY, tries INTEGER NOT NULL) WITHOUT ROWID;
  `);
}

/** Removes everything that can be found; embeddings stay, because they belong to texts. */
export function dropUnits(db: Database): void {
  db.exec("DROP TABLE IF EXISTS ft; DROP TABLE IF EXISTS units; DELETE FROM meta WHERE key <> 'model'");
  // This connection may lack the module that the vectors' table needs to be dropped; a connection that has it drops the table.
  db.exec("INSERT INTO meta(key, value) VALUES('vec', 'stale')");
  createIndexTables(db);
}
