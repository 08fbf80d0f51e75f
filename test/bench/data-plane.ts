/**
 * `bun test/bench/data-plane.ts [--quick] [--json PATH]`: reads, writes and live windows at 1,000,000 records in one
 * dataset and 200,000 objects in one space, on the built dist/svc. Ratios say how many times as long something takes as
 * in raw SQLite over the same rows; what an HTTP round trip takes is part of the server's figures. Server, floors, readers
 * and this client are processes of their own; one request is in flight unless said otherwise. Medians.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { scratchDir } from "../support/scratch.ts";
import type { JsonObject, Page } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { startDataFloor } from "./data-floor-run.ts";
import { type BenchRead, objectReads, recordReads } from "./data-queries.ts";
import { fill, type Loaded, loadDataset, untilFieldIndexed, untilIndexed } from "./dataset.ts";
import { measureFanOut, startFanOutFloor } from "./fan-out.ts";
import { runLoad } from "./load-run.ts";
import { createAll, prepareObjects } from "./objects.ts";
import {
  isMet,
  type Line,
  median,
  milliseconds,
  percentile99,
  perSecond,
  renderTable,
  say,
  seconds,
} from "./report.ts";
import { type LoadPlan, PAGE_RECORDS, pageOf, recordFields, recordId } from "./workload.ts";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean" }, json: { type: "string" } } });
const SIZES = flags.quick
  ? { records: 20_000, objects: 2_000, readers: 200, writes: 200, pages: 10, rounds: 5, loadMs: 1_500 }
  : { records: 1_000_000, objects: 200_000, readers: 1_000, writes: 1_000, pages: 40, rounds: 15, loadMs: 6_000 };
const REQUEST_TIMEOUT_MS = 120_000;
const POINT_READERS = 4;

const lines: Line[] = [];
const count = (n: number): string => n.toLocaleString("en");

using dir = scratchDir("svc-bench-data");
say(`filling ${count(SIZES.records)} records`);
const loaded = await loadDataset(dir, "data", SIZES.records);
const { server, items } = loaded;
const rates = loaded.pageRates;
lines.push({
  name: `filling ${count(SIZES.records)} records`,
  figures: `${perSecond(rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0))}`,
});
noteMemory("filled");
await using floor = startDataFloor(join(dir.path, "floor.db"));
await copyRows("records", items.dataset);

await measureIndexes(loaded);
await floor.ask({ kind: "index", table: "records", paths: ["$.group", "$.team", "$.n"] });
lines.push({ name: "an HTTP round trip (GET /v1/health)", figures: milliseconds(await roundTripMs()) });
noteMemory("three indexes made");
await measureReads(recordReads(SIZES.records), items.path, { ...items.target });
noteMemory("reads and aggregates");
await measureWrites(loaded);
await measureFanOuts();
noteMemory("writes and fan-out");
await measurePointReads(loaded);
await measureObjects();
noteMemory("objects");
await server.stop();

console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}, ` +
    `load average ${loadavg()[0]?.toFixed(1)}, raw SQLite ${(await floor.ask<number>({ kind: "memory" })).toFixed(0)} MiB`,
);
console.log(renderTable(lines));
const missed = lines.filter((line) => !isMet(line));
console.log(missed.length === 0 ? "every aim met" : `missed: ${missed.map((line) => line.name).join("; ")}`);
if (flags.json !== undefined) await Bun.write(flags.json, `${JSON.stringify(lines, null, 2)}\n`);

/** The largest database of the account is that of the space that was filled last. */
async function copyRows(table: string, dataset: string | undefined, spaceId = items.spaceId): Promise<void> {
  const [from] = readdirSync(server.dataDir, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(join("sdk", `${spaceId}.db`)),
  );
  if (from === undefined) throw new Error(`no database of ${spaceId}`);
  const rows = await floor.ask<number>({ kind: "copy", table, from: join(server.dataDir, from), dataset });
  if (rows < SIZES[table === "records" ? "records" : "objects"]) throw new Error(`the floor has ${rows} rows only`);
}

/** Resident memory now and at most since the last note. */
function noteMemory(after: string): void {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  const mib = (field: string): string =>
    (Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024).toFixed(0);
  lines.push({ name: `memory after: ${after}`, figures: `${mib("VmRSS")} MiB RSS, peak ${mib("VmHWM")} MiB` });
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5"); // the peak begins anew
}

