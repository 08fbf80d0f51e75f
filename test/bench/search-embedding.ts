/**
 * Embedding beside everything else, by hand: `bun test/bench/search-embedding.ts [organisation/model]`. Texts are the paragraphs of
 * READMEs below node_modules. Prints the rate of embedding by the server against the bare model with as many threads, and
 * how long reads by id take at rest, while texts are indexed and while they are embedded.
 */
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { loadTextEmbedder } from "../../src/search/model/text-embedder.ts";
import { ENGLISH_MODEL, modelDirectory, placeModel } from "../support/models/models.ts";
import { search } from "../support/models/search.ts";
import type { Client } from "../support/server/client.ts";
import { createObject, createSpace, createType, named } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const TEXTS = 400;
const CHARS = [400, 1_500] as const;
const TEXTS_A_ROUND = 32;
const READS = 8_000;
const MAX_THREADS = 4;

const model = process.argv[2] ?? ENGLISH_MODEL;
const texts = paragraphs().slice(0, TEXTS);

function paragraphs(): string[] {
  const modules = join(import.meta.dir, "../../node_modules");
  const found = readdirSync(modules).flatMap((name) => {
    try {
      return readFileSync(join(modules, name, "README.md"), "utf8").split(/\n(?=#)/);
    } catch {
      return []; // it has none
    }
  });
  return [...new Set(found)].filter(({ length }) => length >= CHARS[0] && length <= CHARS[1]);
}

/** Texts a second by the clock, and milliseconds of the processor a text. */
interface Rate {
  readonly perSecond: number;
  readonly workMs: number;
}

async function bareRate(): Promise<Rate> {
  const threads = Math.max(1, Math.min(MAX_THREADS, availableParallelism() - 1));
  const embedder = await loadTextEmbedder({ modelsDir: join(modelDirectory(model), "../.."), model, threads });
  await embedder.embed(texts.slice(0, TEXTS_A_ROUND), "passage");
  const before = process.cpuUsage();
  const startedAt = performance.now();
  for (let at = 0; at < texts.length; at += TEXTS_A_ROUND)
    await embedder.embed(texts.slice(at, at + TEXTS_A_ROUND), "passage");
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: texts.length / ((performance.now() - startedAt) / 1_000),
    workMs: (user + system) / 1_000 / texts.length,
  };
}

/** Processor time of the processes that a server started, in ticks. */
function workOfChildren(pid: number): number {
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      if (Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It ended meanwhile.
    }
  }
  return ticks * 10;
}

interface Point {
  readonly space: string;
  readonly id: string;
}

async function pointOf(client: Client): Promise<Point> {
  const space = (await createSpace(client)).id;
  return { space, id: (await createObject(client, space, named("a point"))).id };
}

async function readTimes(client: Client, { space, id }: Point, isOver: () => boolean): Promise<string> {
  const times: number[] = [];
  while (times.length < READS && !isOver()) {
    const startedAt = performance.now();
    await client.post(`/v1/spaces/${space}/objects/query`, { filter: { id } }, 200);
    times.push(performance.now() - startedAt);
    await Bun.sleep(1);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? Number.NaN).toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms of ${times.length}`;
}

await using server = await startServer({ env: { SVC_INDEX_EMBEDDER: "auto" } });
const { client } = server;
placeModel(server.dataDir, model);
const space = (await createSpace(client)).id;
const { typeId } = await createType(client, space);
const draft = { name: "texts", idRule: "user", search: { text: "body" }, fields: [{ key: "body" }] };
await client.post(`/v1/spaces/${space}/types/${typeId}/datasets`, draft, 201);
const { id } = await createObject(client, space, { types: [typeId] });
const point = await pointOf(client);
const never = () => false;
await readTimes(client, point, never);
console.log("reads at rest:", await readTimes(client, point, never));

const write = async (items: readonly string[], first: number): Promise<void> => {
  for (let at = 0; at < items.length; at += 50) {
    const records = items.slice(at, at + 50).map((body, i) => ({ id: `t${first + at + i}`, fields: { body } }));
    await client.post(`/v1/spaces/${space}/upsert`, { objectId: id, dataset: "texts", records }, 200);
  }
};
/** Whether all texts of the space have been given their vectors. */
const isEmbedded = async (): Promise<boolean> => {
  const { vectorStatus, incomplete } = await search(client, space, { query: "text" });
  return vectorStatus === "used" && incomplete !== true;
};
await write(texts.slice(0, 1), 0);
while (!(await isEmbedded())) await Bun.sleep(100);

const workedBefore = workOfChildren(server.pid);
const startedAt = performance.now();
await write(texts.slice(1), 1);
let isDone = false;
const reading = readTimes(client, point, () => isDone);
while (!(await isEmbedded())) await Bun.sleep(500);
const seconds = (performance.now() - startedAt) / 1_000;
const workMs = (workOfChildren(server.pid) - workedBefore) / (texts.length - 1);
isDone = true;
console.log("reads while texts are embedded:", await reading);
const bare = await bareRate();
const perSecond = (texts.length - 1) / seconds;
console.log(
  `${model}: ${perSecond.toFixed(1)} texts/s, bare model ${bare.perSecond.toFixed(1)}, ratio ${(perSecond / bare.perSecond).toFixed(2)}; of the processor ${workMs.toFixed(1)} and ${bare.workMs.toFixed(1)} ms a text, ratio ${(bare.workMs / workMs).toFixed(2)}`,
);

// Words alone: an account that embeds nothing.
await using plain = await startServer({ env: { SVC_INDEX_EMBEDDER: "none" } });
const words = (await createSpace(plain.client)).id;
const plainPoint = await pointOf(plain.client);
await readTimes(plain.client, plainPoint, never);
console.log("reads at rest, no embedder:", await readTimes(plain.client, plainPoint, never));
const page = (await createObject(plain.client, words, { types: ["page"] })).id;
const content = texts.join("\n\n").repeat(8);
await plain.client.request("PUT", `/v1/spaces/${words}/objects/${page}/editor/markdown`, { body: { content } });
let isIndexed = false;
const beside = readTimes(plain.client, plainPoint, () => isIndexed);
while ((await search(plain.client, words, { query: "text", mode: "fts" })).incomplete === true) await Bun.sleep(100);
isIndexed = true;
console.log("reads while a document of some megabytes is indexed:", await beside);
