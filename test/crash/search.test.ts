/**
 * Invariant: the index stands at some earlier place after a crash, and goes on from there: nothing that was written is
 * missing from it for good, nothing that was deleted stays in it. And it is a function of the space alone: made anew from
 * nothing it gives the same hits in the same order.
 */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { indexDirectory, search, searchUntil } from "../support/models/search.ts";
import { pace } from "../support/pace.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { Client } from "../support/server/client.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const ROUNDS = rounds(30);
const WORDS = "otter walrus harbour storm lantern violin meadow 図書館 天気 โรงพยาบาล café createServer".split(" ");

interface World {
  readonly space: string;
  /** Names of the objects that are there, by id; undefined where it is not known whether the last write was taken. */
  readonly names: Map<string, string | undefined>;
  readonly gone: Set<string>;
  nextToken: number;
}

describe("the search index", () => {
  rule(
    `[SEARCH-3] ${ROUNDS} rounds of SIGKILL: it lacks nothing, holds nothing that is gone, and made anew is the same`,
    async () => {
      const rng = createRng(runSeed("search-crash"));
      using root = scratchDir("svc-search-crash");
      const first = await startServer({ dataDir: root.path });
      const world: World = {
        space: (await createSpace(first.client)).id,
        names: new Map(),
        gone: new Set(),
        nextToken: 0,
      };
      await first.stop();
      for (let round = 0; round < ROUNDS; round++) {
        const server = await startServer({ dataDir: root.path, bootstrapped: false });
        await search(server.client, world.space, { query: "storm" }); // the kill is to meet the process that indexes
        const until = performance.now() + 100 + rng.next() * 300;
        const writing = write(server.client, world, rng, until).catch(() => undefined);
        await pace(until - performance.now() - rng.next() * 80);
        await server.kill();
        await writing;
      }
      const last = await startServer({ dataDir: root.path });
      const grown = await answers(last.client, world);
      await expectNamesFound(last.client, world);
      await last.stop();
      expect(integrity(indexDirectory(root.path))).toEqual([]);

      rmSync(indexDirectory(root.path), { recursive: true });
      const anew = await startServer({ dataDir: root.path });
      expect(await answers(anew.client, world)).toEqual(grown);
      await anew.stop();
      console.log(`search crash: ${ROUNDS} kills, ${world.names.size} objects, ${world.gone.size} deleted`);
      expect(world.names.size).toBeGreaterThan(ROUNDS);
    },
    400_000,
  );
});

const nameOf = (world: World, rng: Rng): string => `${rng.pick(WORDS)} ${rng.pick(WORDS)} token${world.nextToken++}`;

/** Creates, renames and deletes, until the server is gone. */
async function write(client: Client, world: World, rng: Rng, until: number): Promise<void> {
  const { space, names, gone } = world;
  while (performance.now() < until + 1_000) {
    const ids = [...names.keys()];
    const dice = rng.next();
    if (ids.length < 5 || dice < 0.5) {
      const name = nameOf(world, rng);
      const { id } = await createObject(client, space, named(name));
      names.set(id, name);
    } else if (dice < 0.8) {
      const id = rng.pick(ids);
      const name = nameOf(world, rng);
      names.set(id, undefined);
      await client.post(`/v1/spaces/${space}/properties/${id}/set/svc`, { patch: { name } }, 200);
      names.set(id, name);
    } else {
      const id = rng.pick(ids);
      names.set(id, undefined);
      const reply = await client.request("DELETE", `/v1/spaces/${space}/objects/${id}`);
      if (reply.status !== 204) continue;
      names.delete(id);
      gone.add(id);
    }
  }
}

async function answers(client: Client, { space }: World): Promise<unknown[]> {
  await searchUntil(client, space, { query: "otter" }, (answer) => !answer.incomplete, 60_000);
  const found: unknown[] = [];
  for (const word of WORDS) {
    const { hits } = await search(client, space, { query: `${word} storm`, limit: 100 });
    found.push(hits.map(({ objectId, recordId, data, score }) => [objectId, recordId, data, score]));
  }
  return found;
}

/** Every acknowledged name is found by its own token; no deleted object is found by anything. */
async function expectNamesFound(client: Client, { space, names, gone }: World): Promise<void> {
  for (const [id, name] of names) {
    if (name === undefined) continue;
    const { hits } = await search(client, space, { query: name.split(" ").at(-1)! });
    expect([name, hits.map((hit) => hit.objectId)]).toEqual([name, [id]]);
  }
  for (const word of WORDS) {
    const { hits } = await search(client, space, { query: word, limit: 100 });
    expect(hits.filter((hit) => gone.has(hit.objectId))).toEqual([]);
  }
}

/** What SQLite and FTS5 find wrong with the files. */
function integrity(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(".db"))
    .flatMap((name) => {
      const db = new Database(join(directory, name));
      try {
        const rows = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
        db.exec("INSERT INTO ft(ft) VALUES('integrity-check')");
        return rows.map((row) => row.integrity_check).filter((line) => line !== "ok");
      } catch (error) {
        return [String(error)];
      } finally {
        db.close();
      }
    });
}
