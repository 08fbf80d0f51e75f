/**
 * The floor: what a bare Bun handler over SQLite does on this machine, in a process of its own. It parses the same
 * bodies, keeps rows of the same size and commits as durably (WAL, synchronous=FULL), with group commit: everything
 * that arrived in one turn of the event loop goes into one transaction. No rules, no crypto, no history.
 * argv: database path, number of records. Prints its port.
 */
import { Database } from "bun:sqlite";
import { recordFields, recordId } from "./workload.ts";

const [path, sizeText] = process.argv.slice(2) as [string, string];
const size = Number(sizeText);
const db = new Database(path, { create: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
db.run("CREATE TABLE rows (id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID");
const insert = db.query<unknown, [string, string]>("INSERT OR REPLACE INTO rows (id, doc) VALUES (?, ?)");
db.transaction(() => {
  for (let i = 0; i < size; i++) insert.run(recordId(i), JSON.stringify({ id: recordId(i), ...recordFields(i, size) }));
})();
db.run("CREATE INDEX by_group ON rows (doc ->> '$.group')");

const byId = db.query<{ doc: string }, [string]>("SELECT doc FROM rows WHERE id = ?");
const byGroup = db.query<{ doc: string }, [string, number]>(
  "SELECT doc FROM rows WHERE doc ->> '$.group' = ? AND doc ->> '$.done' = 0 ORDER BY doc ->> '$.n' DESC LIMIT ?",
);

interface Waiting {
  id: string;
  value: object;
  resolve: (response: Response) => void;
}
let queue: Waiting[] = [];
const commit = db.transaction((batch: Waiting[]) => {
  for (const { id, value } of batch) {
    const before = JSON.parse(byId.get(id)!.doc) as object;
    insert.run(id, JSON.stringify({ ...before, ...value }));
  }
});
const flush = (): void => {
  const batch = queue;
  queue = [];
  commit(batch);
  for (const { id, resolve } of batch) resolve(Response.json({ versionId: id, changeId: id, recordIds: [id] }));
};

interface Body {
  filter: { id: string; group: string };
  limit: number;
  records: { id: string; ops: { value: object }[] }[];
}
const json = { headers: { "Content-Type": "application/json; charset=utf-8" } };
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const body = (await request.json()) as Body;
    switch (new URL(request.url).pathname) {
      case "/point-read":
        return new Response(`{"records":[${byId.get(body.filter.id)!.doc}]}`, json);
      case "/filtered-read":
        return new Response(
          `{"records":[${byGroup
            .all(body.filter.group, body.limit)
            .map((row) => row.doc)
            .join(",")}]}`,
          json,
        );
      default:
        return new Promise<Response>((resolve) => {
          const [record] = body.records;
          if (queue.push({ id: record!.id, value: record!.ops[0]!.value, resolve }) === 1) setImmediate(flush);
        });
    }
  },
});
console.log(server.port);