async function request(path: string, body: JsonObject): Promise<number> {
  const startedAt = performance.now();
  const reply = await server.client.request("POST", path, { body, timeoutMs: REQUEST_TIMEOUT_MS });
  if (reply.status !== 200) throw new Error(`${path} ${JSON.stringify(body)}: ${reply.text}`);
  return performance.now() - startedAt;
}

async function roundTripMs(): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < 300; turn++) {
    const startedAt = performance.now();
    await server.client.get("/v1/health");
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

function against(name: string, oursMs: number, floorMs: number): void {
  lines.push({ name, ratio: oursMs / floorMs, figures: `${milliseconds(oursMs)} against ${milliseconds(floorMs)}` });
}

/** How long indexes are in the making unasked, and how long writers wait meanwhile. */
async function measureIndexes({ server: { client } }: Loaded): Promise<void> {
  say("indexes of the records, single writes beside");
  const write = (n: number) => request(`${items.path}/modify`, modifyBody(n));
  const idle: number[] = [];
  for (let n = 0; n < SIZES.writes; n++) idle.push(await write(n));
  const beside: number[] = [];
  let building = true;
  const writing = (async () => {
    for (let n = 0; building; n++) beside.push(await write(n));
  })();
  const groupMs = await untilFieldIndexed({ server, items }, { group: "group-1" });
  building = false;
  await writing;
  lines.push(
    { name: `index on a text field, made unasked, single writes beside`, figures: seconds(groupMs) },
    {
      name: "p99 of single writes while the index is made, against idle",
      ratio: percentile99(beside) / percentile99(idle),
      figures: `${milliseconds(percentile99(beside))} against ${milliseconds(percentile99(idle))} (longest ${milliseconds(Math.max(...beside))} against ${milliseconds(Math.max(...idle))}; median ${milliseconds(median(beside))} against ${milliseconds(median(idle))})`,
    },
  );
  const numberMs = await untilFieldIndexed({ server, items }, { n: 5 });
  lines.push({ name: "index on a number field, made unasked", figures: seconds(numberMs) });
  const body = { ...items.target, pipeline: [{ $group: { _id: "$team", count: { $sum: 1 } } }] };
  await untilIndexed(
    () => client.request("POST", `${items.path}/aggregate`, { body, timeoutMs: REQUEST_TIMEOUT_MS }),
    () => client.post(`${items.path}/aggregate`, { ...body, explain: true }),
    "index on team",
  );
}

function modifyBody(n: number): JsonObject {
  const value = { note: `Changed for the ${n}th time, to a line of about the same length as it had before that.` };
  const id = recordId((n * 7919) % SIZES.records);
  return { ...items.target, records: [{ id, ops: [{ type: "$set", value }] }] };
}

async function measureReads(reads: readonly BenchRead[], path: string, target: JsonObject): Promise<void> {
  for (const { name, body, sql, params, repeats } of reads) {
    say(name);
    const ours: number[] = [];
    const once = (turn: number): Promise<number> => {
      const asked = body(turn);
      return request(`${path}/${"pipeline" in asked ? "aggregate" : "query"}`, { ...target, ...asked });
    };
    await once(0);
    const turns = Array.from({ length: repeats }, (_, turn) => turn + 1);
    for (const turn of turns) ours.push(await once(turn));
    const [, ...theirs] = await floor.ask<number[]>({ kind: "read", sql, params: [0, ...turns].map(params) });
    against(name, median(ours), median(theirs));
  }
}

async function measureWrites({ server: { client } }: Loaded): Promise<void> {
  say("single writes and upsert pages");
  const ours: number[] = [];
  for (let n = 0; n < SIZES.writes; n++) ours.push(await request(`${items.path}/modify`, modifyBody(n)));
  const writes = Array.from({ length: SIZES.writes }, (_, n) => {
    const [record] = modifyBody(n)["records"] as { id: string; ops: { value: JsonObject }[] }[];
    return JSON.stringify([{ id: record!.id, fields: record!.ops[0]!.value }]);
  });
  against(
    "single write, 3 indexes",
    median(ours),
    median(await floor.ask({ kind: "write", table: "records", pages: writes })),
  );

  const pageRates = await fill(client, items, SIZES.records, SIZES.pages * PAGE_RECORDS, SIZES.records);
  const pages = Array.from({ length: SIZES.pages }, (_, page) =>
    JSON.stringify(pageOf(SIZES.records + page * PAGE_RECORDS, PAGE_RECORDS, SIZES.records)),
  );
  against(
    "upsert page of 500 new records, 3 indexes",
    median(pageRates.map((rate) => (PAGE_RECORDS * 1000) / rate)),
    median(await floor.ask({ kind: "write", table: "records", pages })),
  );
}

async function measureFanOuts(): Promise<void> {
  say(`fan-out to ${count(SIZES.readers)} readers`);
  const { readers, rounds } = SIZES;
  const body = { ...items.target, filter: { n: { $gte: 0 } }, sort: ["-n"], limit: 10 };
  const ours = await measureFanOut({
    port: server.port,
    path: `${items.path}/query/subscribe`,
    body: JSON.stringify(body),
    readers,
    rounds,
    write: (round) => {
      const ops = [{ type: "$set", path: "n", value: 2 * SIZES.records + round }];
      return request(`${items.path}/modify`, { ...items.target, records: [{ id: recordId(7), ops }] });
    },
  });
  await using bare = await startFanOutFloor(join(dir.path, "fan-out.db"));
  const doc = recordFields(7, SIZES.records);
  const theirs = await measureFanOut({
    port: bare.port,
    path: "/subscribe",
    body: "{}",
    readers,
    rounds,
    write: (n) =>
      fetch(`http://127.0.0.1:${bare.port}/write`, { method: "POST", body: JSON.stringify({ ...doc, n }) }).then((r) =>
        r.text(),
      ),
  });
  against(`write seen by the last of ${count(readers)} readers`, ours.deliveredMs, theirs.deliveredMs);
  against(`the same write answered`, ours.answeredMs, theirs.answeredMs);
}

/** Point reads with and without aggregates over all records back to back beside them. */
async function measurePointReads({ server: { client } }: Loaded): Promise<void> {
  say("point reads beside aggregates");
  const plan: LoadPlan = {
    port: server.port,
    connections: POINT_READERS,
    warmupMs: 1_000,
    measureMs: SIZES.loadMs,
    path: `${items.path}/query`,
    kind: "point-read",
    target: items.target,
    size: SIZES.records,
  };
  const idle = await runLoad(plan);
  const body = { ...items.target, pipeline: [{ $group: { _id: "$team", sum: { $sum: "$n" } } }] };
  let over = false;
  const aggregating = (async () => {
    while (!over) await client.request("POST", `${items.path}/aggregate`, { body, timeoutMs: REQUEST_TIMEOUT_MS });
  })();
  const beside = await runLoad(plan);
  over = true;
  await aggregating;
  lines.push({
    name: `p99 of point reads while aggregates run back to back, against idle (${POINT_READERS} connections)`,
    ratio: beside.p99Ms / idle.p99Ms,
    figures: `${milliseconds(beside.p99Ms)} against ${milliseconds(idle.p99Ms)} (p50 ${milliseconds(beside.p50Ms)} against ${milliseconds(idle.p50Ms)})`,
    aim: { atMost: 5 },
  });
}

async function measureObjects(): Promise<void> {
  say(`creating ${count(SIZES.objects)} objects`);
  const { client } = server;
  const space = await createSpace(client);
  const objects = await prepareObjects(client, space.id, SIZES.objects);
  lines.push({
    name: `creating ${count(SIZES.objects)} objects, 32 at a time`,
    figures: perSecond(await createAll(objects, SIZES.objects)),
  });
  await copyRows("objects", undefined, space.id);
  const path = `/v1/spaces/${space.id}/objects`;
  const { rank, rankAt } = objects;
  for (const filter of [{ "svc.name": "name 5" }, { [rank]: 5 }])
    await untilIndexed(
      () => client.post(`${path}/query`, { filter, limit: 1 }),
      () => client.post(`${path}/aggregate`, { pipeline: [{ $match: filter }], explain: true }),
      "index on",
    );
  await floor.ask({ kind: "index", table: "objects", paths: ["$.svc.name", rankAt] });
  await measureReads(objectReads(SIZES.objects, objects), path, {});

  const ours: number[] = [];
  for (let n = 0; n < SIZES.writes; n++) {
    const startedAt = performance.now();
    await objects.create(SIZES.objects + n);
    ours.push(performance.now() - startedAt);
  }
  const [row] = (await client.post<Page>(`${path}/query`, { filter: { [rank]: SIZES.objects } })).records;
  const pages = ours.map((_, n) =>
    JSON.stringify([{ id: `${row!.id}${n}`, fields: { ...row, id: `${row!.id}${n}` } }]),
  );
  against(
    "objects: a new one, 2 indexes",
    median(ours),
    median(await floor.ask({ kind: "write", table: "objects", pages })),
  );
}
