import { isMatchAll } from "../filter/filter-types.ts";
import { FEW_CANDIDATES, type QueryPlan } from "../plan/query-plan.ts";
import { namesIds } from "../rows/sql-superset.ts";
import type { QueryRequest } from "./run-query.ts";

/** SQLite steps over this many entries of an index in less time than a read may hold the event loop. */
const FEW_ENTRIES = 20_000;

/**
 * Whether a read may be tried on the server's own event loop: SQLite passes over little in one step, which nothing can interrupt,
 * and the rows it returns are either soon done or can be stopped in between. `live` is how many rows the collection has.
 */
export function isQuickRead({ access, narrow, estimate }: QueryPlan, request: QueryRequest, live: number): boolean {
  const { filter, limit = 0, offset = 0 } = request;
  if (namesIds(filter) || live <= FEW_CANDIDATES) return true;
  const isAll = isMatchAll(filter);
  const few = narrow !== undefined && narrow.candidates < FEW_CANDIDATES;
  if (request.includeTotal && !few) return false;
  if (access.kind === "byKeys") return estimate.rows <= FEW_CANDIDATES && estimate.entries <= FEW_ENTRIES;
  if (offset > FEW_CANDIDATES) return few;
  switch (access.kind) {
    case "byFilter":
      return few;
    case "bySort":
      // SQLite returns rows one by one, whether they match or not (QueryRequest.everyRow).
      return true;
    case "byId":
      // Rows that may not match are returned one by one, too.
      return limit > 0 && limit <= FEW_CANDIDATES && (isAll || estimate.rows <= 2 * FEW_CANDIDATES);
    case "scan":
      return false;
  }
}
