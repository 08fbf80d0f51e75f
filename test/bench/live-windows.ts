/**
 * What live windows cost a writer, as ratios to the same writes in the same run. Not part of the suite:
 *
 *     bun test/bench/live-windows.ts [--quick]
 *
 * Figures of the first table are of the engine alone, the others of streams whose readers run in a process of their own.
 */
import { silentLog } from "../../src/base/log.ts";
import type { LiveBody } from "../../src/domain/live/live-request.ts";
import { errorResponse } from "../../src/http/reply/error-response.ts";
import type { ServerHandle } from "../../src/http/server-handle.ts";
import { openStream } from "../../src/http/sse.ts";
import { liveSource } from "../../src/http/stream/live-stream.ts";
import { createStreamRegistry } from "../../src/http/stream/stream-registry.ts";
import { type LiveSpace, openLiveSpace } from "../support/worlds/live-space.ts";
import { linesOf } from "./child-lines.ts";

const quick = process.argv.includes("--quick");
const RECORDS = 2_000;
const WINDOWS = 10_000;
const SUBSCRIBERS = 1_000;
const ROUNDS = quick ? 5 : 15;
/** Writes of a round: so many at a time, so many times. */
const BURST = { writers: 32, times: quick ? 10 : 20 };

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const rssMb = (): number => {
  Bun.gc(true);
  return Math.round(process.memoryUsage.rss() / 2 ** 20);
};

if (import.meta.main) {
  if (process.argv[2] === "read") await readStreams(process.argv[3] ?? "", Number(process.argv[4]));
  else {
    await windowsOnOtherFilters();
    await fanOut();
  }
}

async function fillSpace(): Promise<LiveSpace> {
  const space = await openLiveSpace();
  for (let from = 0; from < RECORDS; from += 500)
    await space.write(
      Array.from({ length: 500 }, (_, n) => ({
        id: `r${from + n}`,
        upsert: true,
        ops: [
          {
            type: "$set" as const,
            path: "",
            value: { owner: `own${(from + n) % 50}`, n: from + n, text: "x".repeat(200) },
          },
        ],
      })),
    );
  return space;
}

/** Microseconds a write, of bursts of parallel writers. */
async function writeRound(space: LiveSpace): Promise<number> {
  const startedAt = performance.now();
  for (let time = 0; time < BURST.times; time++)
    await Promise.all(
      Array.from({ length: BURST.writers }, (_, writer) =>
        space.op(`r${(time * BURST.writers + writer) % RECORDS}`, { type: "$inc", path: "n", value: 1 }),
      ),
    );
  return ((performance.now() - startedAt) * 1_000) / (BURST.writers * BURST.times);
}

/** The write with one window and with ten thousand on other filters, in turns, so that noise meets both. */
async function windowsOnOtherFilters(): Promise<void> {
  const kinds: Record<string, (n: number) => LiveBody> = {
    "equality, unlimited": (n) => ({ filter: { owner: `user${n}` } }),
    "equality and more, 20 sorted": (n) => ({
      filter: { state: { $ne: "done" }, owner: `user${n}`, n: { $gte: 0 } },
      sort: ["-n"],
      limit: 20,
    }),
    "$in of five": (n) => ({ filter: { owner: { $in: Array.from({ length: 5 }, (_, k) => `user${n}-${k}`) } } }),
    range: (n) => ({ filter: { n: { $gte: -10 * n - 10, $lt: -10 * n } } }),
    "regex, anchored": (n) => ({ filter: { owner: { $regex: `^user${n}$` } } }),
    "regex, a text in any case": (n) => ({ filter: { owner: { $regex: `user ?nr${n}x`, $options: "i" } } }),
    "regex without a text": (n) => ({ filter: { owner: { $regex: `[u][s]\\w+[${n}]$` } } }),
  };
  console.log(
    `\n${WINDOWS} windows on other filters: µs a write, ${BURST.writers} writers at a time, median of ${ROUNDS} rounds`,
  );
  console.log("| filter | one window | ten thousand | ratio (aim 1.5) | MB |");
  console.log("|---|---|---|---|---|");
  for (const [kind, bodyOf] of Object.entries(kinds)) {
    // Two spaces, so that both are as warm.
    const [few, many] = [await fillSpace(), await fillSpace()];
    const sink = { changed: () => {}, ended: () => {} };
    for (const space of [few, many])
      await space.live.subscribe(space.collection, { filter: { owner: "own1" }, mailboxCapacity: 1e9 }, sink);
    const before = rssMb();
    for (let n = 0; n < WINDOWS; n++) await many.live.subscribe(many.collection, bodyOf(n), sink);
    const mb = rssMb() - before;
    await writeRound(few);
    await writeRound(many);
    const figures: { few: number[]; many: number[] } = { few: [], many: [] };
    for (let round = 0; round < ROUNDS; round++) {
      figures.few.push(await writeRound(few));
      figures.many.push(await writeRound(many));
    }
    const [one, all] = [median(figures.few), median(figures.many)];
    console.log(`| ${kind} | ${one.toFixed(0)} | ${all.toFixed(0)} | ${(all / one).toFixed(2)} | ${mb} |`);
    await few.close();
    await many.close();
  }
}

