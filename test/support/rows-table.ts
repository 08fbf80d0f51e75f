/** A table of rows as the store has it, for tests of the query room alone. */
import { Database } from "bun:sqlite";
import { indexedPathOf } from "../../src/query/rows/index-key.ts";
import { createQueryIndexTable } from "../../src/store/rows/query-index-table.ts";
import { QUERY_KEY_SCHEMA } from "../../src/store/rows/query-key-schema.ts";
import { docSumOf } from "../../src/store/rows/row-sums.ts";

export const COLLECTION_ID = 7;

/** An in-memory database with the documents as live rows of collection 7, in the order given, beside rows that must not show. */
export function createRowsTable(docs: readonly { id: string }[]): Database {
  const db = new Database(":memory:");
  db.exec(`
    CREATE TABLE rows(no INTEGER PRIMARY KEY, collectionId INTEGER, id TEXT, doc TEXT, doc_sum INTEGER, state INTEGER, UNIQUE(collectionId, id));
    CREATE INDEX rows_not_live ON rows(collectionId) WHERE state <> 1;
    CREATE VIEW collections AS SELECT collectionId AS no, count(*) AS live FROM rows WHERE state = 1 GROUP BY collectionId;
    ${QUERY_KEY_SCHEMA}`);
  const insert = db.prepare("INSERT INTO rows(collectionId, id, doc, state, doc_sum) VALUES (?, ?, ?, ?, ?)");
  const put = (collectionId: number, doc: { id: string; [field: string]: unknown }, state: number) => {
    const text = JSON.stringify(doc);
    insert.run(collectionId, doc.id, text, state, docSumOf(text));
  };
  db.transaction(() => {
    for (const doc of docs) put(COLLECTION_ID, doc, 1);
    for (let i = 0; i < 20; i++) {
      put(COLLECTION_ID, { id: `dead${i}`, a: i, b: "x" }, 0);
      put(COLLECTION_ID + 1, { id: `other${i}`, a: i, b: "x" }, 1);
    }
  })();
  return db;
}

/** Makes indexes of collection 7 and fills them at once. */
export function indexPaths(db: Database, paths: readonly string[]): void {
  const indexes = createQueryIndexTable(db);
  const numbers = db.prepare<{ no: number }, []>(`SELECT no FROM rows WHERE collectionId = ${COLLECTION_ID}`).all();
  for (const path of paths) {
    const indexed = indexedPathOf(path);
    if (!indexed) throw new Error(`${path} cannot be indexed`);
    const no = indexes.add(COLLECTION_ID, indexed);
    for (const row of numbers) indexes.fill(no, [row.no]);
    indexes.finish({ no, collectionId: COLLECTION_ID, path });
  }
}
