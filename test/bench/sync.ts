/**
 * `bun test/bench/sync.ts [--quick] [--json PATH]`: what devices of one account take to become equal, on the built
 * dist/svc with a real nats-server (NATS_SERVER). Initial sync is told as a ratio to the raw transport carrying as many
 * bytes; delays, idle cost and the loss of a leader as absolute figures.
 */
import { Database } from "bun:sqlite";
import { readdirSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { connect } from "@nats-io/transport-node";
import { type NatsServer, startNats, startNatsCluster } from "../support/network/nats.ts";
import { until } from "../support/server/client.ts";
import { type Device, type DeviceOptions, spacesOf, startDevice, untilSynced } from "../support/server/devices.ts";
import {
  type Collection,
  createCollection,
  createSpace,
  openCollection,
  setFields,
} from "../support/server/fixtures.ts";
import { type Line, median, milliseconds, percentile99, perSecond, renderTable, say } from "./report.ts";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean" }, json: { type: "string" } } });
const SIZES = flags.quick
  ? { changes: 5_000, records: 500, writes: 40, idleSpaces: 10, idleMs: 10_000 }
  : { changes: 100_000, records: 10_000, writes: 300, idleSpaces: 50, idleMs: 60_000 };
const WRITERS = 32;
const LONG_MS = 900_000;
/** As people have it; the other tests let devices meet more often. */
const ENV = { SVC_SYNC_INTERVAL: "30s" };

const lines: Line[] = [];
const secondsSince = (startedAt: number): number => (performance.now() - startedAt) / 1000;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

for (const way of ["LAN", "NATS"] as const) {
  await using nats = way === "NATS" ? await startNats() : undefined;
  const options: DeviceOptions = { env: ENV, ...(nats ? { network: nats.url } : { lan: true }) };
  await initialSync(way, options, nats);
  await delays(way, options);
  await idleCost(way, options);
}
await lostLeader();

console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB, load ${loadavg()[0]!.toFixed(1)}`,
);
console.log(renderTable(lines));
if (flags.json !== undefined) await Bun.write(flags.json, `${JSON.stringify(lines, null, 2)}\n`);

/** A new, empty device of an account gets everything that one device wrote, a change for each write. */
async function initialSync(way: string, options: DeviceOptions, nats: NatsServer | undefined): Promise<void> {
  say(`${way}: writing ${SIZES.changes} changes`);
  await using first = await startDevice(options);
  const space = await createSpace(first.server.client);
  const items = await createCollection(first.server.client, space.id);
  await writeChanges(items);
  const wroteAt = performance.now();
  if (nats) await untilSynced(first, space.id, LONG_MS);
  const uploadSeconds = secondsSince(wroteAt);
  const expected = await fingerprint(first, items);
  const { count, bytes } = storedChanges(first, space.id);

  say(`${way}: the second device`);
  const startedAt = performance.now();
  await using second = await startDevice({ ...options, mnemonic: first.mnemonic });
  await until(async () => (await spacesOf(second)).some(({ id }) => id === space.id), "the space", LONG_MS);
  const copy = openCollection(second.server.client, items);
  await untilSynced(second, space.id, LONG_MS);
  const seconds = secondsSince(startedAt);
  if ((await fingerprint(second, copy)) !== expected) throw new Error("the second device has other records");
  const floor = nats ? await natsFloor(nats, bytes) : { tls: await tlsFloor(bytes) };
  const raw = "tls" in floor ? floor.tls : floor.fetch;
  lines.push({
    name: `initial sync over ${way}, ${count.toLocaleString("en")} changes, ${megabytes(bytes)}: seconds against the raw transport`,
    ratio: seconds / raw,
    figures: `${seconds.toFixed(1)} s (${perSecond(count / seconds)} changes) against ${raw.toFixed(2)} s`,
  });
  if ("publish" in floor)
    lines.push({
      name: `leaving them on the network, after the last write: seconds against publishing as many bytes`,
      ratio: uploadSeconds / floor.publish,
      figures: `${uploadSeconds.toFixed(1)} s against ${floor.publish.toFixed(2)} s`,
    });
}

async function writeChanges(items: Collection): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      for (let n = next++; n < SIZES.changes; n = next++)
        await items.modify([setFields(`r${n % SIZES.records}`, { n, s: `the text that came with change ${n}` })]);
    }),
  );
}

/** The sum and number of what the records hold. */
async function fingerprint({ server: { client } }: Device, items: Collection): Promise<string> {
  const pipeline = [{ $group: { _id: null, n: { $sum: "$n" }, count: { $sum: 1 } } }];
  const { records } = await client.post<{ records: unknown[] }>(`${items.path}/aggregate`, {
    ...items.target,
    pipeline,
  });
  return JSON.stringify(records);
}

function storedChanges(device: Device, spaceId: string): { count: number; bytes: number } {
  const name = `${spaceId}.db`;
  const found = readdirSync(device.server.dataDir, { recursive: true })
    .map(String)
    .find((path) => path.endsWith(name));
  using db = new Database(join(device.server.dataDir, found!), { readonly: true });
  return db
    .query<{ count: number; bytes: number }, []>("SELECT count(*) AS count, sum(length(bytes)) AS bytes FROM changes")
    .get()!;
}

async function floorOf<T>(...args: string[]): Promise<T> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "sync-floor.ts"), ...args], { stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("the floor failed");
  return JSON.parse(text) as T;
}
async function tlsFloor(bytes: number): Promise<number> {
  return (await floorOf<{ seconds: number }>("tls", String(bytes))).seconds;
}

function natsFloor(nats: NatsServer, bytes: number): Promise<{ publish: number; fetch: number }> {
  const size = 128 << 10;
  return floorOf("nats", nats.url, String(Math.max(1, Math.ceil(bytes / size))), String(size));
}

/** From the moment a write is asked for until another device's live window shows it; one write at a time. */
async function delays(way: string, options: DeviceOptions): Promise<void> {
  say(`${way}: delays`);
  await using pair = await meetingPair(options);
  const { items, window } = pair;
  const took: number[] = [];
  for (let n = 1; n <= SIZES.writes; n++) {
    const startedAt = performance.now();
    await items.modify([setFields("seen", { n })]);
    await window.until(n);
    took.push(performance.now() - startedAt);
    await Bun.sleep(25);
  }
  lines.push({
    name: `from write to visible on another device over ${way}`,
    figures: `p50 ${milliseconds(median(took))}, p99 ${milliseconds(percentile99(took))}`,
  });
}

/** Two devices of an account that hold one dataset, and a window of the second on the record `seen`. */
async function meetingPair(options: DeviceOptions) {
  const first = await startDevice(options);
  const space = await createSpace(first.server.client);
  const items = await createCollection(first.server.client, space.id);
  await items.modify([setFields("seen", { n: 0 })]);
  const second = await startDevice({ ...options, mnemonic: first.mnemonic });
  const copy = openCollection(second.server.client, items);
  await until(async () => (await copy.find("seen").catch(() => undefined)) !== undefined, "the record", LONG_MS);
  const stream = await second.server.client.stream("POST", `${copy.path}/query/subscribe`, {
    ...copy.target,
    filter: { id: "seen" },
  });
  await stream.snapshot();
  const window = {
    /** Waits until the record shows at least this number. */
    async until(n: number, timeoutMs = 60_000): Promise<void> {
      for (;;) {
        const entries = await stream.changes(timeoutMs);
        const seen = entries
          .flatMap(({ added = [], updated = [] }) => [...added, ...updated])
          .map(({ doc }) => doc["n"]);
        if (seen.some((value) => Number(value) >= n)) return;
      }
    },
  };
  return {
    first,
    second,
    items,
    window,
    [Symbol.asyncDispose]: async () => {
      await stream.close();
      await second[Symbol.asyncDispose]();
      await first[Symbol.asyncDispose]();
    },
  };
}

/** What two devices with many spaces and nothing to do cost. */
async function idleCost(way: string, options: DeviceOptions): Promise<void> {
  say(`${way}: idle with ${SIZES.idleSpaces} spaces`);
  const monitor = options.network === undefined ? undefined : await monitoredNats();
  const network = monitor ? { network: monitor.nats.url } : {};
  {
    await using first = await startDevice({ ...options, ...network });
    for (let n = 0; n < SIZES.idleSpaces; n++) await createSpace(first.server.client, `space ${n}`);
    await using second = await startDevice({ ...options, ...network, mnemonic: first.mnemonic });
    await until(async () => (await spacesOf(second)).length === SIZES.idleSpaces, "all spaces", LONG_MS);
    for (const { id } of await spacesOf(second)) await untilSynced(second, id, LONG_MS);
    await Bun.sleep(5_000);
    const before = { cpu: cpuMs(second), messages: await monitor?.messages() };
    await Bun.sleep(SIZES.idleMs);
    const perMinute = 60_000 / SIZES.idleMs;
    const cpu = (cpuMs(second) - before.cpu) * perMinute;
    const messages = monitor && ((await monitor.messages()) - before.messages!) * perMinute;
    lines.push({
      name: `idle for a minute, ${SIZES.idleSpaces} spaces, two devices over ${way}`,
      figures: `${Math.round(cpu)} ms of CPU a device${messages === undefined ? "" : `, ${Math.round(messages)} messages through the network`}`,
    });
  }
  await monitor?.nats[Symbol.asyncDispose]();
}

/** User and system time of the server so far. */
function cpuMs(device: Device): number {
  const { stdout } = Bun.spawnSync(["cat", `/proc/${device.server.pid}/stat`]);
  const fields = stdout.toString().split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function monitoredNats(): Promise<{ nats: NatsServer; messages(): Promise<number> }> {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  const nats = await startNats({ config: `http: "127.0.0.1:${port}"` });
  return {
    nats,
    async messages() {
      const info = (await (await fetch(`http://127.0.0.1:${port}/varz`)).json()) as {
        in_msgs: number;
        out_msgs: number;
      };
      return info.in_msgs + info.out_msgs;
    },
  };
}

