import { isMatchAll } from "../filter/filter-types.ts";
import { FEW_CANDIDATES, type QueryPlan } from "../plan/query-plan.ts";
import { namesIds } from "../rows/sql-superset.ts";
import type { QueryRequest } from "./run-query.ts";

/** Entries of an index that SQLite steps over in less than the time a read may hold the loop. */
const FEW_ENTRIES = 20_000;

/**
 * Whether a read may be tried on the server's own loop: what SQLite passes over in one step, where nobody can stop it, is
 * little, and what it hands out is soon enough or can be stopped. `live` is how many rows the collection has.
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
      // Rows are handed out one by one, whether they match or not (QueryRequest.everyRow).
      return true;
    case "byId":
      // Rows that may not match are handed out one by one, too.
      return limit > 0 && limit <= FEW_CANDIDATES && (isAll || estimate.rows <= 2 * FEW_CANDIDATES);
    case "scan":
      return false;
  }
}
