/** What the index does where its disk is full or what is native of it is missing; and that its long work is shown. */

import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProcessRow } from "../../src/protocol/event.ts";
import { type EmbeddingEndpoint, embeddingBy, startEmbeddingEndpoint } from "../support/models/embedding-endpoint.ts";
import { indexDirectory, search, searchByMeaning, searchUntil, searchWhole } from "../support/models/search.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { until } from "../support/server/client.ts";
import { createObject, createSpace, createType, named } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";

const RECORDS = 160;
const WORDS_A_RECORD = 50_000;
const SMALL = "size=4m";
const LARGE = "size=1500m";

function canMount(): boolean {
  if (process.platform !== "linux") return false;
  using scratch = scratchDir("svc-mount");
  const isMounted = mount(scratch.path, SMALL);
  if (isMounted) spawnSync("umount", [scratch.path]);
  return isMounted;
}

function mount(path: string, options: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]).status === 0;
}

const processes = async (server: RunningServer): Promise<ProcessRow[]> =>
  (await server.client.get<{ processes: ProcessRow[] }>("/v1/processes")).processes;

/** The row of a piece of long work, once it is there. */
async function shown(server: RunningServer, kind: string): Promise<ProcessRow> {
  let row: ProcessRow | undefined;
  const isThere = async () => {
    row = (await processes(server)).find((each) => each.kind === kind);
    return row !== undefined;
  };
  await until(isThere, `a process ${kind}`, 60_000);
  return row!;
}

/** Long texts of words that no other has, and at the end of each one that says which it is. */
async function writeTexts(server: RunningServer): Promise<string> {
  const { client } = server;
  const space = (await createSpace(client)).id;
  const { typeId } = await createType(client, space);
  const draft = { name: "texts", idRule: "user", search: { text: "body" }, fields: [{ key: "body" }] };
  await client.post(`/v1/spaces/${space}/types/${typeId}/datasets`, draft, 201);
  const { id } = await createObject(client, space, { types: [typeId] });
  const rng = createRng(5);
  for (let i = 0; i < RECORDS; i++) {
    const words = Array.from({ length: WORDS_A_RECORD }, () => Math.floor(rng.next() * 60_000).toString(36));
    const records = [{ id: `t${i}`, fields: { body: `${words.join(" ")} ending${i}` } }];
    await client.post(`/v1/spaces/${space}/upsert`, { objectId: id, dataset: "texts", records }, 200);
  }
  return space;
}

skipUnless(canMount(), "a file system of its own cannot be mounted here")(
  "[SEARCH-5] [PROC-2] a full disk stops the index alone: it says `incomplete`, keeps what it has, and goes on when there is room, shown as index.fts",
  async () => {
    using root = scratchDir("svc-search-full");
    const first = await startServer({ dataDir: root.path, env: { SVC_INDEX_ENABLED: "false" } });
    const space = await writeTexts(first);
    await first.stop();
    const directory = indexDirectory(root.path);
    mkdirSync(directory, { recursive: true });
    expect(mount(directory, SMALL)).toBe(true);
    try {
      await using server = await startServer({ dataDir: root.path, bootstrapped: false });
      const { client } = server;
      await until(() => /indexing failed.*full/.test(server.stderr()), "indexing to fail", 60_000);
      // The newest come first, and stay.
      const full = await search(client, space, { query: `ending${RECORDS - 1}` });
      expect([full.hits.length, full.incomplete]).toEqual([1, true]);
      const { id } = await createObject(client, space, named("written while the disk of the index is full"));
      expect((await search(client, space, { query: "nothing of it" })).incomplete).toBe(true);
      expect(server.stderr()).not.toMatch(/made anew/);

      expect(mount(directory, `remount,${LARGE}`)).toBe(true);
      expect(await shown(server, "index.fts")).toMatchObject({ title: "Indexing text", target: space });
      await searchUntil(client, space, { query: "ending0" }, (answer) => !answer.incomplete, 90_000);
      for (let i = 0; i < RECORDS; i++)
        expect((await search(client, space, { query: `ending${i}` })).hits.map((hit) => hit.recordId)).toEqual([
          `t${i}`,
        ]);
      expect((await searchWhole(client, space, { query: "written" })).hits[0]?.objectId).toBe(id);
      await until(
        async () => (await processes(server)).every(({ kind, state }) => kind !== "index.fts" || state === "done"),
        "indexing to end",
        60_000,
      );
      expect(server.stderr()).not.toMatch(/made anew/);
    } finally {
      spawnSync("umount", ["-l", directory]);
    }
  },
  240_000,
);

const MEANINGS = [
  ["cat", "feline"],
  ["bread", "loaf"],
];

const startWith = (endpoint: EmbeddingEndpoint, dataDir: string): Promise<RunningServer> =>
  startServer({ dataDir, env: embeddingBy(endpoint) });

rule(
  "[SRV-6] [SEARCH-6] where the native library is missing hybrid says `unavailable`, words are found, and the log says it once; with it, meaning comes by itself",
  async () => {
    using root = scratchDir("svc-search-native");
    await using endpoint = startEmbeddingEndpoint(MEANINGS);
    await (await startServer({ dataDir: root.path })).stop();
    const native = join(indexDirectory(root.path), "native");
    rmSync(native, { recursive: true, force: true });
    mkdirSync(indexDirectory(root.path), { recursive: true });
    // Nothing can be put in a directory that is none.
    writeFileSync(native, "");
    const lacking = await startWith(endpoint, root.path);
    const space = (await createSpace(lacking.client)).id;
    const { id } = await createObject(lacking.client, space, named("a cat on the sofa"));
    await createObject(lacking.client, space, named("fresh bread"));
    await searchWhole(lacking.client, space, { query: "sofa", mode: "fts" });
    for (let round = 0; round < 3; round++) {
      const { hits, mode, vectorStatus } = await search(lacking.client, space, { query: "sofa" });
      expect([hits[0]?.objectId, mode, vectorStatus]).toEqual([id, "fts", "unavailable"]);
    }
    const refused = await lacking.client.request("POST", `/v1/spaces/${space}/search`, {
      body: { query: "x", mode: "vector" },
    });
    expect(refused.status).toBe(503);
    expect(lacking.stderr().match(/WARN.*vector.*/g)).toHaveLength(1);
    await lacking.stop();

    rmSync(native);
    await using whole = await startWith(endpoint, root.path);
    const found = await searchUntil(
      whole.client,
      space,
      { query: "feline" },
      (answer) => answer.vectorStatus === "used" && !answer.incomplete,
    );
    expect(found.hits[0]).toMatchObject({ objectId: id, foundBy: ["vector"] });
  },
  60_000,
);

rule(
  "[PROC-2] embedding is shown as index.embed for as long as texts wait",
  async () => {
    using root = scratchDir("svc-search-embed");
    await using endpoint = startEmbeddingEndpoint(MEANINGS);
    await using server = await startWith(endpoint, root.path);
    const space = (await createSpace(server.client)).id;
    await createObject(server.client, space, named("a cat on the sofa"));
    await searchByMeaning(server.client, space, { query: "feline" }, 40_000);
    endpoint.fault = "hang";
    await createObject(server.client, space, named("fresh bread"));
    expect(await shown(server, "index.embed")).toMatchObject({ title: "Embedding text", target: space });
  },
  60_000,
);