/** A cluster with three copies of everything loses the leader of the stream that carries the space. */
async function lostLeader(): Promise<void> {
  say("a cluster of three loses a leader");
  await using cluster = await startNatsCluster();
  await using pair = await meetingPair({ env: ENV, network: cluster.urls });
  const { items, window } = pair;
  let written = 0;
  let over = false;
  const writing = (async () => {
    for (; !over; await Bun.sleep(20)) await items.modify([setFields("seen", { n: ++written })]);
  })();
  await window.until(50);
  const leader = await busiestLeader(cluster);
  await leader.kill();
  const killedAt = performance.now();
  const goal = written + 1;
  await window.until(goal);
  const took = performance.now() - killedAt;
  over = true;
  await writing;
  await window.until(written);
  lines.push({
    name: "R3, kill -9 of the leader: from the kill until a later write is visible on the other device",
    figures: `${(took / 1000).toFixed(1)} s; nothing lost`,
  });
}

/** The server that leads the stream with the most messages. */
async function busiestLeader({ servers, urls }: { servers: NatsServer[]; urls: string }): Promise<NatsServer> {
  const nc = await connect({ servers: urls.split(","), ignoreClusterUpdates: true });
  type Listed = { streams: { state: { messages: number }; cluster: { leader: string } }[] };
  const { streams } = (await nc.request("$JS.API.STREAM.LIST")).json<Listed>();
  await nc.close();
  const [busiest] = streams.toSorted((a, b) => b.state.messages - a.state.messages);
  const leader = servers.find(({ name }) => name === busiest?.cluster.leader);
  if (!leader) throw new Error("no leader");
  return leader;
}
