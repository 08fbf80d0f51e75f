/**
 * Runs a pipeline over the live rows of a collection (AGG-1). SQL does the stages it can do exactly; documents stream through the
 * others.
 */
import type { Database } from "bun:sqlite";
import { refusedAs } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { NarrowIndex } from "../plan/query-plan.ts";
import { type Row, RowReader, type ShouldStop, sound } from "../rows/row-reader.ts";
import { ROW_COLUMNS, type RowSource, selectFrom } from "../rows/row-source.ts";
import { getRow } from "../rows/statement-cache.ts";
import { countMatches } from "../run/count-matches.ts";
import { checkLength } from "../run/reply-length.ts";
import { type QueryStats, runQuery } from "../run/run-query.ts";
import { inSnapshot } from "../run/snapshot.ts";
import { streamMatches } from "../run/stream-matches.ts";
import { type AggregatePlan, planAggregate } from "./aggregate-plan.ts";
import type { AggregateLimits, Pipeline, Sink, Stage } from "./aggregate-types.ts";
import { countGroups } from "./group-count.ts";
import { createMemoryMeter, type MemoryMeter } from "./memory-meter.ts";
import { chainStages, createTextSink, pushText } from "./stage-sinks.ts";

export interface AggregateOptions {
  readonly limits?: AggregateLimits;
  /** As of a query. */
  readonly mostChars?: number | undefined;
  /** When it returns true, the run ends with server.unavailable. */
  readonly shouldStop?: ShouldStop | undefined;
}

export interface AggregateResult {
  /** JSON texts. They are the stored texts, unchanged, where no stage makes new documents. */
  readonly records: string[];
  readonly stats: QueryStats;
}

export const DEFAULT_LIMITS: AggregateLimits = {
  groupLimit: LIMITS.groupLimitDefault,
  accumArrayLimit: LIMITS.accumArrayLimitDefault,
  memoryLimitBytes: LIMITS.memoryLimitBytesDefault,
};

/**
 * Reads the limits of a request body: absent or 0 means the default, a negative number means unlimited.
 * @throws SvcError request.schema where one is no integer
 */
export function parseAggregateLimits(body: { readonly [Name in keyof AggregateLimits]?: unknown }): AggregateLimits {
  const read = (name: keyof AggregateLimits): number => {
    const value = body[name];
    if (value === undefined || value === 0) return DEFAULT_LIMITS[name];
    if (typeof value === "number" && Number.isSafeInteger(value)) return value;
    throw refusedAs("request.schema", { path: name, expected: "integer" }, refusal("pipeline.limit", { name }));
  };
  return {
    groupLimit: read("groupLimit"),
    accumArrayLimit: read("accumArrayLimit"),
    memoryLimitBytes: read("memoryLimitBytes"),
  };
}

/**
 * Runs a pipeline on one snapshot.
 * @throws SvcError aggregate.limit_exceeded, server.unavailable
 */
export function runAggregate(
  db: Database,
  source: RowSource,
  pipeline: Pipeline,
  options: AggregateOptions = {},
): AggregateResult {
  return inSnapshot(db, () => answer(db, source, pipeline, options));
}

function answer(
  db: Database,
  source: RowSource,
  pipeline: Pipeline,
  { limits = DEFAULT_LIMITS, mostChars, shouldStop }: AggregateOptions,
): AggregateResult {
  const startedAt = performance.now();
  const plan = planAggregate(db, source, pipeline);
  const run = new AggregateRun(db, source, plan, pipeline.expressions, limits, shouldStop);
  const records = run.records();
  checkLength(records, mostChars);
  const { candidates, matches, index } = run.stats();
  const ms = performance.now() - startedAt;
  return { records, stats: { candidates, matches, ms, ...(index === undefined ? {} : { index }) } };
}

class AggregateRun {
  readonly #db: Database;
  readonly #source: RowSource;
  readonly #plan: AggregatePlan;
  readonly #expressions: number;
  readonly #limits: AggregateLimits;
  readonly #shouldStop: ShouldStop | undefined;
  readonly #reader: RowReader;
  readonly #meter: MemoryMeter;
  readonly #records: string[] = [];
  #windowStats: QueryStats | undefined;

