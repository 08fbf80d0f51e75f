/** Plans a pipeline: which part SQL and the snapshot query take over, and which stages still run on documents. */
import type { Database } from "bun:sqlite";
import type { JsonObject } from "../../protocol/json.ts";
import { setField } from "../expression/output-field.ts";
import { allOf, type Filter, isMatchAll } from "../filter/filter-types.ts";
import {
  isNarrowEnough,
  type NarrowIndex,
  type PathIndex,
  pathIndex,
  planQuery,
  type QueryPlan,
} from "../plan/query-plan.ts";
import type { RowSource } from "../rows/row-source.ts";
import type { SortKey } from "../value/sort.ts";
import type { Pipeline, Stage } from "./aggregate-types.ts";

/** The prefix `$match`*, `$sort`, `$skip`, `$limit`, in that order. */
interface Pushdown {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  readonly skip: number;
  readonly limit: number | undefined;
  /** How many stages the pushdown covers. A `$match` with `$expr` gives its filter to SQL and stays in the pipeline. */
  readonly stages: number;
}

type Execution =
  /** The number of matches, as SQL and the matcher count them; `$count`, or a `$group` of everything that only counts. */
  | { readonly kind: "count"; readonly toRecords: (count: number) => JsonObject[] }
  /** Groups counted over an index. Rows whose key is opaque are read and counted one by one. */
  | ({ readonly kind: "groupCount" } & CountedGroup)
  /** A sorted window, found like that of a query. */
  | { readonly kind: "window"; readonly offset: number; readonly limit: number }
  /** Matches in the order of ids, through all stages after the filter; read from an index where it leaves few rows. */
  | { readonly kind: "stream"; readonly narrow: NarrowIndex | undefined };

/** A `$group` by an indexed path that only counts. */
export interface CountedGroup {
  readonly index: PathIndex;
  /** The fields that hold the count. */
  readonly names: readonly string[];
}

export interface AggregatePlan {
  readonly pushdown: Pushdown;
  readonly execution: Execution;
  /** The stages that documents go through. */
  readonly rest: readonly Stage[];
  /** All stages after the filter: what `rest` is when everything streams. */
  readonly unpushed: readonly Stage[];
  /** The plan of reading what the pushed filter accepts. */
  readonly reading: QueryPlan;
}

/** The snapshot query holds a window of at most this many rows; a larger one is sorted under the memory limit. */
const MAX_WINDOW = 10_000;

export function planAggregate(db: Database, source: RowSource, { stages }: Pipeline): AggregatePlan {
  const pushdown = pushdownOf(stages);
  const reading = planQuery(db, source, { filter: pushdown.filter, sort: [], window: Number.POSITIVE_INFINITY });
  const after = stages.slice(pushdown.stages);
  const matches = stages.slice(0, pushdown.stages).filter(({ kind }) => kind === "match").length;
  const unpushed = stages.slice(matches);
  const plan = { pushdown, reading, unpushed };
  const counted = pushedEntirely(db, pushdown, after, reading);
  if (counted) return { ...plan, execution: counted, rest: after.slice(1) };
  const { sort, skip, limit } = pushdown;
  if (sort.length > 0 && limit !== undefined && skip + limit <= MAX_WINDOW)
    return { ...plan, execution: { kind: "window", offset: skip, limit }, rest: after };
  const narrow = isNarrowEnough(db, source, reading) ? reading.narrow : undefined;
  return { ...plan, execution: { kind: "stream", narrow }, rest: unpushed };
}

/** The prefix of a pipeline that is pushed down. */
export function pushdownOf(stages: readonly Stage[]): Pushdown {
  const filters: Filter[] = [];
  let sort: readonly SortKey[] = [];
  let skip = 0;
  let limit: number | undefined;
  let at = 0;
  for (let stage = stages[at]; stage?.kind === "match"; stage = stages[++at]) {
    if (!isMatchAll(stage.filter)) filters.push(stage.filter);
    if (stage.conditions.length > 0) return { filter: allOf(filters), sort, skip, limit, stages: at };
  }
  const [sortStage] = stages.slice(at);
  if (sortStage?.kind === "sort") {
    sort = sortStage.keys;
    at++;
  }
  const [skipStage] = stages.slice(at);
  if (skipStage?.kind === "skip") {
    skip = skipStage.count;
    at++;
  }
  const [limitStage] = stages.slice(at);
  if (limitStage?.kind === "limit") {
    limit = limitStage.count;
    at++;
  }
  return { filter: allOf(filters), sort, skip, limit, stages: at };
}

/** Handles what needs no documents directly after the filter: `$count`, and a `$group` that only counts. */
function pushedEntirely(
  db: Database,
  pushdown: Pushdown,
  [next]: readonly Stage[],
  reading: QueryPlan,
): Execution | undefined {
  if (next?.kind === "count" && isWhole(pushdown))
    return { kind: "count", toRecords: (count) => [countDocument({}, [next.name], count)] };
  if (next?.kind !== "group" || !isPushedGroup(pushdown, next)) return undefined;
  const names = next.fields.map(({ name }) => name);
  const { path, literal } = next.key;
  if (literal === null)
    return { kind: "count", toRecords: (count) => (count === 0 ? [] : [countDocument({ id: null }, names, count)]) };
  if (path === undefined || !reading.sql.exact) return undefined;
  const index = pathIndex(db, pushdown.filter, path, reading.indexes);
  return index && { kind: "groupCount", index, names };
}

/** Whether a `$group` that follows the pushed-down stages only counts, so that it could be pushed down as well. */
export function isPushedGroup(pushdown: Pushdown, { fields }: Extract<Stage, { kind: "group" }>): boolean {
  return (
    isWhole(pushdown) &&
    fields.every(
      ({ accumulator, operand }) => accumulator === "$count" || (accumulator === "$sum" && operand.literal === 1),
    )
  );
}

/** Whether all matches go on to the next stage, in any order. */
function isWhole({ sort, skip, limit }: Pushdown): boolean {
  return sort.length === 0 && skip === 0 && limit === undefined;
}

/** `doc` with the count in each of the fields. */
export function countDocument(doc: JsonObject, names: readonly string[], count: number): JsonObject {
  for (const name of names) setField(doc, name, count);
  return doc;
}
