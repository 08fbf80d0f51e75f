/** Search by meaning on real models: what it finds, and what becomes of it when the process that embeds dies. */
import { expect } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, hostTarget } from "../../build.ts";
import { createObject, createSpace, named } from "../support/fixtures.ts";
import {
  ENGLISH_MODEL,
  hasModels,
  MULTILINGUAL_MODEL,
  modelDirectory,
  NO_MODELS,
  placeModel,
} from "../support/models.ts";
import { scratchDir } from "../support/scratch.ts";
import { search, searchUntil } from "../support/search.ts";
import { type RunningServer, startServer } from "../support/server.ts";
import { skipUnlessGiven } from "../support/skip.ts";

const onModels = skipUnlessGiven(hasModels, NO_MODELS);
const EMBEDS = { SVC_INDEX_EMBEDDER: "auto" };
const PATIENCE_MS = 90_000;

const settled = (server: RunningServer, space: string, query: string, limit = 10) =>
  searchUntil(
    server.client,
    space,
    { query, limit },
    (answer) => answer.vectorStatus === "used" && !answer.incomplete,
    PATIENCE_MS,
  );

/** Children of a server that were started as `svc <mode>`. */
function children(pid: number, mode: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1];
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
        return Number(parent) === pid && words.includes(mode) ? [Number(name)] : [];
      } catch {
        return []; // it ended meanwhile
      }
    });
}

const NAMES = [
  "The cat sleeps on the sofa",
  "Invoices are paid within thirty days",
  "How to bake sourdough bread",
  "Upgrading the database cluster",
  "The choir sings on Sunday",
];

onModels(
  "[search] a paraphrase is found on an English model; a killed process that embeds is begun anew, killed indexing goes on",
  async () => {
    await using server = await startServer({ env: EMBEDS });
    placeModel(server.dataDir, ENGLISH_MODEL);
    const space = (await createSpace(server.client)).id;
    for (const name of NAMES) await createObject(server.client, space, named(name));
    const first = async (query: string) => (await settled(server, space, query)).hits[0]?.data;
    expect(await first("a feline pet is resting")).toBe(NAMES[0]!);
    expect(await first("settle what one owes a supplier")).toBe(NAMES[1]!);
    for (let round = 0; round < 2; round++) {
      for (const pid of children(server.pid, "__embed")) process.kill(pid, "SIGKILL");
      for (const pid of children(server.pid, "__index")) process.kill(pid, "SIGKILL");
      expect((await search(server.client, space, { query: "sofa", mode: "fts" })).hits).toHaveLength(1);
      expect(await first(`making dough rise ${round}`)).toBe(NAMES[2]!);
    }
    // A process that hangs is no reason to wait for ever, nor for words to wait.
    const [hung] = children(server.pid, "__embed");
    process.kill(hung!, "SIGSTOP");
    const startedAt = performance.now();
    expect((await search(server.client, space, { query: "choir", mode: "fts" })).hits).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const during = await search(server.client, space, { query: "choir music" });
    expect([during.vectorStatus, during.hits[0]?.data]).toEqual(["unavailable", NAMES[4]!]);
    expect(await first("a group performing songs together")).toBe(NAMES[4]!);
    const stopped = server.pid;
    await server.stop();
    expect([...children(stopped, "__embed"), ...children(stopped, "__index")]).toEqual([]);
  },
  240_000,
);

onModels(
  "[search] an executable that carries a model finds by meaning at its first start, in an empty directory, in another language; the last sentence of a long text is not left out",
  async () => {
    using scratch = scratchDir("svc-model-build");
    const outfile = join(scratch.path, "svc");
    const nativeModules = join(import.meta.dir, "../../node_modules");
    await buildExecutable({
      target: hostTarget(),
      outfile,
      nativeModules,
      native: true,
      model: modelDirectory(MULTILINGUAL_MODEL),
    });
    mkdirSync(join(scratch.path, "data"));
    const filler = "今天的会议讨论了预算、人员安排和下个季度的计划，没有得出任何结论。".repeat(140);
    const fact = "最后，我们把备用钥匙藏在花盆下面。";
    await using server = await startServer({ env: EMBEDS, binary: outfile, dataDir: join(scratch.path, "data") });
    const space = (await createSpace(server.client)).id;
    const { id } = await createObject(server.client, space, { types: ["page"] });
    const content = `${filler}${fact}`;
    await server.client.request("PUT", `/v1/spaces/${space}/objects/${id}/editor/markdown`, { body: { content } });
    for (const name of NAMES) await createObject(server.client, space, named(name));
    const { hits } = await settled(server, space, "Where is the spare key hidden?", 3);
    const mine = hits.find((hit) => hit.objectId === id);
    expect(mine?.foundBy).toEqual(["vector"]);
    const whole = await search(server.client, space, {
      query: "忘了带门匙，怎么进门？",
      maxData: -1,
      mode: "vector",
      limit: 1,
    });
    expect(whole.hits[0]?.data).toContain(fact);
  },
  300_000,
);