/** One dataset, a thousand streams over HTTP: what a write costs its writer, and when the last reader has it. */
async function fanOut(): Promise<void> {
  const space = await fillSpace();
  const streams = createStreamRegistry();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const handle = { streams, disableIdleTimeout: () => {} } as unknown as ServerHandle;
      const { pathname } = new URL(request.url);
      const filter = pathname === "/same" ? {} : { n: { $gte: -Number(pathname.slice(1)) } };
      try {
        const body = { filter, sort: ["-n"], limit: 10 };
        const source = liveSource((sink) => space.live.subscribe(space.collection, body, sink));
        return await openStream({ request, server: handle }, source);
      } catch (error) {
        return errorResponse(error, silentLog);
      }
    },
  });
  const alone: number[] = [];
  for (let round = 0; round < ROUNDS; round++) alone.push(await oneWrite(space, round));
  console.log(`\n${SUBSCRIBERS} streams of one dataset, each write in every window: median of ${ROUNDS} writes, ms`);
  console.log("| streams | write answered | without streams | last reader has it | server MB |");
  console.log("|---|---|---|---|---|");
  for (const [name, path] of [
    ["same query", "same"],
    ["each its own", "each"],
  ] as const) {
    const reader = Bun.spawn(
      [process.execPath, import.meta.path, "read", `${server.url.href}${path}`, String(SUBSCRIBERS)],
      {
        env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: String(SUBSCRIBERS * 2) },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "inherit",
      },
    );
    const lines = linesOf(reader.stdout);
    await lines.next(); // all have their snapshot
    const answered: number[] = [];
    const delivered: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const startedAt = performance.now();
      answered.push(await oneWrite(space, 1_000_000 + round));
      await lines.next();
      delivered.push(performance.now() - startedAt);
    }
    const figures = [median(answered), median(alone), median(delivered)].map((ms) => ms.toFixed(2));
    console.log(`| ${name} | ${figures.join(" | ")} | ${rssMb()} |`);
    reader.kill();
    await reader.exited;
    while (space.live.size > 0) await Bun.sleep(10);
  }
  await server.stop(true);
  await space.close();
}

async function oneWrite(space: LiveSpace, n: number): Promise<number> {
  const startedAt = performance.now();
  await space.op("r7", { type: "$set", path: "n", value: 1_000_000 + n });
  return performance.now() - startedAt;
}

/** The reading process: prints a line when all streams have their snapshot, and one when all have the next change. */
async function readStreams(url: string, count: number): Promise<void> {
  let snapshots = 0;
  const changes: number[] = [];
  const read = async (index: number): Promise<void> => {
    const response = await fetch(url.endsWith("/each") ? url.replace("each", String(index)) : url);
    let rest = "";
    let seen = 0;
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk, { stream: true });
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const block = rest.slice(0, end);
        rest = rest.slice(end + 2);
        if (block.startsWith("event: snapshot") && ++snapshots === count) console.log("snapshots");
        if (!block.startsWith("event: changes")) continue;
        const had = (changes[seen] ?? 0) + 1;
        changes[seen++] = had;
        if (had === count) console.log("changes");
      }
    }
  };
  await Promise.all(Array.from({ length: count }, (_, index) => read(index)));
}
