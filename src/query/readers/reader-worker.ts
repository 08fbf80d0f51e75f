/** Entry of a reader: runs one long read at a time over a read-only connection, so that the server's loop stays free. */
import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { SvcError } from "../../protocol/errors.ts";
import { packRecords } from "../../protocol/packed-records.ts";
import { DamagedRowError, storageFault } from "../../protocol/storage-fault.ts";
import { explainAggregate } from "../aggregate/aggregate-explain.ts";
import { parsePipeline } from "../aggregate/aggregate-parse.ts";
import { type AggregateResult, runAggregate } from "../aggregate/aggregate-run.ts";
import { parseFilter } from "../filter/filter-parse.ts";
import { rowsInKeyOrder } from "../plan/key-order.ts";
import { NO_ROWS, rowsOf } from "../rows/row-source.ts";
import { closeWithStatements } from "../rows/statement-cache.ts";
import { type QueryResult, runQuery } from "../run/run-query.ts";
import { inSnapshot } from "../run/snapshot.ts";
import { parseSort } from "../value/sort.ts";
import { faultsOfTable, miscountsIn } from "./integrity.ts";
import type { Packed, ReaderJob, ReaderReply, ReaderRequest } from "./reader-job.ts";

declare const self: Worker;

const MAX_OPEN = 4;

interface OpenFile {
  readonly db: Database;
  /** Identifies the file: a space that was dropped and came back has another file under the same path. */
  readonly inode: number;
}
const open = new Map<string, OpenFile>();

function databaseAt(path: string): Database {
  const { ino: inode } = statSync(path);
  const known = open.get(path);
  if (known?.inode === inode) return known.db;
  if (known) closeAt(path);
  const [oldest] = open.keys();
  if (open.size >= MAX_OPEN && oldest !== undefined) closeAt(oldest);
  const db = new Database(path, { readonly: true });
  db.exec(
    "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
  );
  open.set(path, { db, inode });
  return db;
}

function closeAt(path: string): void {
  const known = open.get(path);
  if (known) closeWithStatements(known.db);
  open.delete(path);
}

function run(db: Database, job: Exclude<ReaderJob, { kind: "packed" }>, shouldStop: () => boolean): unknown {
  if (job.kind === "keyOrder") return rowsInKeyOrder(db, job.collectionId, job.path);
  if (job.kind === "tableCheck") return faultsOfTable(db, job.table);
  if (job.kind === "countCheck") return inSnapshot(db, () => miscountsIn(db));
  if (job.kind === "search") return inSnapshot(db, () => job.statements.map((sql) => db.query(sql).all()));
  // The indexes are those that exist when the reader reads, not when the job was sent.
  const source = job.source.collectionId === undefined ? NO_ROWS : rowsOf(job.source.collectionId);
  // One transaction, so that the window and the count see the same state.
  return inSnapshot(db, () => {
    switch (job.kind) {
      case "explain":
        return explainAggregate(db, source, parsePipeline(job.pipeline), job.limits);
      case "aggregate":
        return runAggregate(db, source, parsePipeline(job.pipeline), {
          limits: job.limits,
          mostChars: job.mostChars,
          shouldStop,
        });
      case "query": {
        const { limit, offset, includeTotal, mostChars } = job;
        const [filter, sort] = [parseFilter(job.filter), parseSort(job.sort)];
        return runQuery(db, source, { filter, sort, limit, offset, includeTotal, mostChars, shouldStop });
      }
    }
  });
}

/** Packs the records of a query or a pipeline; their bytes are handed over with the answer. */
function packed(result: unknown, handedOver: ArrayBuffer[]): Packed<QueryResult | AggregateResult> {
  const found = result as QueryResult | AggregateResult;
  const records = packRecords(found.records);
  for (const { buffer } of records.pieces) handedOver.push(buffer);
  return { ...found, records };
}

self.onmessage = (event: MessageEvent<ReaderRequest>) => {
  const { path, job, stop } = event.data;
  const flag = new Int32Array(stop);
  let answer: ReaderReply;
  const handedOver: ArrayBuffer[] = [];
  try {
    const shouldStop = () => Atomics.load(flag, 0) !== 0;
    const db = databaseAt(path);
    const result = job.kind === "packed" ? packed(run(db, job.of, shouldStop), handedOver) : run(db, job, shouldStop);
    answer = { ok: true, result };
  } catch (error) {
    const known = error instanceof SvcError ? error : undefined;
    answer = {
      ok: false,
      code: known?.code ?? "internal",
      fault: storageFault(error)?.code,
      damagedRow: error instanceof DamagedRowError ? error.row : undefined,
      message: error instanceof Error ? error.message : String(error),
      details: known?.details,
      stack: error instanceof Error ? (error.stack ?? "") : "",
    };
  }
  self.postMessage(answer, handedOver);
};