  constructor(
    db: Database,
    source: RowSource,
    plan: AggregatePlan,
    expressions: number,
    limits: AggregateLimits,
    shouldStop: ShouldStop | undefined,
  ) {
    this.#db = db;
    this.#source = source;
    this.#plan = plan;
    this.#expressions = expressions;
    this.#limits = limits;
    this.#shouldStop = shouldStop;
    this.#reader = new RowReader(db, plan.pushdown.filter, shouldStop);
    this.#meter = createMemoryMeter(limits.memoryLimitBytes);
  }

  records(): string[] {
    const { execution, reading, unpushed } = this.#plan;
    switch (execution.kind) {
      case "count":
        this.#feed(execution.toRecords(countMatches(this.#reader, this.#source, reading)));
        break;
      case "groupCount": {
        const bounds = { groupLimit: this.#limits.groupLimit, meter: this.#meter };
        const groups = countGroups(this.#reader, this.#source, execution, bounds);
        if (groups) this.#feed(groups);
        else this.#stream(undefined, unpushed);
        break;
      }
      case "window":
        this.#runWindow(execution.offset, execution.limit);
        break;
      case "stream":
        this.#stream(execution.narrow, unpushed);
    }
    return this.#records;
  }

  stats(): Omit<QueryStats, "ms"> {
    if (this.#windowStats) return this.#windowStats;
    const { candidates, matches } = this.#reader;
    const index = this.#index();
    return { candidates, matches, ...(index === undefined ? {} : { index }) };
  }

  #index(): string | undefined {
    const { execution, reading } = this.#plan;
    if (execution.kind === "count") return reading.narrow?.path;
    if (execution.kind === "stream") return execution.narrow?.path;
    return execution.kind === "groupCount" ? execution.index.path : undefined;
  }

  #runWindow(offset: number, limit: number): void {
    const { filter, sort } = this.#plan.pushdown;
    const request = { filter, sort, offset, limit, shouldStop: this.#shouldStop };
    const { records, stats } = runQuery(this.#db, this.#source, request);
    this.#windowStats = stats;
    if (this.#plan.rest.length === 0) for (const text of records) pushText(this.#records, text, this.#meter);
    else
      this.#feed(
        records.map((text) => {
          this.#enter(text.length);
          return JSON.parse(text) as JsonObject;
        }),
      );
  }

  #stream(narrow: NarrowIndex | undefined, stages: readonly Stage[]): void {
    const rows = streamMatches(this.#reader, this.#source, this.#plan.reading.sql.may, narrow);
    if (stages.length === 0) {
      for (const { doc } of rows) pushText(this.#records, doc, this.#meter);
      return;
    }
    const sink = this.#chain(stages);
    for (const { doc, parsed } of rows) {
      this.#enter(doc.length);
      if (!sink.push(parsed)) break;
    }
    sink.end();
  }

  #feed(docs: readonly JsonObject[]): void {
    const sink = this.#chain(this.#plan.rest);
    for (const doc of docs) if (!sink.push(doc)) break;
    sink.end();
  }

  #chain(stages: readonly Stage[]): Sink {
    const context = {
      limits: this.#limits,
      meter: this.#meter,
      fetchById: (id: string) => this.#fetchById(id),
      check: () => this.#reader.check(),
      spend: this.#reader.spend,
      enter: (chars: number) => this.#enter(chars),
    };
    return chainStages(stages, createTextSink(this.#records, this.#meter), context);
  }

  /** Called before expressions see a document of about so many characters: each of them may go over all of it. */
  #enter(chars: number): void {
    this.#reader.spend(chars * this.#expressions);
  }

  #fetchById(id: string): JsonObject | undefined {
    if (!id.isWellFormed()) return undefined;
    this.#reader.check();
    const select = selectFrom(this.#source, { columns: ROW_COLUMNS, conditions: [{ text: "id = ?", params: [id] }] });
    const row = getRow<Row>(this.#db, select);
    return row ? (JSON.parse(sound(row).doc) as JsonObject) : undefined;
  }
}
