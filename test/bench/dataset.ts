/** A dataset of many records on a server of its own, and its indexes, which nobody can ask for: they come with use. */
import { join } from "node:path";
import type { ScratchDir } from "../support/scratch.ts";
import type { Client, JsonObject } from "../support/server/client.ts";
import { type Collection, createCollection, createSpace, type FieldDraft } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { PAGE_RECORDS, pageOf } from "./workload.ts";

export interface Loaded {
  server: RunningServer;
  items: Collection;
  /** Records a second of each of the upserts that filled the dataset, in order. */
  pageRates: number[];
}

const FIELDS: FieldDraft[] = [
  { key: "group", kind: "string", mutableBy: "any" },
  { key: "team", kind: "string", mutableBy: "any" },
  { key: "title", kind: "string", mutableBy: "any" },
  { key: "n", kind: "number", mutableBy: "any" },
  { key: "done", kind: "boolean", mutableBy: "any" },
  { key: "tags", kind: "array", mutableBy: "any" },
  { key: "at", kind: "datetime", mutableBy: "any" },
  { key: "note", kind: "string", mutableBy: "any" },
];

/** A server with one dataset of this many records, filled through `/upsert`. */
export async function loadDataset(into: ScratchDir, name: string, size: number): Promise<Loaded> {
  const server = await startServer({ dataDir: join(into.path, name) });
  const items = await createItems(server.client);
  return { server, items, pageRates: await fill(server.client, items, 0, size, size) };
}

/** An empty dataset in a space of its own. */
export async function createItems(client: Client): Promise<Collection> {
  return createCollection(client, (await createSpace(client)).id, { fields: FIELDS });
}

/** Upserts new records in pages; answers the records a second of each. */
export async function fill(
  client: Client,
  items: Collection,
  first: number,
  count: number,
  size: number,
): Promise<number[]> {
  const rates: number[] = [];
  for (let start = first; start < first + count; start += PAGE_RECORDS) {
    const page = pageOf(start, Math.min(PAGE_RECORDS, first + count - start), size);
    // Made before the clock starts, as the floor's pages are.
    const raw = JSON.stringify({ ...items.target, records: page });
    const startedAt = performance.now();
    const reply = await client.request("POST", `${items.path}/upsert`, { raw });
    rates.push(page.length / ((performance.now() - startedAt) / 1000));
    const result = reply.json as { created?: number };
    if (result.created !== page.length) throw new Error(`a page created ${result.created} of ${page.length} records`);
  }
  return rates;
}

const POLL_MS = 200;
const DEADLINE_MS = 600_000;

/**
 * Asks once, then waits until the plan of a pipeline says that it is served by an index. Answers how long that took, in
 * milliseconds.
 */
export async function untilIndexed(
  ask: () => Promise<unknown>,
  explain: () => Promise<{ plan: string }>,
  part: string,
): Promise<number> {
  const startedAt = performance.now();
  await ask();
  for (let { plan } = await explain(); !plan.includes(part); { plan } = await explain()) {
    if (performance.now() - startedAt > DEADLINE_MS) throw new Error(`no index within ${DEADLINE_MS} ms:\n${plan}`);
    await Bun.sleep(POLL_MS);
  }
  return performance.now() - startedAt;
}

/** The index that serves a filter of one field. */
export function untilFieldIndexed({ server, items }: Pick<Loaded, "server" | "items">, filter: JsonObject) {
  const [path = ""] = Object.keys(filter);
  const body = { ...items.target, pipeline: [{ $match: filter }], explain: true };
  return untilIndexed(
    () => items.query({ filter, limit: 1 }),
    () => server.client.post(`${items.path}/aggregate`, body),
    `index on ${path}`,
  );
}
