import type { Log } from "../../base/log.ts";
import { explainAggregate } from "../../query/aggregate/aggregate-explain.ts";
import { parsePipeline } from "../../query/aggregate/aggregate-parse.ts";
import { pushdownOf } from "../../query/aggregate/aggregate-plan.ts";
import { type AggregateResult, parseAggregateLimits, runAggregate } from "../../query/aggregate/aggregate-run.ts";
import type { AggregateLimits, Pipeline } from "../../query/aggregate/aggregate-types.ts";
import { pathsWantedByPipeline } from "../../query/aggregate/wanted-paths.ts";
import type { Packed } from "../../query/readers/reader-job.ts";
import type { ReaderPool } from "../../query/readers/reader-pool.ts";
import { NO_ROWS, rowsOf } from "../../query/rows/row-source.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { SchemaPort } from "../type/port.ts";
import type { IndexAdvisor } from "./index-advisor.ts";
import { onTheSpot } from "./on-the-spot.ts";
import type { QuerySource } from "./port.ts";
import type { ReadOptions } from "./record-query.ts";

/** The part of an aggregate body that says what is wanted, in the caller's terms. */
export interface AggregateBody {
  pipeline: unknown;
  groupLimit?: unknown;
  accumArrayLimit?: unknown;
  memoryLimitBytes?: unknown;
}

/** Only a collection of up to this many records is worth a try on the server's own loop. */
const INLINE_ROWS = 200;

export type RecordAggregates = ReturnType<typeof createRecordAggregates>;

/** Pipelines over the collections of a space (AGG-1). */
export function createRecordAggregates(deps: {
  tables: Pick<SpaceStore, "db" | "rows" | "path">;
  schema: Pick<SchemaPort, "declaredKind">;
  readers: ReaderPool;
  log: Log;
  advisor?: IndexAdvisor;
}) {
  const { schema, readers, log, advisor } = deps;
  const { db, rows, path } = deps.tables;

  const prepare = (source: QuerySource, body: AggregateBody): Prepared => {
    const declared = (declaredPath: string) => schema.declaredKind(source.dataset, declaredPath);
    const pipeline = parsePipeline(body.pipeline, { declared });
    const limits = parseAggregateLimits(body);
    const live = source.collectionId === undefined ? 0 : rows.liveCount(source.collectionId);
    const rowSource = source.collectionId === undefined ? NO_ROWS : rowsOf(source.collectionId);
    return { pipeline, limits, live, rowSource };
  };

  return {
    /**
     * `POST …/aggregate`. Runs on a reader unless the collection is tiny; its records are packed then. Faults are aggregate.bad_pipeline,
     * aggregate.limit_exceeded, filter.invalid, filter.too_complex, request.schema; server.unavailable when `signal`
     * aborts, request.too_large for records that are longer than `mostChars` together.
     */
    async run(
      source: QuerySource,
      body: AggregateBody,
      { signal, mostChars }: ReadOptions = {},
    ): Promise<AggregateResult | Packed<AggregateResult>> {
      const { pipeline, limits, live, rowSource } = prepare(source, body);
      const { dataset, collectionId } = source;
      let reader = false;
      const result = await rows.soundlyLater(collectionId, async () => {
        const tried =
          live <= INLINE_ROWS
            ? onTheSpot((shouldStop) => runAggregate(db, rowSource, pipeline, { limits, mostChars, shouldStop }))
            : undefined;
        reader = tried === undefined;
        const job = { kind: "aggregate", source: rowSource, pipeline: body.pipeline, limits, mostChars } as const;
        return tried ?? readers.run(path, { kind: "packed", of: job }, signal);
      });
      if (log.enabled("debug")) log.debug("aggregate", { dataset, ...result.stats, reader });
      if (collectionId !== undefined) {
        const { filter, skip, limit = Number.POSITIVE_INFINITY } = pushdownOf(pipeline.stages);
        const wanted = () => pathsWantedByPipeline(pipeline);
        advisor?.observe({ collectionId, dataset, wanted, filter, window: skip + limit, stats: result.stats });
      }
      return result;
    },

    /** How the pipeline would run, for people. */
    async explain(source: QuerySource, body: AggregateBody, signal?: AbortSignal): Promise<string> {
      const { pipeline, limits, live, rowSource } = prepare(source, body);
      // Planning counts candidates in indexes.
      if (live <= INLINE_ROWS) return explainAggregate(db, rowSource, pipeline, limits);
      return readers.run(path, { kind: "explain", source: rowSource, pipeline: body.pipeline, limits }, signal);
    },
  };
}

interface Prepared {
  readonly pipeline: Pipeline;
  readonly limits: AggregateLimits;
  readonly live: number;
  readonly rowSource: typeof NO_ROWS;
}
