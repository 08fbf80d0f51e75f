/**
 * `bun run bench [--quick] [--json PATH]`: each figure as a ratio to a floor measured in the same run on the same
 * machine, beside the absolute figures and the aim. Server, floors and load generators are processes of their own.
 */
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ScratchDir, scratchDir } from "../support/scratch.ts";
import { createItems, fill, type Loaded, loadDataset, untilFieldIndexed } from "./dataset.ts";
import { runFloorUpsert, runLoad, startFloor } from "./load-run.ts";
import { queryLines } from "./query-lines.ts";
import { isMet, type Line, median, milliseconds, perSecond, renderTable, say, seconds } from "./report.ts";
import { medianListeningMs, startLines } from "./start-times.ts";
import { type LoadPlan, type LoadResult, PAGE_RECORDS } from "./workload.ts";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean" }, json: { type: "string" } } });
const SIZES = flags.quick
  ? { small: 2_000, large: 20_000, repeats: 1, measureMs: 1_500, warmupMs: 700, starts: 7 }
  : { small: 10_000, large: 1_000_000, repeats: 3, measureMs: 5_000, warmupMs: 2_000, starts: 21 };
const KINDS = ["point-read", "filtered-read", "modify"] as const;
const CONNECTIONS = 32;
const AIMS: Record<(typeof KINDS)[number], number> = {
  "point-read": 0.3,
  "filtered-read": 0.5,
  modify: 0.4,
};

/** What the server did, and what its floor did in the same minute. */
interface Pair {
  server: LoadResult;
  floor: LoadResult;
}
type Results = Record<(typeof KINDS)[number], Pair>;

const lines: Line[] = [];

say("cold start and idle memory");
lines.push(...(await startLines(SIZES.starts)));

using dir = scratchDir("svc-bench");
const small = await loadDataset(dir, "small", SIZES.small);
const smallResults = await compare(small, SIZES.small);
lines.push(...(await upsertLines(small)));
await small.server.stop();

say(`filling ${SIZES.large.toLocaleString("en")} records`);
const large = await loadDataset(dir, "large", SIZES.large);
const largeResults = await measureAll(large, SIZES.large);
lines.push(...growthLines(smallResults, largeResults, small, large));
if (flags.quick) lines.push(...(await queryLines(large, SIZES.large, dir)));
await large.server.stop();
if (!flags.quick) lines.push(...(await hundredThousandLines(dir)));

