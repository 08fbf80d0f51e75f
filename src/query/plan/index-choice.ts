/** Chooses, from a few sample documents, which of several paths would serve a query best if it had an index. */
import type { JsonObject } from "../../protocol/json.ts";
import { readPath } from "../expression/expression-path.ts";
import { compileFilter } from "../filter/filter-match.ts";
import { type Filter, isMatchAll } from "../filter/filter-types.ts";
import { conditionsOn } from "./key-ranges.ts";

export interface ChosenFor {
  readonly filter: Filter;
  /** How many matches are wanted. */
  readonly window: number;
  /** How many records the collection has. */
  readonly live: number;
}

/**
 * What judging the sample may cost, in steps of the matcher; it is done on the server's own event loop. They are counted for the worst
 * texts, and those of a sample are hardly ever such: 80 ms then, next to nothing else.
 */
const MOST_STEPS = 1 << 23;
/** On one text. */
const MOST_AT_ONCE = 1 << 20;

class TooDear extends Error {}

/**
 * Returns the path whose index would need the fewest rows to be read. Among equals the path with the most different values wins,
 * then the first; the first, too, where judging the documents would take long. `paths` are those the query wants
 * (wanted-paths.ts); `docs` are some of its documents.
 */
export function choosePath(
  paths: readonly string[],
  docs: readonly JsonObject[],
  chosenFor: ChosenFor,
): string | undefined {
  try {
    return cheapest(paths, docs, chosenFor);
  } catch (error) {
    if (error instanceof TooDear) return paths[0];
    throw error;
  }
}

function cheapest(
  paths: readonly string[],
  docs: readonly JsonObject[],
  { filter, window, live }: ChosenFor,
): string | undefined {
  let stepsLeft = MOST_STEPS;
  const spend = (steps: number): void => {
    stepsLeft -= steps;
    if (stepsLeft < 0 || steps > MOST_AT_ONCE) throw new TooDear();
  };
  const share = (part: Filter): number => {
    const match = isMatchAll(part) ? () => true : compileFilter(part, spend);
    // That none of a few documents match does not prove that none at all do.
    return Math.max(0.5, docs.filter(match).length) / Math.max(1, docs.length);
  };
  const rowsRead = (path: string): number => {
    const conditions = conditionsOn(filter, path);
    // A path without a condition is that of the sort: rows come in order until the window is full.
    return conditions ? share(conditions) * live : Math.min(live, window / share(filter));
  };
  const differentValues = (path: string): number =>
    new Set(docs.map((doc) => JSON.stringify(readPath(doc, path) ?? null))).size;
  const choices = paths.map((path) => ({ path, read: rowsRead(path), different: differentValues(path) }));
  return choices.sort((a, b) => a.read - b.read || b.different - a.different)[0]?.path;
}
