/**
 * The floor of the upsert pages: the same JSON, parsed and inserted into SQLite in transactions of a page each, as
 * durably. argv: database path, first record, number of records, size of the dataset. Prints records a second.
 */
import { Database } from "bun:sqlite";
import { PAGE_RECORDS, pageOf } from "./workload.ts";

const [path, firstText, countText, sizeText] = process.argv.slice(2) as [string, string, string, string];
const [first, count, size] = [Number(firstText), Number(countText), Number(sizeText)];
const db = new Database(path, { create: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
db.run("CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID");
const insert = db.query<unknown, [string, string]>("INSERT OR REPLACE INTO rows (id, doc) VALUES (?, ?)");

const pages: string[] = [];
for (let start = first; start < first + count; start += PAGE_RECORDS) {
  pages.push(JSON.stringify(pageOf(start, Math.min(PAGE_RECORDS, first + count - start), size)));
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
