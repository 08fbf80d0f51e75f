/** Describes in words how a pipeline would run: its access path, what is pushed into SQL, and each stage. */
import type { Database } from "bun:sqlite";
import { isMatchAll } from "../filter/filter-types.ts";
import { candidatesText, planText } from "../plan/plan-text.ts";
import { planQuery, type QueryPlan } from "../plan/query-plan.ts";
import type { RowSource } from "../rows/row-source.ts";
import { inSnapshot } from "../run/snapshot.ts";
import type { SortKey } from "../value/sort.ts";
import { type AggregatePlan, planAggregate } from "./aggregate-plan.ts";
import { DEFAULT_LIMITS } from "./aggregate-run.ts";
import type { AggregateLimits, Pipeline, Stage } from "./aggregate-types.ts";

/** Returns free-form text for people, which programs should not parse. It runs nothing except the counts that planning needs. */
export function explainAggregate(
  db: Database,
  source: RowSource,
  pipeline: Pipeline,
  limits: AggregateLimits = DEFAULT_LIMITS,
): string {
  const plan = inSnapshot(db, () => planAggregate(db, source, pipeline));
  const lines = [
    `Access: ${describeAccess(db, source, plan)}`,
    `Pushdown: ${describePushdown(plan, pipeline)}`,
    pipeline.stages.length === 0 ? "Stages: none" : "Stages:",
    ...pipeline.stages.map(
      (stage, i) => `  ${i + 1}. ${stage.text}: ${describeStage(stage, i, plan, pipeline, limits)}`,
    ),
  ];
  return lines.join("\n");
}

function describeAccess(db: Database, source: RowSource, { execution, pushdown, reading }: AggregatePlan): string {
  switch (execution.kind) {
    case "count":
      return `rows counted${describeCount(reading)}`;
    case "groupCount":
      return `rows counted over the index on ${execution.index.path}; those with an array or object there are read`;
    case "window": {
      const { filter, sort } = pushdown;
      const window = execution.offset + execution.limit;
      return planText(inSnapshot(db, () => planQuery(db, source, { filter, sort, window })));
    }
    case "stream":
      return execution.narrow
        ? `index on ${execution.narrow.path}, ${candidatesText(execution.narrow)}, then by id`
        : "all rows by id, over the index on (collectionId, id)";
  }
}

function describeCount({ narrow, sql }: QueryPlan): string {
  const where = narrow ? ` over the index on ${narrow.path}` : "";
  return `${where}${sql.exact ? ", exactly, in SQL" : "; SQL counts what it is sure of, the matcher decides the rest"}`;
}

function describePushdown(
  { pushdown: { filter, sort, skip, limit, stages } }: AggregatePlan,
  pipeline: Pipeline,
): string {
  const matches = pipeline.stages.slice(0, stages).filter(({ kind }) => kind === "match");
  const parts = [
    ...(isMatchAll(filter)
      ? []
      : [`filter=${matches.map(({ text }) => text).join(" ") || "(the filter beside $expr)"}`]),
    ...(sort.length > 0 ? [`sort=${describeSort(sort)}`] : []),
    ...(skip > 0 ? [`skip=${skip}`] : []),
    ...(limit === undefined ? [] : [`limit=${limit}`]),
  ];
  return parts.length === 0 ? "nothing" : parts.join(" ");
}

function describeSort(keys: readonly SortKey[]): string {
  return keys.map(({ path, descending }) => (descending ? "-" : "") + path.text).join(",");
}

function describeStage(
  stage: Stage,
  index: number,
  { execution, rest }: AggregatePlan,
  { stages }: Pipeline,
  limits: AggregateLimits,
): string {
  const streamed = index >= stages.length - rest.length;
  if (!streamed) {
    if (stage.kind === "match") return "narrowed in SQL, decided by the exact matcher";
    return execution.kind === "window" ? "the window of a query" : "counted in SQL";
  }
  switch (stage.kind) {
    case "match":
      return stage.conditions.length > 0 ? "streams, with $expr" : "streams";
    case "sort":
      return `blocks; holds what it sorts within ${bytes(limits.memoryLimitBytes)}, only the first ones if a $limit follows`;
    case "group":
      return `blocks; at most ${count(limits.groupLimit)} groups within ${bytes(limits.memoryLimitBytes)}`;
    case "facet":
      return `blocks; every branch sees all documents, within ${bytes(limits.memoryLimitBytes)}`;
    case "count":
      return "counts documents";
    case "lookup":
      return "streams; one look-up by id for each id";
    case "limit":
      return "streams, and ends the reading";
    default:
      return "streams";
  }
}

function count(limit: number): string {
  return limit < 0 ? "any number of" : String(limit);
}

function bytes(limit: number): string {
  return limit < 0 ? "no limit" : `${limit} bytes`;
}
