/** Reads rows of a source one by one, counts them, and stops when it is told to. */
import type { Database } from "bun:sqlite";
import { checksumOf } from "../../base/checksum.ts";
import { refusedAs } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { DamagedRowError } from "../../protocol/storage-fault.ts";
import { compileFilter } from "../filter/filter-match.ts";
import { type Filter, isMatchAll } from "../filter/filter-types.ts";
import { liveRows } from "./live-rows.ts";
import { ROW_COLUMNS, type RowSource } from "./row-source.ts";
import type { Sql } from "./sql-superset.ts";
import { getRow, iterateStatement } from "./statement-cache.ts";

/** ROW_COLUMNS of a live row. */
export interface Row {
  readonly no: number;
  readonly doc: string;
  readonly doc_sum: number;
}

export interface KeyCount {
  readonly key: number | string | Uint8Array;
  readonly n: number;
  /** The least id among the rows. */
  readonly first: string;
}

export interface MatchedRow {
  readonly doc: string;
  readonly parsed: JsonObject;
}

const ROW_BY_NO = `SELECT ${ROW_COLUMNS} FROM rows WHERE no = ?`;
const ROWS_BETWEEN_CHECKS = 1_000;
/** Long texts make matching a row take longer, so they bring the next check nearer. */
const CHARS_BETWEEN_CHECKS = 1 << 20;
/** Of the matcher (STEP_NS). */
const STEPS_BETWEEN_CHECKS = 1 << 18;

/**
 * Whether a read is to end. It is asked every thousand rows or megabyte of text, and before work that a single document can make
 * long: `steps` is how many of the matcher that takes at most, and nothing can interrupt it.
 */
export type ShouldStop = (steps: number) => boolean;

export class RowReader {
  /** Rows read from SQLite. */
  candidates = 0;
  /** Rows among them that the matcher accepted. */
  matches = 0;
  readonly #db: Database;
  readonly #match: ((doc: JsonObject) => boolean) | undefined;
  readonly #shouldStop: ShouldStop | undefined;
  #charsSinceCheck = 0;
  #stepsSinceCheck = 0;

  /** When `shouldStop` returns true, reading ends with server.unavailable. */
  constructor(db: Database, filter: Filter, shouldStop: ShouldStop | undefined) {
    this.#db = db;
    this.#match = isMatchAll(filter) ? undefined : compileFilter(filter, this.spend);
    this.#shouldStop = shouldStop;
  }

  /** Yields the rows of a SELECT that has at least ROW_COLUMNS. */
  *rows<R extends Row = Row>(select: Sql): Generator<R> {
    for (const row of iterateStatement<R>(this.#db, select)) {
      if (++this.candidates % ROWS_BETWEEN_CHECKS === 0) this.check();
      yield sound(row);
    }
  }

  /** Yields entries of an index; they are no rows and are not counted. */
  *entries<R>(select: Sql): Generator<R> {
    let passed = 0;
    for (const entry of iterateStatement<R>(this.#db, select)) {
      if (++passed % ROWS_BETWEEN_CHECKS === 0) this.check();
      yield entry;
    }
  }

  /** Returns the texts of rows that are known to match, in the order of the numbers given. */
  docs(numbers: readonly number[]): string[] {
    const docs: string[] = [];
    for (const no of numbers) {
      const row = this.#byNo(no);
      if (!row) continue;
      docs.push(row.doc);
      this.#read(row.doc);
    }
    this.candidates += docs.length;
    this.matches += docs.length;
    return docs;
  }

  #byNo(no: number): Row | undefined {
    const row = getRow<Row>(this.#db, { text: ROW_BY_NO, params: [no] });
    return row && sound(row);
  }

  /** The row of a SELECT that has at least ROW_COLUMNS and finds one at most. */
  row(select: Sql): Row | undefined {
    const row = getRow<Row>(this.#db, select);
    if (!row) return undefined;
    this.candidates++;
    return sound(row);
  }

  /** Yields those rows of a SELECT with at least ROW_COLUMNS that the filter accepts. */
  *matching<R extends Row = Row>(select: Sql): Generator<R & MatchedRow> {
    for (const row of this.rows<R>(select)) {
      const { doc } = row;
      const parsed = this.accept(doc);
      if (parsed) yield { ...row, parsed };
    }
  }

  /** Yields the rows that the filter accepts among those whose `no` a SELECT gives, in the order of the SELECT. */
  *matchingNumbers(select: Sql): Generator<MatchedRow> {
    for (const { no } of iterateStatement<{ readonly no: number }>(this.#db, select)) {
      if (++this.candidates % ROWS_BETWEEN_CHECKS === 0) this.check();
      const row = this.#byNo(no);
      const parsed = row && this.accept(row.doc);
      if (parsed) yield { doc: row.doc, parsed };
    }
  }

  /**
   * Counts the rows of a SELECT of ROW_COLUMNS: every row whose `doc` is null, and of the others those that the filter accepts.
   */
  countMatching(select: Sql): number {
    let count = 0;
    for (const row of iterateStatement<Row | (Omit<Row, "doc"> & { readonly doc: null })>(this.#db, select)) {
      if (++this.candidates % ROWS_BETWEEN_CHECKS === 0) this.check();
      if (row.doc === null || !this.#match) count++;
      else {
        this.#read(row.doc);
        if (this.#match(JSON.parse(sound(row).doc))) count++;
      }
    }
    return count;
  }

  /** Yields the rows of a SELECT that counts rows by key. */
  *keyCounts(select: Sql): Generator<KeyCount> {
    let groups = 0;
    for (const row of iterateStatement<KeyCount>(this.#db, select)) {
      if (++groups % ROWS_BETWEEN_CHECKS === 0) this.check();
      this.matches += row.n;
      yield row;
    }
  }

  /** Returns the parsed document if the filter accepts it. */
  accept(doc: string): JsonObject | undefined {
    this.#read(doc);
    const parsed = JSON.parse(doc) as JsonObject;
    if (this.#match && !this.#match(parsed)) return undefined;
    this.matches++;
    return parsed;
  }

  liveRows(source: RowSource): number {
    return liveRows(this.#db, source);
  }

  /** Returns the only row of a SELECT. */
  get<T>(select: Sql): T | undefined {
    return getRow<T>(this.#db, select);
  }

  /**
   * Called before work of so many steps.
   * @throws SvcError server.unavailable when the reader was told to stop
   */
  readonly spend = (steps: number): void => {
    this.#stepsSinceCheck += steps;
    if (this.#stepsSinceCheck >= STEPS_BETWEEN_CHECKS) this.check(steps);
  };

  /** @throws SvcError server.unavailable when the reader was told to stop, or may not do `steps` at once */
  check(steps = 0): void {
    this.#charsSinceCheck = 0;
    this.#stepsSinceCheck = 0;
    if (this.#shouldStop?.(steps)) throw refusedAs("server.unavailable", undefined, refusal("query.cancelled"));
  }

  #read(doc: string): void {
    this.#charsSinceCheck += doc.length;
    if (this.#charsSinceCheck >= CHARS_BETWEEN_CHECKS) this.check();
  }
}

/** Returns the row, if its text is what was stored. @throws DamagedRowError */
export function sound<R extends Row>(row: R): R {
  if (typeof row.doc === "string" && checksumOf(row.doc) === row.doc_sum) return row;
  throw new DamagedRowError(row.no);
}
