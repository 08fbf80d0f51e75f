/** Search by meaning on real models: what it finds, and what becomes of it when the process that embeds dies. */
import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, hostTarget } from "../../build.ts";
import type { ProcessRow } from "../../src/protocol/event.ts";
import { startModelMirror } from "../support/models/model-mirror.ts";
import {
  ENGLISH_MODEL,
  hasModels,
  MULTILINGUAL_MODEL,
  modelDirectory,
  NO_MODELS,
  placeModel,
} from "../support/models/models.ts";
import { search, searchByMeaning } from "../support/models/search.ts";
import { scratchDir } from "../support/scratch.ts";
import { childrenOf } from "../support/server/child-processes.ts";
import { until } from "../support/server/client.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnlessGiven } from "../support/skip.ts";

const onModels = skipUnlessGiven(hasModels, NO_MODELS);
const EMBEDS = { SVC_INDEX_EMBEDDER: "auto" };
const PATIENCE_MS = 90_000;

const byMeaning = (server: RunningServer, space: string, query: string, limit = 10) =>
  searchByMeaning(server.client, space, { query, limit }, PATIENCE_MS);

const NAMES = [
  "The cat sleeps on the sofa",
  "Invoices are paid within thirty days",
  "How to bake sourdough bread",
  "Upgrading the database cluster",
  "The choir sings on Sunday",
];

onModels(
  "[SEARCH-6] a paraphrase is found on an English model; a killed process that embeds is begun anew, killed indexing goes on",
  async () => {
    await using server = await startServer({ env: EMBEDS });
    placeModel(server.dataDir, ENGLISH_MODEL);
    const space = (await createSpace(server.client)).id;
    for (const name of NAMES) await createObject(server.client, space, named(name));
    const first = async (query: string) => (await byMeaning(server, space, query)).hits[0]?.data;
    expect(await first("a feline pet is resting")).toBe(NAMES[0]!);
    expect(await first("settle what one owes a supplier")).toBe(NAMES[1]!);
    for (let round = 0; round < 2; round++) {
      for (const pid of childrenOf(server.pid, "__embed")) process.kill(pid, "SIGKILL");
      for (const pid of childrenOf(server.pid, "__index")) process.kill(pid, "SIGKILL");
      expect((await search(server.client, space, { query: "sofa", mode: "fts" })).hits).toHaveLength(1);
      expect(await first(`making dough rise ${round}`)).toBe(NAMES[2]!);
    }
    // A process that hangs is no reason to wait for ever, nor for words to wait.
    const [hung] = childrenOf(server.pid, "__embed");
    process.kill(hung!, "SIGSTOP");
    const startedAt = performance.now();
    expect((await search(server.client, space, { query: "choir", mode: "fts" })).hits).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const during = await search(server.client, space, { query: "choir music" });
    expect([during.vectorStatus, during.hits[0]?.data]).toEqual(["unavailable", NAMES[4]!]);
    expect(await first("a group performing songs together")).toBe(NAMES[4]!);
    const stopped = server.pid;
    await server.stop();
    expect([...childrenOf(stopped, "__embed"), ...childrenOf(stopped, "__index")]).toEqual([]);
  },
  240_000,
);

