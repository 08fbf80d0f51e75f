/** Tells by which paths an index would serve a query. It says which indexes should exist; the plan looks at those that do. */

import type { Filter } from "../filter/filter-types.ts";
import { keyRangesOf } from "../plan/key-ranges.ts";
import { isIndexablePath } from "../rows/index-key.ts";
import { isIdPath, namesIds } from "../rows/sql-superset.ts";
import type { SortKey } from "../value/sort.ts";
import { isPushedGroup, pushdownOf } from "./aggregate-plan.ts";
import type { Pipeline } from "./aggregate-types.ts";

/**
 * Returns the paths of the conditions that every match must meet, then the path of the sort if only a window is wanted. Returns
 * none where the filter gives the ids of all matches.
 */
export function pathsWantedByQuery(request: {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  readonly limit?: number | undefined;
}): string[] {
  const { filter, sort, limit } = request;
  if (namesIds(filter)) return [];
  const paths = new Set(keyRangesOf(filter).map(({ path }) => path));
  const first = sort[0]?.path.text;
  const isWindow = limit !== undefined && limit > 0;
  if (isWindow && first !== undefined && !isIdPath(first) && isIndexablePath(first)) paths.add(first);
  return [...paths];
}

/**
 * Does the same for the part of a pipeline that is pushed down; a `$group` over everything that only counts wants its own path.
 */
export function pathsWantedByPipeline({ stages }: Pipeline): string[] {
  const pushdown = pushdownOf(stages);
  const paths = pathsWantedByQuery(pushdown);
  const next = stages[pushdown.stages];
  if (paths.length > 0 || next?.kind !== "group" || !isPushedGroup(pushdown, next)) return paths;
  const { path } = next.key;
  return path !== undefined && !isIdPath(path) && isIndexablePath(path) ? [path] : [];
}
