/** The records and requests of the benchmarks, the same for the server and for its floors. Deterministic. */
import type { JsonObject } from "../support/server/client.ts";

export const PAGE_RECORDS = 500;
/** Records that one group has, whatever the size of the dataset: a filtered read always returns as many. */
const GROUP_RECORDS = 20;
/** Teams there are, whatever the size of the dataset. */
export const TEAMS = 50;

export function recordId(index: number): string {
  return `record-${String(index).padStart(8, "0")}`;
}

/** About 300 bytes of JSON, of the kinds of value that real records have. */
export function recordFields(index: number, size: number): JsonObject {
  return {
    group: `group-${index % Math.max(1, Math.floor(size / GROUP_RECORDS))}`,
    team: `team-${index % TEAMS}`,
    title: `Record number ${index} of the benchmark`,
    n: index,
    done: index % 3 === 0,
    tags: [`tag-${index % 17}`, `tag-${index % 29}`],
    at: { $date: new Date(Date.UTC(2026, 0, 1) + index * 60_000).toISOString() },
    note: `Some text that a person could have written about number ${index}, long enough to be a line.`,
  };
}

export function pageOf(start: number, count: number, size: number): { id: string; fields: JsonObject }[] {
  return Array.from({ length: count }, (_, i) => ({ id: recordId(start + i), fields: recordFields(start + i, size) }));
}

/** What a load process is told to do. */
export interface LoadPlan {
  port: number;
  connections: number;
  warmupMs: number;
  measureMs: number;
  path: string;
  kind: "point-read" | "filtered-read" | "modify";
  /** Spread into every body. */
  target: { objectId: string; dataset: string };
  size: number;
}
export interface LoadResult {
  requests: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Body of the n-th request; `n` is spread over the records so that no two neighbours hit the same one. */
export function requestBody(plan: LoadPlan, n: number): string {
  const index = (n * 7919) % plan.size;
  switch (plan.kind) {
    case "point-read":
      return JSON.stringify({ ...plan.target, filter: { id: recordId(index) } });
    case "filtered-read": {
      const { group } = recordFields(index, plan.size);
      return JSON.stringify({ ...plan.target, filter: { group: group!, done: false }, sort: ["-n"], limit: 10 });
    }
    case "modify": {
      const value = {
        n: index,
        note: `Changed for the ${n}th time, to a line of about the same length as it had before that.`,
      };
      return JSON.stringify({ ...plan.target, records: [{ id: recordId(index), ops: [{ type: "$set", value }] }] });
    }
  }
}
