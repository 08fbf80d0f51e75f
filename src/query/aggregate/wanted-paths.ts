/** Which paths an index would serve a query by. What it should be, not what there is: the plan looks at that. */

import type { Filter } from "../filter/filter-types.ts";
import { keyRangesOf } from "../plan/key-ranges.ts";
import { isIndexablePath } from "../rows/index-key.ts";
import { isIdPath, namesIds } from "../rows/sql-superset.ts";
import type { SortKey } from "../value/sort.ts";
import { isPushedGroup, pushdownOf } from "./aggregate-plan.ts";
import type { Pipeline } from "./aggregate-types.ts";

/**
 * The paths of the conditions that every match must meet, then that of the sort if only a window is wanted. None where
 * the ids of all matches are given.
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

/** The same of what a pipeline pushes down; a `$group` of everything that only counts wants its own path. */
export function pathsWantedByPipeline({ stages }: Pipeline): string[] {
  const pushdown = pushdownOf(stages);
  const paths = pathsWantedByQuery(pushdown);
  const next = stages[pushdown.stages];
  if (paths.length > 0 || next?.kind !== "group" || !isPushedGroup(pushdown, next)) return paths;
  const { path } = next.key;
  return path !== undefined && !isIdPath(path) && isIndexablePath(path) ? [path] : [];
}
