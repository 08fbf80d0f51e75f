/**
 * `bun test/bench/many-files.ts [files] [variants]`: what listing, querying, counting and paging cost in a space of so many
 * files, and of one original with so many variants. Single requests, medians and the longest of twenty.
 */
import { timed } from "../support/latency.ts";
import { type Client, type JsonObject, until } from "../support/server/client.ts";
import { attach, filesPath } from "../support/server/files.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { type Line, median, milliseconds, perSecond, renderTable } from "./report.ts";

const [files = 100_000, variants = 10_000] = process.argv.slice(2).map(Number) as [number?, number?];
const AT_ONCE = 32;
const ROUNDS = 20;
const QUICK_MS = 20;
/** Milliseconds that a person does not notice. */
const AIM = { atMost: 50, unit: "ms" };

await using server = await startServer();
const { client } = server;
const space = await createSpace(client);
const base = filesPath(space.id);
const owner = (await createObject(client, space.id)).id;

const startedMs = performance.now();
await inLanes(files, (i) => attachOne(owner, i, {}));
const filledMs = performance.now() - startedMs;
const objectId = (await createObject(client, space.id)).id;
const original = await attachOne(objectId, files, {});
await inLanes(variants, (i) => attachOne(objectId, files + 1 + i, { variant: `v${i}`, variantOf: original }));

const queryOf =
  (of: string, body: JsonObject) =>
  (from: Client): Promise<unknown> =>
    from.post(`/v1/spaces/${space.id}/objects/${of}/files/query`, body);
const named = { filter: { name: `file-${files >> 1}.txt` }, limit: 1 };
// What is asked for first has to read its dataset; indexes on it come by themselves, behind the answers.
for (const sort of [["id"], ["-_ver.id"]]) await queryOf(owner, { sort, offset: files >> 1, limit: 50 })(client);
const middle = (body: JsonObject): JsonObject => ({ ...body, offset: files >> 1, limit: 50 });
const middleVariants = queryOf(objectId, { filter: { variantOf: original }, offset: variants >> 1, limit: 50 });
for (const ask of [queryOf(owner, named), middleVariants]) await untilQuick(ask);
const lines: Line[] = [
  { name: `attaching ${files} short files, ${AT_ONCE} at once`, figures: perSecond(files / (filledMs / 1000)) },
  await line("list of the space, newest 50", (from) => from.get(`${base}?limit=50`)),
  await line("list of the object, newest 50", (from) => from.get(`${base}?objectId=${owner}&limit=50`)),
  await line("query by name, one of all", queryOf(owner, named)),
  await line("page of 50, newest first", queryOf(owner, { sort: ["-_ver.id"], limit: 50 })),
  await line("page of 50 in the middle, newest first", queryOf(owner, middle({ sort: ["-_ver.id"] }))),
  await line("page of 50 in the middle, by id", queryOf(owner, middle({}))),
  await line("page of 50 with the total", queryOf(owner, { limit: 50, includeTotal: true })),
  await line("stats", (from) => from.get(`${base}/stats`)),
  await line("one file", (from) => from.get(`${base}/${original}`)),
  await line("one more file", (_, round) => attachOne(owner, files + round, {})),
  await line("variants: newest 50 of the object", (from) => from.get(`${base}?objectId=${objectId}&limit=50`)),
  await line("variants: one by its tag", queryOf(objectId, { filter: { variant: `v${variants >> 1}` }, limit: 1 })),
  await line("variants: page of 50 in the middle", middleVariants),
  await line("variants: one more", (_, round) =>
    attachOne(objectId, files + variants + 1 + round, { variant: `more-${round}`, variantOf: original }),
  ),
];
console.log(renderTable(lines));

async function attachOne(to: string, index: number, more: { variant?: string; variantOf?: string }): Promise<string> {
  const bytes = Buffer.from(`content of the file ${index}`);
  return (await attach(client, space.id, to, bytes, { name: `file-${index}.txt`, mime: "text/plain", ...more })).fileId;
}

async function inLanes(count: number, make: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

async function untilQuick(ask: (from: Client) => Promise<unknown>): Promise<void> {
  let quick = 0;
  await until(
    async () => {
      quick = (await timed(() => ask(client))) < QUICK_MS ? quick + 1 : 0;
      return quick === ROUNDS;
    },
    "the indexes",
    120_000,
  );
}

async function line(name: string, ask: (from: Client, round: number) => Promise<unknown>): Promise<Line> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await timed(() => ask(client, round)));
  const value = median(times);
  return { name, figures: `${milliseconds(value)} (longest ${milliseconds(Math.max(...times))})`, value, aim: AIM };
}
