import type { PackedRecords } from "../../protocol/packed-records.ts";
import type { AggregateResult } from "../aggregate/aggregate-run.ts";
import type { AggregateLimits } from "../aggregate/aggregate-types.ts";
import type { RowSource } from "../rows/row-source.ts";
import type { QueryResult } from "../run/run-query.ts";
import type { Miscounts } from "./integrity.ts";

/** A query as it is sent to a reader: filter and sort as the caller gave them; the reader parses them again. */
export interface QueryJob {
  readonly kind: "query";
  readonly source: RowSource;
  readonly filter: unknown;
  readonly sort: unknown;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly includeTotal: boolean;
  readonly mostChars?: number | undefined;
}

/** A pipeline, as the caller gave it. */
interface AggregateJob {
  readonly kind: "aggregate";
  readonly source: RowSource;
  readonly pipeline: unknown;
  readonly limits: AggregateLimits;
  readonly mostChars?: number | undefined;
}

/** One of the above, whose records are sent on as they are. */
interface PackedJob<J extends QueryJob | AggregateJob = QueryJob | AggregateJob> {
  readonly kind: "packed";
  readonly of: J;
}

/** Asks how a pipeline would run. */
interface ExplainJob {
  readonly kind: "explain";
  readonly source: RowSource;
  readonly pipeline: unknown;
  readonly limits: AggregateLimits;
}

/** Asks for the rows of a collection in the order of their keys at a path, so that an index can be filled. */
interface KeyOrderJob {
  readonly kind: "keyOrder";
  readonly collectionId: number;
  readonly path: string;
}

/** Checks a whole table and its indexes. */
interface TableCheckJob {
  readonly kind: "tableCheck";
  readonly table: string;
}

/** Checks the counts that the store keeps by counting again. */
interface CountCheckJob {
  readonly kind: "countCheck";
}

/** Runs statements of the store's own in one snapshot. */
interface SearchJob {
  readonly kind: "search";
  readonly statements: readonly string[];
}

export type ReaderJob =
  | QueryJob
  | AggregateJob
  | PackedJob
  | ExplainJob
  | KeyOrderJob
  | TableCheckJob
  | CountCheckJob
  | SearchJob;

/** A result with its records packed. */
export type Packed<R extends QueryResult | AggregateResult> = Omit<R, "records"> & { readonly records: PackedRecords };

export type ReaderResult<J extends ReaderJob> = J extends QueryJob
  ? QueryResult
  : J extends AggregateJob
    ? AggregateResult
    : J extends PackedJob<infer K>
      ? Packed<K extends QueryJob ? QueryResult : AggregateResult>
      : J extends ExplainJob
        ? string
        : J extends TableCheckJob
          ? string[]
          : J extends CountCheckJob
            ? Miscounts
            : J extends SearchJob
              ? Record<string, unknown>[][]
              : Float64Array;

/** Sent to the worker. `stop` is one shared Int32: any value but 0 asks the job to end. */
export interface ReaderRequest {
  readonly path: string;
  readonly job: ReaderJob;
  readonly stop: SharedArrayBuffer;
}

/** Sent by the worker. */
export type ReaderReply =
  | { readonly ok: true; readonly result: unknown }
  | {
      readonly ok: false;
      readonly code: string;
      readonly message: string;
      readonly details: unknown;
      readonly stack: string;
      /** The name of the fault, where the cause is a disk or a file. */
      readonly fault?: string | undefined;
      /** The number of a damaged row. */
      readonly damagedRow?: number | undefined;
    };
