/**
 * The floor of the upsert pages: the same JSON, parsed and inserted into SQLite in transactions of a page each, as
 * durably. argv: JSON of database path, first record, number of records, whether there is an index. Prints records a
 * second.
 */
import { Database } from "bun:sqlite";
import { PAGE_RECORDS, pageOf } from "./workload.ts";

const { path, first, count, indexed } = JSON.parse(process.argv[2]!) as {
  path: string;
  first: number;
  count: number;
  indexed: boolean;
};
const db = new Database(path, { create: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
db.run("CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID");
if (indexed) db.run("CREATE INDEX IF NOT EXISTS by_group ON rows (doc ->> '$.group')");
const insert = db.query<unknown, [string, string]>("INSERT OR REPLACE INTO rows (id, doc) VALUES (?, ?)");

const pages: string[] = [];
for (let start = first; start < first + count; start += PAGE_RECORDS) {
  pages.push(JSON.stringify(pageOf(start, Math.min(PAGE_RECORDS, first + count - start), count)));
}
const insertPage = db.transaction((text: string) => {
  for (const { id, fields } of JSON.parse(text) as { id: string; fields: object }[])
    insert.run(id, JSON.stringify({ id, ...fields }));
});
insertPage(pages[0]!); // warmed; replaced again below
const startedAt = performance.now();
for (const page of pages) insertPage(page);
console.log(count / ((performance.now() - startedAt) / 1000));
db.close();
