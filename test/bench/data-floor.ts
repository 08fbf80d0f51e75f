/**
 * Raw SQLite over the rows of a space, in a process of its own: the floor of the data plane. It holds the same JSON
 * documents, copied from the space's database, with expression indexes, and commits as durably (WAL, synchronous=FULL).
 *
 * argv: where its database goes. Takes a request a line on stdin, answers a line of JSON on stdout.
 */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { timedCall } from "../support/latency.ts";

type Value = string | number;

export type FloorRequest =
  /** Copies the live documents of a dataset of the space's database, or of its objects, into a table of its own. */
  | { kind: "copy"; table: string; from: string; dataset: string | undefined }
  | { kind: "index"; table: string; paths: readonly string[] }
  /** Runs a SELECT once for each list of parameters; answers the milliseconds of each. */
  | { kind: "read"; sql: string; params: readonly (readonly Value[])[] }
  /** Merges `[{id, fields}]` into documents, a transaction for each text; answers the milliseconds of each. */
  | { kind: "write"; table: string; pages: readonly string[] }
  /** Resident memory in MiB. */
  | { kind: "memory" };

const db = new Database(process.argv[2]!, { create: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");

function answer(request: FloorRequest): unknown {
  switch (request.kind) {
    case "copy":
      return copy(request);
    case "index":
      for (const [i, path] of request.paths.entries())
        db.run(`CREATE INDEX ${request.table}_${i} ON ${request.table} (doc ->> '${path}')`);
      db.run("ANALYZE");
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      return [];
    case "read": {
      const statement = db.query<unknown, Value[]>(request.sql);
      return request.params.map((params) => timedCall(() => statement.all(...params)));
    }
    case "write": {
      const get = db.query<{ doc: string }, [string]>(`SELECT doc FROM ${request.table} WHERE id = ?`);
      const put = db.query<null, [string, string]>(
        `INSERT INTO ${request.table}(id, doc) VALUES(?, ?) ON CONFLICT(id) DO UPDATE SET doc = excluded.doc`,
      );
      const write = db.transaction((page: string) => {
        for (const { id, fields } of JSON.parse(page) as { id: string; fields: object }[])
          put.run(id, JSON.stringify({ id, ...JSON.parse(get.get(id)?.doc ?? "{}"), ...fields }));
      });
      return request.pages.map((page) => timedCall(() => write(page)));
    }
    case "memory":
      return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1024;
  }
}

function copy({ table, from, dataset }: Extract<FloorRequest, { kind: "copy" }>): number {
  db.run(`CREATE TABLE ${table}(no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL)`);
  db.run("ATTACH ? AS space", [from]);
  // Collection 0 is that of all objects.
  const collectionId =
    dataset === undefined
      ? "0"
      : "(SELECT c.no FROM space.collections c JOIN space.datasets d ON d.no = c.datasetNo WHERE d.name = ? ORDER BY c.live DESC LIMIT 1)";
  db.run(
    `INSERT INTO ${table}(id, doc) SELECT id, doc FROM space.rows WHERE collectionId = ${collectionId} AND state = 1 ORDER BY id`,
    dataset === undefined ? [] : [dataset],
  );
  db.run("DETACH space");
  return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n;
}

for await (const line of console) console.log(JSON.stringify(answer(JSON.parse(line) as FloorRequest)));
