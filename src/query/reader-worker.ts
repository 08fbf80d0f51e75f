/** Entry of a reader: runs one long read at a time over a read-only connection, so that the server's loop stays free. */
import { Database } from "bun:sqlite";
import { SvcError } from "../protocol/errors.ts";
import { explainAggregate } from "./aggregate-explain.ts";
import { parsePipeline } from "./aggregate-parse.ts";
import { runAggregate } from "./aggregate-run.ts";
import { parseFilter } from "./filter-parse.ts";
import type { ReaderJob, ReaderReply, ReaderRequest } from "./reader-job.ts";
import { runQuery } from "./run-query.ts";
import { parseSort } from "./sort.ts";

declare const self: Worker;

const MAX_OPEN = 4;
const open = new Map<string, Database>();

function databaseAt(path: string): Database {
  const known = open.get(path);
  if (known) return known;
  if (open.size >= MAX_OPEN) {
    const [oldest] = open.keys();
    open.get(oldest!)!.close();
    open.delete(oldest!);
  }
  const db = new Database(path, { readonly: true });
  db.exec(
    "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
  );
  open.set(path, db);
  return db;
}

function run(db: Database, job: ReaderJob, shouldStop: () => boolean): unknown {
  if (job.kind === "explain") return explainAggregate(db, job.source, parsePipeline(job.pipeline), job.limits);
  if (job.kind === "aggregate") {
    return runAggregate(db, job.source, parsePipeline(job.pipeline), { limits: job.limits, shouldStop });
  }
  return runQuery(db, job.source, {
    filter: parseFilter(job.filter),
    sort: parseSort(job.sort),
    limit: job.limit,
    offset: job.offset,
    includeTotal: job.includeTotal,
    shouldStop,
  });
}

self.onmessage = (event: MessageEvent<ReaderRequest>) => {
  const { id, path, job, stop } = event.data;
  const flag = new Int32Array(stop);
  let answer: ReaderReply;
  try {
    const db = databaseAt(path);
    // One transaction, so that the window and the count are of one moment.
    db.exec("BEGIN");
    try {
      answer = { id, ok: true, result: run(db, job, () => Atomics.load(flag, 0) !== 0) };
    } finally {
      db.exec("COMMIT");
    }
  } catch (error) {
    const known = error instanceof SvcError ? error : undefined;
    answer = {
      id,
      ok: false,
      code: known?.code ?? "internal",
      message: error instanceof Error ? error.message : String(error),
      details: known?.details,
      stack: error instanceof Error ? (error.stack ?? "") : "",
    };
  }
  self.postMessage(answer);
};
