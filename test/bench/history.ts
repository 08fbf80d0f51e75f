/**
 * `bun test/bench/history.ts [--changes N]`: the history of one busy object, 100,000 changes by default. Two devices
 * wrote them; for the last tenth they were apart. Each line: the first read of its kind, the median of those after it,
 * and how long the loop was held at most.
 */
import { parseArgs } from "node:util";
import { createHistory } from "../../src/change/history/history.ts";
import { createRng } from "../support/rng.ts";
import { scratchDir } from "../support/scratch.ts";
import type { HistoryReplica } from "../support/worlds/history-replica.ts";
import { openHistoryReplica } from "../support/worlds/history-replica.ts";
import { createAuthor } from "../support/worlds/schema-replica.ts";
import { median, milliseconds } from "./report.ts";

const { values: flags } = parseArgs({ options: { changes: { type: "string" } } });
const CHANGES = Number(flags.changes ?? 100_000);
const RECORDS = 1_000;
const REPEATS = 9;
const TRACE_EVERY = 1_000;

const rng = createRng(1);
let now = Date.UTC(2026, 0, 31);
using dir = scratchDir("svc-bench-history");
const open = (name: string, seed: number) =>
  openHistoryReplica({ dir: dir.path, name, author: createAuthor(seed), now: () => (now += 100) });
const device = open("one", 1);
const other = open("two", 2);
const objectId = await device.createObject();
const versions: string[] = [];

async function fill(replica: HistoryReplica, count: number): Promise<void> {
  for (let done = 0; done < count; ) {
    const size = Math.min(500, count - done);
    const written = Array.from({ length: size }, (_, i) =>
      replica.write(
        objectId,
        "items",
        // One record in ten changes is the same, so that one has a long history of its own.
        [
          {
            id: rng.chance(0.1) ? "busy" : `r${rng.int(0, RECORDS - 1)}`,
            upsert: true,
            ops: [
              { type: "$set", path: "title", value: `title ${done + i}` },
              { type: "$inc", path: "n", value: 1 },
            ],
          },
        ],
        (done + i) % TRACE_EVERY === 0 ? [`trace-${done + i}`] : undefined,
      ),
    );
    versions.push(...(await Promise.all(written)));
    done += size;
  }
}

async function exchange(from: HistoryReplica, to: HistoryReplica): Promise<void> {
  await to.ingest(await from.packets());
}

console.error(`bench: writing ${CHANGES.toLocaleString("en")} changes`);
await fill(device, Math.floor(CHANGES * 0.7));
await exchange(device, other);
await fill(device, Math.floor(CHANGES * 0.15));
const apart = versions.length;
await fill(other, Math.floor(CHANGES * 0.15));
await exchange(other, device);
versions.push(await device.write(objectId, "items", [{ id: "r0", upsert: true, ops: [] }]));
console.error("bench: reading");

/** The longest that the loop was held since the last call. */
function watchLoop(): { take(): number; stop(): void } {
  let last = performance.now();
  let longest = 0;
  let running = true;
  const turn = () => {
    const at = performance.now();
    longest = Math.max(longest, at - last);
    last = at;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    take() {
      const taken = longest;
      longest = 0;
      return taken;
    },
    stop: () => {
      running = false;
    },
  };
}

const loop = watchLoop();
const rows: string[][] = [];
async function measure(name: string, read: (turn: number) => Promise<unknown>): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  loop.take();
  const times: number[] = [];
  for (let turn = 0; turn <= REPEATS; turn++) {
    const started = performance.now();
    await read(turn);
    times.push(performance.now() - started);
    await new Promise((resolve) => setImmediate(resolve));
  }
  rows.push([name, milliseconds(times[0]!), milliseconds(median(times.slice(1))), milliseconds(loop.take())]);
}

let { history } = device;
const middle = (turn: number) => versions[Math.floor(CHANGES * 0.35) + turn * 17]!;
await measure("page of 50, newest", () => history.list(objectId, {}));
let cursor: string | undefined;
await measure("page of 200, further down each time", async () => {
  ({ cursor } = await history.list(objectId, { limit: 200, ...(cursor ? { cursor } : {}) }));
});
await measure("page of one record", () => history.list(objectId, { dataset: "items", recordId: "r7" }));
await measure("page of one trace", () => history.list(objectId, { traceId: "trace-3000" }));
await measure("page of an author (a seventh of all)", () => history.list(objectId, { author: other.author }));
await measure("page of a dataset with one change", () => history.list(objectId, { dataset: "objects" }));
await measure("graph read, then a record view", (turn) => {
  if (turn === 0) history = createHistory({ engine: device.engine, store: device.engine.store });
  return history.recordView(objectId, middle(turn), "items", "r7");
});
await measure("page of 50, coalesced", () => history.list(objectId, { coalesce: true }));
await measure("record with a tenth of all changes", (turn) =>
  history.recordView(objectId, middle(turn), "items", "busy"),
);
await measure("record within a branch of its own", (turn) =>
  history.recordView(objectId, versions[apart + 2_000 + turn]!, "items", "busy"),
);
await measure("what one change did", (turn) => history.diff(objectId, { version: middle(turn) }));
await measure("what a merge did", () => history.diff(objectId, { version: versions.at(-1)! }));
await measure("diff over a tenth of all changes", (turn) =>
  history.diff(objectId, { version: middle(turn), base: versions[Math.floor(CHANGES * 0.45)]! }),
);
await measure("view of the newest version", () => history.view(objectId, versions.at(-1)!));
await measure("view of an old version", (turn) => history.view(objectId, middle(turn)));
await measure("view within a branch", (turn) => history.view(objectId, versions[apart + 2_000 + turn]!));
loop.stop();

const header = ["what", "first", "then", "loop held at most"];
for (const row of [header, ...rows])
  console.log(row.map((cell, i) => (i === 0 ? cell.padEnd(40) : cell.padStart(18))).join(""));
console.log(`memory ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB`);
await device.close();
await other.close();
