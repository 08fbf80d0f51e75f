/** Reads rows of a source one by one, keeps count of them, and stops when it is told to. */
import type { Database } from "bun:sqlite";
import { svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { compileFilter } from "../filter/filter-match.ts";
import { type Filter, isMatchAll } from "../filter/filter-types.ts";
import { liveRows } from "./live-rows.ts";
import type { RowSource } from "./row-source.ts";
import type { Sql } from "./sql-superset.ts";
import { getRow, iterateStatement } from "./statement-cache.ts";

export interface Row {
  readonly id: string;
  readonly doc: string;
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

const ROWS_BETWEEN_CHECKS = 1_000;
/** Long texts make matching a row take longer, so they bring the next check nearer. */
const CHARS_BETWEEN_CHECKS = 1 << 20;

export class RowReader {
  /** Rows read from SQLite. */
  candidates = 0;
  /** Rows among them that the matcher accepted. */
  matches = 0;
  readonly #db: Database;
  readonly #match: ((doc: JsonObject) => boolean) | undefined;
  readonly #shouldStop: (() => boolean) | undefined;

  #charsSinceCheck = 0;

  /** `shouldStop` is asked every thousand rows or megabyte of text; when it says yes, reading ends with server.unavailable. */
  constructor(db: Database, filter: Filter, shouldStop: (() => boolean) | undefined) {
    this.#db = db;
    this.#match = isMatchAll(filter) ? undefined : compileFilter(filter);
    this.#shouldStop = shouldStop;
  }

  /** Rows of a SELECT of `id, doc`. */
  *rows<R = Row>(select: Sql): Generator<R> {
    for (const row of iterateStatement<R>(this.#db, select)) {
      if (++this.candidates % ROWS_BETWEEN_CHECKS === 0) this.check();
      yield row;
    }
  }

  /** Entries of an index; they are no rows and are not counted. */
  *entries<R>(select: Sql): Generator<R> {
    let passed = 0;
    for (const entry of iterateStatement<R>(this.#db, select)) {
      if (++passed % ROWS_BETWEEN_CHECKS === 0) this.check();
      yield entry;
    }
  }

  /** The texts of rows that are known to match, in the order of their numbers given. */
  docs(numbers: readonly number[]): string[] {
    const docs: string[] = [];
    for (const no of numbers) {
      const row = getRow<{ doc: string }>(this.#db, { text: "SELECT doc FROM rows WHERE no = ?", params: [no] });
      if (!row) continue;
      docs.push(row.doc);
      this.#charsSinceCheck += row.doc.length;
      if (this.#charsSinceCheck >= CHARS_BETWEEN_CHECKS) this.check();
    }
    this.candidates += docs.length;
    this.matches += docs.length;
    return docs;
  }

  /** The rows of a SELECT of `id, doc` and maybe more that the filter accepts. */
  *matching<R extends Row = Row>(select: Sql): Generator<R & MatchedRow> {
    for (const row of this.rows<R>(select)) {
      const { doc } = row;
      const parsed = this.accept(doc);
      if (parsed) yield { ...row, parsed };
    }
  }

  /** The rows that the filter accepts, of those a SELECT of `no` names, in its order. */
  *matchingNumbers(select: Sql): Generator<MatchedRow> {
    for (const { no } of this.rows<{ readonly no: number }>(select)) {
      const row = getRow<{ doc: string }>(this.#db, { text: "SELECT doc FROM rows WHERE no = ?", params: [no] });
      const parsed = row && this.accept(row.doc);
      if (parsed) yield { doc: row.doc, parsed };
    }
  }

  /** Counts the rows of a SELECT of `id, doc`: those with a null `doc` as they are, the others if the filter accepts them. */
  countMatching(select: Sql): number {
    let count = 0;
    for (const { doc } of this.rows<{ readonly doc: string | null }>(select)) {
      if (doc === null || !this.#match || this.#match(JSON.parse(doc))) count++;
    }
    return count;
  }

  /** Rows of a SELECT that counts rows by key. */
  *keyCounts(select: Sql): Generator<KeyCount> {
    let groups = 0;
    for (const row of iterateStatement<KeyCount>(this.#db, select)) {
      if (++groups % ROWS_BETWEEN_CHECKS === 0) this.check();
      this.matches += row.n;
      yield row;
    }
  }

  /** The parsed document if the filter accepts it. */
  accept(doc: string): JsonObject | undefined {
    this.#charsSinceCheck += doc.length;
    if (this.#charsSinceCheck >= CHARS_BETWEEN_CHECKS) this.check();
    const parsed = JSON.parse(doc) as JsonObject;
    if (this.#match && !this.#match(parsed)) return undefined;
    this.matches++;
    return parsed;
  }

  liveRows(source: RowSource): number {
    return liveRows(this.#db, source);
  }

  /** The one row of a SELECT. */
  get<T>(select: Sql): T | undefined {
    return getRow<T>(this.#db, select);
  }

  /** @throws SvcError server.unavailable when the reader was told to stop */
  check(): void {
    this.#charsSinceCheck = 0;
    if (this.#shouldStop?.()) throw svcError("server.unavailable", undefined, "The query was cancelled");
  }
}
