import type { ChangeEngine } from "../../change/change-engine.ts";
import { OBJECTS_DATASET } from "../../change/projection.ts";
import { fail } from "../../protocol/errors.ts";
import { parseFilter } from "../../query/filter-parse.ts";
import { rowsOf } from "../../query/row-source.ts";
import { type QueryRequest, type QueryResult, runQuery } from "../../query/run-query.ts";
import { parseSort } from "../../query/sort.ts";
import type { SchemaPort } from "../type/port.ts";

/** The part of a query body that says what is wanted, in the caller's terms. */
export interface QueryBody {
  filter?: unknown;
  sort?: unknown;
  limit?: number | undefined;
  offset?: number | undefined;
  includeTotal?: boolean | undefined;
}

/** A collection to read, and how its declared paths are to be understood. */
export interface QuerySource {
  /** Undefined: nothing was ever written there. */
  coll: number | undefined;
  dataset: string;
}

/** Parses filter, sort and paging (gaps § 3). Faults are filter.* and request.*. */
export function parseQuery(body: QueryBody, schema: Pick<SchemaPort, "declaredKind">, dataset: string): QueryRequest {
  return {
    filter: parseFilter(body.filter, { declared: (path) => schema.declaredKind(dataset, path) }),
    sort: parseSort(body.sort),
    limit: body.limit,
    offset: body.offset,
    includeTotal: body.includeTotal === true,
  };
}

export type RecordQueries = ReturnType<typeof createRecordQueries>;

/** Snapshot reads of the collections of a space. */
export function createRecordQueries(deps: { engine: ChangeEngine; schema: Pick<SchemaPort, "declaredKind"> }) {
  const { engine, schema } = deps;

  /** A dataset of an object; unknown datasets are empty, unknown objects an error. */
  const sourceOf = (objectId: string, dataset: string): QuerySource => {
    const object = engine.object(objectId);
    if (!object || object.deleted) throw fail("object.not_found", { objectId });
    if (dataset === OBJECTS_DATASET)
      throw fail(
        "request.invalid_field",
        { field: "dataset", reason: "objects are queried across the space" },
        "The objects collection is read with POST /v1/spaces/:spaceId/objects/query",
      );
    return { coll: engine.collOf(object, dataset), dataset };
  };

  return {
    sourceOf,
    objectsSource: (): QuerySource => ({ coll: 0, dataset: OBJECTS_DATASET }),
    parse: (body: QueryBody, dataset: string): QueryRequest => parseQuery(body, schema, dataset),
    run(source: QuerySource, request: QueryRequest): QueryResult {
      if (source.coll === undefined) {
        return {
          records: [],
          ...(request.includeTotal ? { total: 0, hasNext: false } : {}),
          stats: { candidates: 0, matches: 0, ms: 0 },
        };
      }
      return runQuery(engine.store.db, rowsOf(source.coll), request);
    },
  };
}
