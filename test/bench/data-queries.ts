/** The reads of the data plane's benchmark, each as the service and as raw SQLite are asked. */
import type { JsonObject } from "../support/server/client.ts";
import type { BenchObjects } from "./objects.ts";
import { TEAMS } from "./workload.ts";

export interface BenchRead {
  name: string;
  /** Of `query`, or of `aggregate` where it has a pipeline; `target` is added. */
  body: (turn: number) => JsonObject;
  sql: string;
  params: (turn: number) => (string | number)[];
  repeats: number;
}

/** Turns are spread over the values, so that no two neighbours read the same rows. */
const spread = (turn: number, values: number): number => (turn * 7919 + 13) % Math.max(1, Math.floor(values));

/** Over the records of workload.ts in the floor's table `records`, indexed by `group`, `team` and `n`. */
export function recordReads(size: number): BenchRead[] {
  const group = (turn: number) => `group-${spread(turn, size / 20)}`;
  const team = (turn: number) => `team-${spread(turn, TEAMS)}`;
  const from = (turn: number) => spread(turn, size * 0.9);
  const width = Math.floor(size / 100);
  const half = (turn: number) => Math.floor(size / 2) - spread(turn, 100);
  return [
    {
      name: "indexed query, 20 records",
      body: (turn) => ({ filter: { group: group(turn) } }),
      sql: "SELECT doc FROM records WHERE doc ->> '$.group' = ? ORDER BY id",
      params: (turn) => [group(turn)],
      repeats: 300,
    },
    {
      name: "compound filter: equality, range and flag, first 50",
      body: (turn) => ({
        filter: { team: team(turn), n: { $gte: from(turn), $lt: from(turn) + width }, done: false },
        limit: 50,
      }),
      sql: "SELECT doc FROM records WHERE doc ->> '$.team' = ? AND doc ->> '$.n' >= ? AND doc ->> '$.n' < ? AND doc ->> '$.done' = 0 ORDER BY id LIMIT 50",
      params: (turn) => [team(turn), from(turn), from(turn) + width],
      repeats: 50,
    },
    {
      name: "sorted window, 50 records from the 500th on, filtered",
      body: (turn) => ({
        filter: { done: false, n: { $lt: from(turn) + width } },
        sort: ["-n"],
        offset: 500,
        limit: 50,
      }),
      sql: "SELECT doc FROM records WHERE doc ->> '$.done' = 0 AND doc ->> '$.n' < ? ORDER BY doc ->> '$.n' DESC, id LIMIT 50 OFFSET 500",
      params: (turn) => [from(turn) + width],
      repeats: 100,
    },
    {
      name: "count of half of all, by the index",
      body: (turn) => ({ pipeline: [{ $match: { n: { $gte: half(turn) } } }, { $count: "n" }] }),
      sql: "SELECT count(*) AS n FROM records WHERE doc ->> '$.n' >= ?",
      params: (turn) => [half(turn)],
      repeats: 15,
    },
    {
      name: "page of 20 and the total of a team's (2 %), with a condition beside the index",
      body: (turn) => ({ filter: { team: team(turn), done: false }, limit: 20, includeTotal: true }),
      sql: "SELECT doc, (SELECT count(*) FROM records WHERE doc ->> '$.team' = ?1 AND doc ->> '$.done' = 0) AS total FROM records WHERE doc ->> '$.team' = ?1 AND doc ->> '$.done' = 0 ORDER BY id LIMIT 20",
      params: (turn) => [team(turn)],
      repeats: 15,
    },
    {
      name: "group of all by team, counted",
      body: () => ({ pipeline: [{ $group: { _id: "$team", count: { $sum: 1 } } }] }),
      sql: "SELECT doc ->> '$.team' AS id, count(*) AS n FROM records GROUP BY 1",
      params: () => [],
      repeats: 9,
    },
    {
      name: "group of 1 % of all by team, with $sum",
      body: (turn) => ({
        pipeline: [
          { $match: { n: { $gte: from(turn), $lt: from(turn) + width } } },
          { $group: { _id: "$team", sum: { $sum: "$n" } } },
        ],
      }),
      sql: "SELECT doc ->> '$.team' AS id, sum(doc ->> '$.n') AS n FROM records WHERE doc ->> '$.n' >= ? AND doc ->> '$.n' < ? GROUP BY 1",
      params: (turn) => [from(turn), from(turn) + width],
      repeats: 15,
    },
    {
      name: "group of all by team, with $sum",
      body: () => ({ pipeline: [{ $group: { _id: "$team", sum: { $sum: "$n" } } }] }),
      sql: "SELECT doc ->> '$.team' AS id, sum(doc ->> '$.n') AS n FROM records GROUP BY 1",
      params: () => [],
      repeats: 3,
    },
  ];
}

/** Over objects named in twenties and ranked by a property, in the floor's table `objects`, indexed by both. */
export function objectReads(size: number, { rank, rankAt: at }: Pick<BenchObjects, "rank" | "rankAt">): BenchRead[] {
  const name = (turn: number) => `name ${spread(turn, size / 20)}`;
  const from = (turn: number) => spread(turn, size * 0.9) + Math.floor(size / 10);
  const rankAt = `doc ->> '${at}'`;
  return [
    {
      name: "objects: indexed query, 20 objects",
      body: (turn) => ({ filter: { "svc.name": name(turn) } }),
      sql: "SELECT doc FROM objects WHERE doc ->> '$.svc.name' = ? ORDER BY id",
      params: (turn) => [name(turn)],
      repeats: 300,
    },
    {
      name: "objects: sorted window, 50 objects",
      body: (turn) => ({ filter: { [rank]: { $lt: from(turn) } }, sort: [`-${rank}`], limit: 50 }),
      sql: `SELECT doc FROM objects WHERE ${rankAt} < ? ORDER BY ${rankAt} DESC, id LIMIT 50`,
      params: (turn) => [from(turn)],
      repeats: 100,
    },
    {
      name: "objects: count of a range, by the index",
      body: (turn) => ({ pipeline: [{ $match: { [rank]: { $gte: from(turn) } } }, { $count: "n" }] }),
      sql: `SELECT count(*) AS n FROM objects WHERE ${rankAt} >= ?`,
      params: (turn) => [from(turn)],
      repeats: 15,
    },
  ];
}
