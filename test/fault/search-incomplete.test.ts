/**
 * What an answer says of itself: where it does not say `incomplete`, every text that is committed is found, by its words, and
 * by its vector where vectors were used. Processes of the server and the server itself end at any moment meanwhile.
 */
import { expect } from "bun:test";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embeddingBy, startEmbeddingEndpoint } from "../support/models/embedding-endpoint.ts";
import { ENGLISH_MODEL, hasModels, NO_MODELS, placeModel } from "../support/models/models.ts";
import { type SearchAnswer, searchUntil, searchWhole } from "../support/models/search.ts";
import { pace } from "../support/pace.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { childrenOf } from "../support/server/child-processes.ts";
import { type Client, until } from "../support/server/client.ts";
import {
  createCollection,
  createObject,
  createSpace,
  createType,
  named,
  setFields,
  uniqueName,
} from "../support/server/fixtures.ts";
import { BINARY, type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnless, skipUnlessGiven } from "../support/skip.ts";

/** Texts at once: one answer names all of them. */
const MOST_TEXTS = 80;
const MOST_A_WRITE = 15;
const QUERY = "harbour";
const EVERYTHING = { query: QUERY, limit: 100, maxData: -1 };

interface World {
  readonly space: string;
  readonly typeId: string;
  /** Carries the records. */
  readonly holder: string;
  /** Texts by their place; undefined where the last write was not answered. */
  readonly texts: Map<string, string | undefined>;
  dataset: string;
  /** Characters that records are longer by. */
  readonly filler: string;
  nextText: number;
  /** Answers that said of nothing that it was lacking. */
  whole: number;
}

async function makeWorld(client: Client, filler: string): Promise<World> {
  const space = (await createSpace(client)).id;
  const { typeId } = await createType(client, space);
  const { id: holder } = await createObject(client, space, { types: [typeId] });
  return { space, typeId, holder, texts: new Map(), dataset: "", filler, nextText: 0, whole: 0 };
}

const nameOf = (world: World): string => `${QUERY} number ${world.nextText++}`;

async function writeOne(client: Client, world: World, rng: Rng): Promise<void> {
  const { space, typeId, holder, texts } = world;
  const objects = [...texts.keys()].filter((key) => key.endsWith(" prop name"));
  const dice = rng.next();
  if (world.dataset === "" || dice < 0.05) {
    const name = uniqueName("texts");
    const draft = { name, idRule: "user", search: { text: "body" }, fields: [{ key: "body", mutableBy: "any" }] };
    await client.post(`/v1/spaces/${space}/types/${typeId}/datasets`, draft, 201);
    world.dataset = name;
  } else if (dice < 0.5) {
    const known = [...texts.keys()].filter((key) => !key.endsWith(" prop name"));
    const isFull = texts.size > MOST_TEXTS - MOST_A_WRITE;
    const ids = Array.from({ length: rng.int(1, MOST_A_WRITE) }, (_, i) => `r${world.nextText++}_${i}`);
    const keys = isFull
      ? [...new Set(ids.map(() => rng.pick(known)))].filter((key) => key.includes(` ${world.dataset} `))
      : ids.map((id) => `${holder} ${world.dataset} ${id}`);
    if (keys.length === 0) return;
    const written = keys.map((key) => [key, `${nameOf(world)} ${world.filler}`.trim()] as const);
    for (const key of keys) texts.set(key, undefined);
    const records = written.map(([key, body]) => ({ id: key.split(" ")[2]!, fields: { body } }));
    await client.post(`/v1/spaces/${space}/upsert`, { objectId: holder, dataset: world.dataset, records }, 200);
    for (const [key, body] of written) texts.set(key, body);
  } else if (objects.length < 10 || dice < 0.6) {
    if (texts.size >= MOST_TEXTS) return;
    const name = nameOf(world);
    const { id } = await createObject(client, space, named(name));
    texts.set(`${id} prop name`, name);
  } else {
    const key = rng.pick(objects);
    const id = key.split(" ")[0]!;
    texts.set(key, undefined);
    if (dice < 0.9) {
      const name = nameOf(world);
      const body = { patch: { name } };
      const { status } = await client.request("POST", `/v1/spaces/${space}/properties/${id}/set/svc`, { body });
      // A deletion that was not answered may have been done.
      expect([200, 404]).toContain(status);
      if (status === 200) texts.set(key, name);
      else texts.delete(key);
    } else if ((await client.request("DELETE", `/v1/spaces/${space}/objects/${id}`)).status === 204) texts.delete(key);
  }
}

function expectTruth(world: World, before: World["texts"], { hits, incomplete, vectorStatus }: SearchAnswer): void {
  if (incomplete) return;
  world.whole++;
  const lists = vectorStatus === "used" ? ["fts", "vector"] : ["fts"];
  const found = new Map(hits.map((hit) => [`${hit.objectId} ${hit.dataset} ${hit.recordId}`, hit]));
  for (const [key, text] of before) {
    if (text === undefined || world.texts.get(key) !== text) continue;
    expect([key, found.get(key)?.data, found.get(key)?.foundBy]).toEqual([key, text, lists as ("fts" | "vector")[]]);
  }
}

interface Disturbance {
  /** Called again and again, beside all else. */
  disturb(): Promise<void>;
  /** Called last, while writes and searches are under way. */
  end(): Promise<void>;
}

