/** A query in the form of the address and in the form of the API. */
import type { JsonObject } from "../../src/protocol/json.ts";
import { ApiError, type QueryBody } from "../api/api-client.ts";

export interface QueryText {
  /** A Mongo-style filter in JSON, or empty. */
  filter: string;
  /** Comma-separated paths, with `-` before a descending one. */
  sort: string;
  limit: string;
}

export const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

export function readQueryText(params: URLSearchParams, defaultSort: string): QueryText {
  return {
    filter: params.get("filter") ?? "",
    sort: params.get("sort") ?? defaultSort,
    limit: params.get("limit") ?? String(DEFAULT_LIMIT),
  };
}

/**
 * The query for the window; it is always sorted and limited, so that it can be followed. Throws ApiError for bad JSON.
 */
export function toQueryBody({ filter, sort, limit }: QueryText): QueryBody {
  const paths = sort.split(",").map((path) => path.trim());
  const count = Math.trunc(Number(limit));
  return {
    ...(filter.trim() === "" ? {} : { filter: parseFilter(filter) }),
    sort: paths.some(Boolean) ? paths.filter(Boolean) : ["id"],
    limit: count >= 1 ? Math.min(count, MAX_LIMIT) : DEFAULT_LIMIT,
  };
}

function parseFilter(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ApiError("filter", `The filter is not valid JSON: ${reason}`, 0);
  }
}
