import type { AggregateResult } from "../aggregate/aggregate-run.ts";
import type { AggregateLimits } from "../aggregate/aggregate-types.ts";
import type { RowSource } from "../rows/row-source.ts";
import type { QueryResult } from "../run/run-query.ts";
import type { Miscounts } from "./integrity.ts";

/** A query as it travels to a reader: filter and sort as the caller gave them, parsed there again. */
export interface QueryJob {
  readonly kind: "query";
  readonly source: RowSource;
  readonly filter: unknown;
  readonly sort: unknown;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly includeTotal: boolean;
}

/** A pipeline, as the caller gave it. */
interface AggregateJob {
  readonly kind: "aggregate";
  readonly source: RowSource;
  readonly pipeline: unknown;
  readonly limits: AggregateLimits;
}

/** How a pipeline would run. */
interface ExplainJob {
  readonly kind: "explain";
  readonly source: RowSource;
  readonly pipeline: unknown;
  readonly limits: AggregateLimits;
}

/** The rows of a collection in the order of their keys at a path, for an index to be filled. */
interface KeyOrderJob {
  readonly kind: "keyOrder";
  readonly collectionId: number;
  readonly path: string;
}

/** A table and its indexes, looked at whole. */
interface TableCheckJob {
  readonly kind: "tableCheck";
  readonly table: string;
}

/** Counts that are kept, taken again. */
interface CountCheckJob {
  readonly kind: "countCheck";
}

export type ReaderJob = QueryJob | AggregateJob | ExplainJob | KeyOrderJob | TableCheckJob | CountCheckJob;
export type ReaderResult<J extends ReaderJob> = J extends QueryJob
  ? QueryResult
  : J extends AggregateJob
    ? AggregateResult
    : J extends ExplainJob
      ? string
      : J extends TableCheckJob
        ? string[]
        : J extends CountCheckJob
          ? Miscounts
          : Float64Array;

/** To the worker. `stop` is one shared Int32: anything but 0 asks the job to end. */
export interface ReaderRequest {
  readonly path: string;
  readonly job: ReaderJob;
  readonly stop: SharedArrayBuffer;
}

/** From the worker. */
export type ReaderReply =
  | { readonly ok: true; readonly result: unknown }
  | {
      readonly ok: false;
      readonly code: string;
      readonly message: string;
      readonly details: unknown;
      readonly stack: string;
      /** What it is called where it has to do with a disk or a file. */
      readonly fault?: string | undefined;
      /** The number of a row that is not what was stored. */
      readonly damagedRow?: number | undefined;
    };