/** Writes and searches side by side for so long. */
async function live(server: RunningServer, world: World, rng: Rng, lengthMs: number, disturbance?: Disturbance) {
  const { client } = server;
  let isOver = false;
  const ending = async (): Promise<void> => {
    await pace(lengthMs);
    isOver = true;
    await disturbance?.end();
  };
  /** What fails because the server was killed is no fault. */
  const spared = <T>(work: Promise<T>): Promise<T | undefined> =>
    work.catch((error: unknown) => {
      if (isOver) return undefined;
      throw error;
    });
  const write = async (): Promise<void> => {
    while (!isOver) {
      await spared(writeOne(client, world, rng));
      if (rng.chance(0.2)) await pace(rng.int(0, 100));
    }
  };
  const ask = async (): Promise<void> => {
    while (!isOver) {
      const before = new Map(world.texts);
      const body = { ...EVERYTHING, mode: rng.pick(["fts", "hybrid"]) };
      const reply = await spared(client.request("POST", `/v1/spaces/${world.space}/search`, { body }));
      if (reply === undefined) continue;
      // Whose process is killed twice under one search is told so.
      expect([200, 503]).toContain(reply.status);
      if (reply.status === 200) expectTruth(world, before, reply.json as unknown as SearchAnswer);
    }
  };
  const disturbing = async (): Promise<void> => {
    while (!isOver) await disturbance?.disturb();
  };
  await Promise.all([ending(), write(), ask(), ...(disturbance ? [disturbing()] : [])]);
}

function killChild(server: RunningServer, mode: string): void {
  for (const pid of childrenOf(server.pid, mode)) process.kill(pid, "SIGKILL");
}

async function expectWholeAnswer(client: Client, world: World, mode: "fts" | "hybrid"): Promise<void> {
  const before = new Map(world.texts);
  const isWhole = ({ vectorStatus, incomplete }: SearchAnswer): boolean =>
    !incomplete && vectorStatus === (mode === "fts" ? "skipped" : "used");
  expectTruth(world, before, await searchUntil(client, world.space, { ...EVERYTHING, mode }, isWhole, 60_000));
}

const ROUNDS = rounds(3);
const onProcesses = skipUnless(process.platform === "linux", "children are found in /proc");

onProcesses(
  "[SEARCH-3] nothing is lacking of an answer that does not say `incomplete`, while indexing and the server are killed and datasets declared",
  async () => {
    const rng = createRng(runSeed("search-incomplete"));
    await using endpoint = startEmbeddingEndpoint([[QUERY]]);
    using root = scratchDir("svc-search-incomplete");
    const env = embeddingBy(endpoint);
    let world: World | undefined;
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServer({ dataDir: root.path, env, bootstrapped: false });
      if (world) await expectWholeAnswer(server.client, world, "fts");
      else world = await makeWorld(server.client, "lantern ".repeat(200));
      await live(server, world, rng, rng.int(400, 1_000), {
        disturb: async () => {
          await pace(rng.int(20, 400));
          killChild(server, "__index");
        },
        end: () => server.kill(),
      });
    }
    await using last = await startServer({ dataDir: root.path, env });
    await expectWholeAnswer(last.client, world!, "hybrid");
    console.log(`search incomplete: ${world!.whole} whole answers, ${world!.texts.size} texts`);
  },
  60_000 + ROUNDS * 5_000,
);

skipUnlessGiven(hasModels && process.platform === "linux", NO_MODELS)(
  "[SEARCH-3] nor where the process that embeds is killed over a real model",
  async () => {
    const rng = createRng(runSeed("search-incomplete-model"));
    await using server = await startServer({ env: { SVC_INDEX_EMBEDDER: "auto" } });
    placeModel(server.dataDir, ENGLISH_MODEL);
    const world = await makeWorld(server.client, "");
    for (let round = 0; round < ROUNDS - 1; round++) {
      await live(server, world, rng, rng.int(300, 900));
      killChild(server, "__embed");
      if (rng.chance(0.5)) killChild(server, "__index");
    }
    await expectWholeAnswer(server.client, world, "hybrid");
    expect(server.stderr()).not.toMatch(/found by its words alone/);
    console.log(`search incomplete: ${world.whole} whole answers, ${world.texts.size} texts`);
  },
  60_000 + ROUNDS * 10_000,
);

rule(
  "[SEARCH-3] an executable that is replaced while it runs goes on with processes of its own build",
  async () => {
    using scratch = scratchDir("svc-search-replaced");
    const binary = join(scratch.path, "svc");
    copyFileSync(BINARY, binary);
    await using server = await startServer({ binary });
    const { client } = server;
    const space = (await createSpace(client)).id;
    await createObject(client, space, named("written before"));
    const idOf = (answer: SearchAnswer) => answer.hits.map((hit) => hit.data);
    expect(idOf(await searchWhole(client, space, { query: "before" }))).toEqual(["written before"]);
    for (const [name, other] of [
      ["half of a build", "#!/bin/sh\nexit 1\n"],
      ["nothing", undefined],
    ] as const) {
      rmSync(binary, { force: true });
      if (other !== undefined) writeFileSync(binary, other, { mode: 0o755 });
      killChild(server, "__index");
      await createObject(client, space, named(name));
      expect(idOf(await searchWhole(client, space, { query: name }))).toEqual([name]);
    }
  },
  30_000,
);

rule(
  "[SEARCH-3] the process that indexes starts for much that was written at once, for little a while later, and nobody has to search",
  async () => {
    for (const count of [1, 200]) {
      await using server = await startServer();
      const { client } = server;
      const items = await createCollection(client, (await createSpace(client)).id);
      await items.modify(Array.from({ length: count }, (_, n) => setFields(`r${n}`, { n })));
      expect(childrenOf(server.pid, "__index")).toEqual([]);
      await until(async () => childrenOf(server.pid, "__index").length === 1, `the process, for ${count} records`);
    }
  },
);
