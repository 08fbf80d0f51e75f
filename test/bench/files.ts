/**
 * `bun test/bench/files.ts [MiB] [rounds]`: a file in and out against a bare handler that streams to disk, hashes and fsyncs; the
 * server's peak memory; a range in the middle; point reads while twenty uploads of 50 MB come in. By hand: it writes three
 * times the size to the disk.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { timed } from "../support/latency.ts";
import { scratchDir } from "../support/scratch.ts";
import { attachPath, type FileInfo, filesPath } from "../support/server/files.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { linesOf } from "./child-lines.ts";
import { type Line, median, renderTable } from "./report.ts";

const MIB = 1 << 20;
const [mib = 5120, rounds = 1] = process.argv.slice(2).map(Number) as [number?, number?];
const UPLOADS = 20;
const UPLOAD_BYTES = 50 * MIB;
const WINDOWS = 5;

using dir = scratchDir("svc-bench-files");
const source = join(dir.path, "source");
await writeRandom(source, mib);
const floorProcess = Bun.spawn(["bun", join(import.meta.dir, "files-floor.ts"), join(dir.path, "floor")], {
  stdout: "pipe",
});
const floorBase = `http://127.0.0.1:${(await linesOf(floorProcess.stdout).next()).value}`;
await using server = await startServer({ dataDir: join(dir.path, "data") });
const { client } = server;
const space = await createSpace(client);
const objectId = (await createObject(client, space.id)).id;

const ratesIn: number[] = [];
const ratesOut: number[] = [];
let last: FileInfo | undefined;
for (let round = 0; round < rounds; round++) {
  const floorIn = await timed(() => curl(["-T", source, floorBase]));
  const oursIn = await timed(async () => {
    const text = await curl(["-T", source, "-X", "POST", client.base + attachPath(space.id, objectId)]);
    last = JSON.parse(text) as FileInfo;
  });
  ratesIn.push(floorIn / oursIn);
  const floorOut = await timed(() => curl(["-o", "/dev/null", floorBase]));
  const oursOut = await timed(() => curl(["-o", "/dev/null", contentUrl()]));
  ratesOut.push(floorOut / oursOut);
  console.error(
    `in ${perSecond(oursIn)} (floor ${perSecond(floorIn)}), out ${perSecond(oursOut)} (floor ${perSecond(floorOut)})`,
  );
  if (round < rounds - 1) await client.del(`${filesPath(space.id)}/${last!.fileId}`);
}
const middle = Math.floor((mib * MIB) / 2);
const rangeMs = await timed(() =>
  fetch(contentUrl(), { headers: { range: `bytes=${middle}-${middle + 4095}` } }).then((r) => r.arrayBuffer()),
);
const peakMb = peakOf(server.pid);
const stalled = await fetch(contentUrl()); // and nobody reads it
await Bun.sleep(3_000);
await stalled.body?.cancel();
const stalledMb = peakOf(server.pid);

await writeRandom(join(dir.path, "upload"), UPLOAD_BYTES / MIB);
await pointReads(Bun.sleep(2_000)); // compiled by now
const idle: number[] = [];
const busy: number[] = [];
for (let window = 0; window < WINDOWS; window++) {
  idle.push(await pointReads(Bun.sleep(4_000)));
  busy.push(await pointReads(uploadAll()));
}
const [idleP99, busyP99] = [median(idle), median(busy)];

const lines: Line[] = [
  { name: `${mib} MiB in, of the floor's rate`, figures: "", ratio: median(ratesIn), aim: { atLeast: 0.5 } },
  { name: `${mib} MiB out, of the floor's rate`, figures: "", ratio: median(ratesOut) },
  { name: "a range in the middle", figures: `${rangeMs.toFixed(1)} ms` },
  { name: "peak memory, in and out; with a reader that stalls", figures: `${peakMb} MB; ${stalledMb} MB` },
  {
    name: `p99 of point reads: idle; while ${UPLOADS} × 50 MiB come in`,
    figures: `${idleP99.toFixed(1)} ms; ${busyP99.toFixed(1)} ms`,
    ratio: busyP99 / idleP99,
    aim: { atMost: 3 },
  },
];
console.log(renderTable(lines));
floorProcess.kill();

function contentUrl(): string {
  return `${client.base}${filesPath(space.id)}/${last!.fileId}/content`;
}
/** Sent by processes of their own: what is timed here must not wait for them. */
async function uploadAll(): Promise<void> {
  const url = client.base + attachPath(space.id, objectId);
  await Promise.all(Array.from({ length: UPLOADS }, () => curl(["-T", join(dir.path, "upload"), "-X", "POST", url])));
}
async function writeRandom(path: string, count: number): Promise<void> {
  const file = await open(path, "w");
  for (let i = 0; i < count; i++) await file.write(randomBytes(MIB));
  await file.close();
}
async function curl(args: string[]): Promise<string> {
  const child = Bun.spawn(["curl", "-sS", "-H", "content-type: application/octet-stream", ...args], { stdout: "pipe" });
  return new Response(child.stdout).text();
}
function perSecond(ms: number): string {
  return `${Math.round(mib / (ms / 1000))} MiB/s`;
}
function peakOf(pid: number): number {
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
}
/** The p99 of reads of one object's row, one after the other, until `until` resolves. */
async function pointReads(until: Promise<unknown>): Promise<number> {
  const times: number[] = [];
  let over = false;
  const ended = until.then(() => {
    over = true;
  });
  while (!over)
    times.push(
      await timed(() => client.post(`/v1/spaces/${space.id}/objects/query`, { filter: { id: objectId }, limit: 1 })),
    );
  await ended;
  times.sort((a, b) => a - b);
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
