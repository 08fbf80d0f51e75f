/** Queries whose plan decides what they cost, beside raw SQLite with the same indexes behind an HTTP round trip. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ScratchDir } from "../support/scratch.ts";
import type { JsonObject } from "../support/server/client.ts";
import { startDataFloor } from "./data-floor-run.ts";
import type { BenchRead } from "./data-queries.ts";
import { type Loaded, untilFieldIndexed } from "./dataset.ts";
import { type Line, median, milliseconds } from "./report.ts";
import { TEAMS } from "./workload.ts";

/** How many times as long as the floor a planned query may take. */
const AIM = 3;

/** Over the records of workload.ts in the floor's table `records`, indexed by `team` and `n`. */
function plannedReads(size: number): BenchRead[] {
  const half = (turn: number) => Math.floor(size / 2) - (turn % 100);
  const team = (turn: number) => `team-${(turn * 7) % TEAMS}`;
  const offset = Math.floor(size / 20);
  return [
    {
      name: "half of all, no sort, first 50",
      body: (turn) => ({ filter: { n: { $gte: half(turn) } }, limit: 50 }),
      sql: "SELECT doc FROM records WHERE doc ->> '$.n' >= ? ORDER BY id LIMIT 50",
      params: (turn) => [half(turn)],
      repeats: 100,
    },
    {
      name: `sorted, 50 from the ${offset.toLocaleString("en")}th on`,
      body: () => ({ sort: ["-n"], offset, limit: 50 }),
      sql: "SELECT doc FROM records ORDER BY doc ->> '$.n' DESC, id LIMIT 50 OFFSET ?",
      params: () => [offset],
      repeats: 100,
    },
    {
      name: "page of 50 and the total of a team's (2 %)",
      body: (turn) => ({ filter: { team: team(turn) }, limit: 50, includeTotal: true }),
      sql: "SELECT doc, (SELECT count(*) FROM records WHERE doc ->> '$.team' = ?1) AS total FROM records WHERE doc ->> '$.team' = ?1 ORDER BY id LIMIT 50",
      params: (turn) => [team(turn)],
      repeats: 100,
    },
    {
      name: "a team's (2 %), sorted by another field, first 50",
      body: (turn) => ({ filter: { team: team(turn) }, sort: ["-n"], limit: 50 }),
      sql: "SELECT doc FROM records WHERE doc ->> '$.team' = ? ORDER BY doc ->> '$.n' DESC, id LIMIT 50",
      params: (turn) => [team(turn)],
      repeats: 100,
    },
  ];
}

export async function queryLines({ server, items }: Loaded, size: number, dir: ScratchDir): Promise<Line[]> {
  await untilFieldIndexed({ server, items }, { n: 5 });
  await untilFieldIndexed({ server, items }, { team: "team-1" });
  await using floor = startDataFloor(join(dir.path, `floor-queries-${size}.db`));
  const [from] = readdirSync(server.dataDir, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(join("sdk", `${items.spaceId}.db`)),
  );
  if (from === undefined) throw new Error(`no database of ${items.spaceId}`);
  await floor.ask({ kind: "copy", table: "records", from: join(server.dataDir, from), dataset: items.dataset });
  await floor.ask({ kind: "index", table: "records", paths: ["$.team", "$.n"] });
  const roundTripMs = median(await timesOf(200, () => server.client.get("/v1/health")));
  const lines: Line[] = [];
  for (const { name, body, sql, params, repeats } of plannedReads(size)) {
    const once = (turn: number) =>
      server.client.post<JsonObject>(`${items.path}/query`, { ...items.target, ...body(turn) });
    const ours = median(await timesOf(repeats, once));
    const turns = Array.from({ length: repeats + 1 }, (_, turn) => params(turn));
    const [, ...theirs] = await floor.ask<number[]>({ kind: "read", sql, params: turns });
    const floorMs = median(theirs) + roundTripMs;
    lines.push({
      name: `${name}, of ${size.toLocaleString("en")}, against raw SQLite and a round trip`,
      ratio: ours / floorMs,
      aim: { atMost: AIM },
      figures: `${milliseconds(ours)} against ${milliseconds(median(theirs))} and ${milliseconds(roundTripMs)}`,
    });
  }
  return lines;
}

/** How long each of so many calls takes, after one that warms up. */
async function timesOf(calls: number, call: (turn: number) => Promise<unknown>): Promise<number[]> {
  await call(0);
  const times: number[] = [];
  for (let turn = 1; turn <= calls; turn++) {
    const startedAt = performance.now();
    await call(turn);
    times.push(performance.now() - startedAt);
  }
  return times;
}