onModels(
  "[SEARCH-6] an executable that carries a model finds by meaning at its first start, in an empty directory, in another language; the last sentence of a long text is not left out",
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
    const { hits } = await byMeaning(server, space, "Where is the spare key hidden?", 3);
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

onModels(
  "[SEARCH-6] a model is fetched from a mirror that fails, lies and is slow: shown in bytes as index.model_download; words are found meanwhile, meaning afterwards",
  async () => {
    const fileOf = (name: string) => {
      const path = join(modelDirectory(ENGLISH_MODEL), name);
      return existsSync(path) ? readFileSync(path) : undefined;
    };
    await using mirror = startModelMirror(ENGLISH_MODEL, fileOf);
    mirror.behaviour = { status: 500 };
    await using server = await startServer({
      env: { ...EMBEDS, SVC_INDEX_MODEL: ENGLISH_MODEL, SVC_INDEX_MODEL_HOST: mirror.host },
    });
    const space = (await createSpace(server.client)).id;
    for (const name of NAMES) await createObject(server.client, space, named(name));
    const expectWords = async () => {
      const { hits, vectorStatus, mode } = await search(server.client, space, { query: "sofa" });
      expect([hits[0]?.data, vectorStatus, mode]).toEqual([NAMES[0]!, "unavailable", "fts"]);
      const body = { query: "sofa", mode: "vector" };
      const refused = await server.client.request("POST", `/v1/spaces/${space}/search`, { body });
      expect(refused.status).toBe(503);
    };
    const downloads = async (): Promise<ProcessRow[]> => {
      const { processes } = await server.client.get<{ processes: ProcessRow[] }>("/v1/processes");
      return processes.filter(({ kind }) => kind === "index.model_download");
    };
    await until(() => /the hub answered 500/.test(server.stderr()), "the hub's failure", PATIENCE_MS);
    await expectWords();

    mirror.behaviour = { statedDigest: "ab".repeat(32) };
    await until(() => /the hub says abababab/.test(server.stderr()), "the hub's lie", PATIENCE_MS);
    await expectWords();

    const { promise, resolve } = Promise.withResolvers<void>();
    const weights = fileOf("onnx/model_quantized.onnx")!.length;
    mirror.behaviour = { hold: { after: 5_000_000, until: promise } };
    const isHeld = ({ state, done, total }: ProcessRow) =>
      state === "running" && done === 5_000_000 && total === weights;
    await until(async () => (await downloads()).some(isHeld), "a download that is held", PATIENCE_MS);
    expect((await downloads()).find(isHeld)).toMatchObject({
      title: `Fetching ${ENGLISH_MODEL}: onnx/model_quantized.onnx`,
      target: "model_quantized.onnx",
    });
    await expectWords();
    resolve();
    expect((await byMeaning(server, space, "a feline pet is resting")).hits[0]?.data).toBe(NAMES[0]!);
    expect((await downloads()).find(({ done, state }) => done === weights && state !== "failed")?.state).toBe("done");
  },
  180_000,
);

onModels(
  "[SEARCH-6] processes that embed and get no memory: words are found, the status says so, no text is given up; with memory meaning comes by itself",
  async () => {
    await using server = await startServer({ env: EMBEDS });
    placeModel(server.dataDir, ENGLISH_MODEL);
    const starved = new Set<number>();
    const starve = () => {
      for (const pid of childrenOf(server.pid, "__embed")) {
        // Of no more: each that is lost has the next one wait longer, in the end for minutes.
        if (starved.has(pid) || starved.size === 2) continue;
        starved.add(pid);
        // What it has is all it may have.
        spawnSync("prlimit", ["--pid", String(pid), "--as=1000000"]);
      }
    };
    const starving = setInterval(starve, 5);
    try {
      const space = (await createSpace(server.client)).id;
      for (const name of NAMES) await createObject(server.client, space, named(name));
      await until(
        async () => {
          await search(server.client, space, { query: "sofa" });
          return starved.size >= 2;
        },
        "two that starve",
        PATIENCE_MS,
      );
      const { hits, vectorStatus, mode } = await search(server.client, space, { query: "sofa" });
      expect([hits[0]?.data, vectorStatus, mode]).toEqual([NAMES[0]!, "unavailable", "fts"]);
      expect(server.stderr()).toMatch(/texts cannot be embedded; full-text search goes on/);
      clearInterval(starving);
      expect((await byMeaning(server, space, "a feline pet is resting")).hits[0]?.data).toBe(NAMES[0]!);
      expect(server.stderr()).not.toMatch(/found by its words alone/);
    } finally {
      clearInterval(starving);
    }
  },
  180_000,
);