console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`,
);
console.log(renderTable(lines));
const missed = lines.filter((line) => !isMet(line));
console.log(
  missed.length === 0 ? "every aim met" : `${missed.length} missed: ${missed.map((line) => line.name).join("; ")}`,
);
if (flags.json !== undefined) await Bun.write(flags.json, `${JSON.stringify(lines, null, 2)}\n`);

/** Filtered reads are measured with their index there, as the floor's are; it comes with the first of them. */
async function awaitIndex(loaded: Loaded, size: number): Promise<void> {
  const tookMs = await untilFieldIndexed(loaded, { group: "group-1" });
  lines.push({
    name: `index on a field of ${size.toLocaleString("en")} records, made unasked`,
    figures: seconds(tookMs),
  });
}

/** Server and floor by turns, so that a noisy minute falls on both; the ratio is the median of the turns. */
async function compare(loaded: Loaded, size: number): Promise<Results> {
  const results: Partial<Results> = {};
  for (const kind of KINDS) {
    say(`${kind} against its floor`);
    if (kind === "filtered-read") await awaitIndex(loaded, size);
    const turns: Pair[] = [];
    for (let turn = 0; turn < SIZES.repeats; turn++) {
      await using floor = await startFloor(join(dir.path, `floor-${kind}-${turn}.db`), size);
      const plan = planFor(loaded, kind, size);
      const floorResult = await runLoad({ ...plan, port: floor.port, path: `/${kind}` });
      turns.push({ server: await runLoad(plan), floor: floorResult });
    }
    turns.sort((a, b) => a.server.perSecond / a.floor.perSecond - b.server.perSecond / b.floor.perSecond);
    const pair = turns[turns.length >> 1]!;
    const { server, floor } = pair;
    const aim = AIMS[kind];
    lines.push({
      name: `${kind}, ${CONNECTIONS} connections, against a bare handler`,
      figures: `${describe(server)} against ${describe(floor)}`,
      ratio: server.perSecond / floor.perSecond,
      aim: { atLeast: aim },
    });
    results[kind] = pair;
  }
  return results as Results;
}

/** Server and floor each by themselves: how they grow is compared, not how fast they are. */
async function measureAll(loaded: Loaded, size: number): Promise<Results> {
  const results: Partial<Results> = {};
  await using floor = await startFloor(join(dir.path, "floor-large.db"), size);
  for (const kind of KINDS) {
    say(`${kind} at ${size.toLocaleString("en")} records`);
    if (kind === "filtered-read") await awaitIndex(loaded, size);
    const plan = planFor(loaded, kind, size);
    const [servers, floors]: [LoadResult[], LoadResult[]] = [[], []];
    for (let turn = 0; turn < SIZES.repeats; turn++) {
      floors.push(await runLoad({ ...plan, port: floor.port, path: `/${kind}` }));
      servers.push(await runLoad(plan));
    }
    results[kind] = { server: middle(servers), floor: middle(floors) };
  }
  return results as Results;
}

function middle(runs: LoadResult[]): LoadResult {
  return runs.toSorted((a, b) => a.perSecond - b.perSecond)[runs.length >> 1]!;
}

function planFor({ server, items }: Loaded, kind: (typeof KINDS)[number], size: number): LoadPlan {
  return {
    port: server.port,
    connections: CONNECTIONS,
    warmupMs: SIZES.warmupMs,
    measureMs: SIZES.measureMs,
    path: `${items.path}/${kind === "modify" ? "modify" : "query"}`,
    kind,
    target: items.target,
    size,
  };
}

/** Upserts into a dataset without an index, and into one with an index on `group`; the floor's rows likewise. */
async function upsertLines({ server }: Loaded): Promise<Line[]> {
  const count = SIZES.small;
  const measured: Line[] = [];
  for (const indexed of [false, true]) {
    const name = `upsert, pages of ${PAGE_RECORDS}, ${indexed ? "one index" : "no index"}, against raw SQLite`;
    say(name);
    const items = await createItems(server.client);
    const floorPath = join(dir.path, `floor-upsert-${indexed}.db`);
    await runFloorUpsert({ path: floorPath, first: 0, count, indexed });
    await fill(server.client, items, 0, count, count);
    if (indexed) await untilFieldIndexed({ server, items }, { group: "group-1" });
    const turns: { server: number; floor: number }[] = [];
    for (let turn = 1; turn <= SIZES.repeats; turn++) {
      const first = turn * count;
      const floor = await runFloorUpsert({ path: floorPath, first, count, indexed });
      const rates = await fill(server.client, items, first, count, count);
      turns.push({ server: rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0), floor });
    }
    const chosen = turns.sort((a, b) => a.server / a.floor - b.server / b.floor)[turns.length >> 1]!;
    measured.push({
      name,
      figures: `${perSecond(chosen.server)} records against ${perSecond(chosen.floor)}`,
      ratio: chosen.server / chosen.floor,
      aim: { atLeast: 0.2 },
    });
  }
  return measured;
}

/** How much longer each takes on the large dataset than on the small one, and how much longer the bare handler takes. */
function growthLines(before: Results, after: Results, smallSet: Loaded, largeSet: Loaded): Line[] {
  const span = `${SIZES.small.toLocaleString("en")} → ${SIZES.large.toLocaleString("en")} records`;
  const growthOf = (kind: (typeof KINDS)[number], of: keyof Pair): number =>
    before[kind][of].perSecond / after[kind][of].perSecond;
  const byKind = KINDS.map((kind): Line => {
    const [from, to] = [before[kind].server, after[kind].server];
    return {
      name: `growth of ${kind}, ${span}`,
      figures: `${perSecond(from.perSecond)} → ${perSecond(to.perSecond)}; the bare handler's ${growthOf(kind, "floor").toFixed(2)}`,
      ratio: growthOf(kind, "server"),
      aim: { atMost: 1.5 },
    };
  });
  const early = median(smallSet.pageRates.slice(-10));
  const late = median(largeSet.pageRates.slice(-40));
  return [
    ...byKind,
    {
      name: `growth of upsert pages, ${span}`,
      figures: `${perSecond(early)} → ${perSecond(late)} records`,
      ratio: early / late,
      aim: { atMost: 1.5 },
    },
  ];
}

async function hundredThousandLines(into: ScratchDir): Promise<Line[]> {
  const size = 100_000;
  say("queries of 100,000 records");
  const loaded = await loadDataset(into, "hundred-thousand", size);
  const queries = await queryLines(loaded, size, into);
  await loaded.server.stop();
  say("LISTENING with 100,000 records");
  const time = await medianListeningMs(loaded.server.dataDir, SIZES.starts);
  const listening: Line = {
    name: "LISTENING, 100,000 records",
    figures: milliseconds(time),
    value: time,
    aim: { atMost: 300, unit: "ms" },
  };
  return [...queries, listening];
}

function describe(result: LoadResult): string {
  return `${perSecond(result.perSecond)} (p50 ${milliseconds(result.p50Ms)}, p99 ${milliseconds(result.p99Ms)})`;
}
