import type { Log } from "../../base/log.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { pathsWantedByQuery } from "../../query/aggregate/wanted-paths.ts";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import { isMatchAll } from "../../query/filter/filter-types.ts";
import { planText } from "../../query/plan/plan-text.ts";
import type { Packed, QueryJob } from "../../query/readers/reader-job.ts";
import type { ReaderPool } from "../../query/readers/reader-pool.ts";
import { rowsOf } from "../../query/rows/row-source.ts";
import { namesIds } from "../../query/rows/sql-superset.ts";
import { isQuickRead } from "../../query/run/quick-read.ts";
import { planRequest, type QueryRequest, type QueryResult, runQuery, windowOf } from "../../query/run/run-query.ts";
import { inSnapshot } from "../../query/run/snapshot.ts";
import { parseSort } from "../../query/value/sort.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { SchemaPort } from "../type/port.ts";
import type { IndexAdvisor } from "./index-advisor.ts";
import { onTheSpot } from "./on-the-spot.ts";
import type { QuerySource } from "./port.ts";

type AnyResult = QueryResult | Packed<QueryResult>;
/** Runs a query on a reader. */
type Aside<R> = (job: QueryJob, signal?: AbortSignal) => Promise<R>;

/** The part of a query body that says what is wanted, in the caller's terms. */
export interface QueryBody {
  filter?: unknown;
  sort?: unknown;
  limit?: number | undefined;
  offset?: number | undefined;
  includeTotal?: boolean | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  readonly mostChars?: number | undefined;
}

/** Parses filter, sort and paging (QUERY-4). Faults are filter.* and request.*. */
function parseQuery(body: QueryBody, schema: Pick<SchemaPort, "declaredKind">, dataset: string): QueryRequest {
  return {
    filter: parseFilter(body.filter, { declared: (path) => schema.declaredKind(dataset, path) }),
    sort: parseSort(body.sort),
    limit: body.limit,
    offset: body.offset,
    includeTotal: body.includeTotal === true,
  };
}

/** Whether planning runs statements of its own: not for what is found by ids, nor where everything matches. */
function isPlannedByCounting({ filter }: QueryRequest): boolean {
  return !isMatchAll(filter) && !namesIds(filter);
}

export type RecordQueries = ReturnType<typeof createRecordQueries>;

/** Snapshot reads of the collections of a space. */
export function createRecordQueries(deps: {
  engine: Pick<ChangeEngine, "object" | "collectionIdOf">;
  tables: Pick<SpaceStore, "db" | "rows" | "queryIndexes" | "path">;
  schema: Pick<SchemaPort, "declaredKind">;
  readers: Pick<ReaderPool, "run">;
  log: Log;
  /** Learns which indexes would have served; absent where collections stay small. */
  advisor?: IndexAdvisor;
}) {
  const { engine, schema, readers, log, advisor } = deps;
  const { db, rows, queryIndexes, path } = deps.tables;

  /** A dataset of an object; unknown datasets are empty, unknown objects an error. */
  const sourceOf = (objectId: string, dataset: string): QuerySource => {
    const object = engine.object(objectId);
    if (!object || object.deleted) throw svcError("object.not_found", { objectId });
    if (dataset === OBJECTS_DATASET) {
      throw refusedAs("request.invalid_field", { field: "dataset" }, refusal("objects.queried_apart"), {
        reason: refusal("objects.across"),
      });
    }
    return { collectionId: engine.collectionIdOf(object, dataset), dataset };
  };

  /** Reads on the server's event loop if that is quick; on a reader if it is not, or proves not to be. */
  const read = async <R extends AnyResult>(
    collectionId: number,
    dataset: string,
    body: QueryBody,
    request: QueryRequest,
    aside: Aside<R>,
    signal?: AbortSignal,
  ): Promise<QueryResult | R> => {
    const source = rowsOf(collectionId, queryIndexes.inUse(collectionId));
    const live = rows.liveCount(collectionId);
    const tryQuickly = () => {
      const plan = planRequest(db, { ...source, live }, request);
      const quick = isQuickRead(plan, request, live)
        ? onTheSpot((shouldStop) => runQuery(db, source, { ...request, shouldStop, everyRow: true }, plan))
        : undefined;
      return { plan, quick };
    };
    // Where entries of indexes are counted to plan the read, one transaction for all of it costs less than one a statement.
    const { plan, quick } = isPlannedByCounting(request) ? inSnapshot(db, tryQuickly) : tryQuickly();
    const { filter, sort, limit, offset } = body;
    const { includeTotal = false, mostChars } = request;
    const job = { kind: "query", source, filter, sort, limit, offset, includeTotal, mostChars } as const;
    const result = quick ?? (await aside(job, signal));
    if (log.enabled("debug"))
      log.debug("query", { dataset, ...result.stats, reader: quick === undefined, plan: planText(plan) });
    advisor?.observe({
      collectionId,
      dataset,
      wanted: () => pathsWantedByQuery(request),
      filter: request.filter,
      window: windowOf(request),
      stats: result.stats,
    });
    return result;
  };

  /** Answers a body's window; a row that was damaged is repaired, and then it is read again. */
  const answer = async <R extends AnyResult>(
    { collectionId, dataset }: QuerySource,
    body: QueryBody,
    { signal, mostChars }: ReadOptions,
    aside: Aside<R>,
  ): Promise<QueryResult | R> => {
    const request = { ...parseQuery(body, schema, dataset), mostChars };
    const live = collectionId === undefined ? 0 : rows.liveCount(collectionId);
    if (collectionId === undefined || live === 0) {
      return {
        records: [],
        ...(request.includeTotal ? { total: 0, hasNext: false } : {}),
        stats: { candidates: 0, matches: 0, ms: 0 },
      };
    }
    const soundly = (asked: QueryRequest) =>
      rows.soundlyLater(collectionId, () => read(collectionId, dataset, body, asked, aside, signal));
    if (!request.includeTotal || !isMatchAll(request.filter)) return soundly(request);
    // Everything matches, and the store keeps the count of the collection.
    const result = await soundly({ ...request, includeTotal: false });
    const offset = Math.max(0, body.offset ?? 0);
    const { records } = result;
    const count = "pieces" in records ? records.count : records.length;
    return { ...result, total: live, hasNext: offset + count < live };
  };

  return {
    sourceOf,
    objectsSource: (): QuerySource => ({ collectionId: OBJECTS_COLLECTION, dataset: OBJECTS_DATASET }),
    parse: (body: QueryBody, dataset: string): QueryRequest => parseQuery(body, schema, dataset),

    /**
     * `POST …/query`: parses the body and answers its window. Ends with server.unavailable when `signal` aborts, with
     * request.too_large for records that are longer than `mostChars` together.
     */
    query: (source: QuerySource, body: QueryBody, options: ReadOptions = {}): Promise<QueryResult> =>
      answer(source, body, options, (job, signal) => readers.run(path, job, signal)),

    /** The same for whoever only sends the records on: those that a reader found are packed. */
    queryToSend: (
      source: QuerySource,
      body: QueryBody,
      options: ReadOptions = {},
    ): Promise<QueryResult | Packed<QueryResult>> =>
      answer(source, body, options, (job, signal) => readers.run(path, { kind: "packed", of: job }, signal)),
  };
}
