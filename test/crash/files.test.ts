/**
 * Invariant: a crash loses no file that was acknowledged, leaves no row without its bytes, and what it leaves on the disk that
 * nothing names is swept. Uploads, backups, fetches, deletions, offloads and sweeps run at once; the server is killed with
 * SIGKILL at random moments; after each restart every acknowledged file is read.
 */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { pace } from "../support/pace.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type Client, until } from "../support/server/client.ts";
import { attach, bytesOf, content, type FileInfo, filesPath } from "../support/server/files.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

const ROUNDS = rounds(50);
const DAY_MS = 24 * 60 * 60 * 1000;
/** Of the files that were read after a restart before, so many are read again after each. */
const FILES_READ_AGAIN = 10;

interface Known {
  readonly size: number;
  readonly seed: number;
  fate: "kept" | "deleting";
}
interface World {
  readonly spaceId: string;
  readonly objectId: string;
  readonly filesById: Map<string, Known>;
  /** Ids of files that were read after some restart. */
  readonly readFiles: Set<string>;
  sent: number;
}

const placeOf = (root: string, spaceId: string, ...below: string[]): string =>
  join(root, readdirSync(root).find((name) => name.startsWith("A"))!, ...below, spaceId);

describeWithNats("files and SIGKILL", () => {
  rule(
    `[STORE-6] [FILE-4] ${ROUNDS} rounds: every acknowledged file gives its bytes, no row lacks them, no orphan survives a sweep`,
    async () => {
      await using nats = await startNats();
      const root = scratchDir("svc-crash-files");
      using _ = root;
      const rng = createRng(runSeed("crash of files"));
      const open = () => startServer({ dataDir: root.path, env: { SVC_NETWORK_URL: nats.url } });
      await using first = await open();
      const space = await createSpace(first.client);
      const world: World = {
        spaceId: space.id,
        objectId: (await createObject(first.client, space.id)).id,
        filesById: new Map(),
        readFiles: new Set(),
        sent: 0,
      };
      await first.stop();
      for (let round = 0; round < ROUNDS; round++) {
        await using server = await open();
        expect({ round, faults: await faultsOf(server.client, world) }).toEqual({ round, faults: [] });
        const work = beBusy(server, world, rng);
        await pace(rng.int(20, 150));
        await server.kill();
        await work;
      }
      await using last = await open();
      expect(await faultsOf(last.client, world, Number.POSITIVE_INFINITY)).toEqual([]);
      expect(world.sent).toBeGreaterThan(ROUNDS);
      await untilDurable(last.client, world);
      await last.client.post("/v1/files/cache/sweep", undefined, 204);
      await last.stop();

      agedByADay(root.path, world.spaceId);
      await using swept = await open();
      await swept.client.post("/v1/files/cache/sweep", undefined, 204);
      expect(await faultsOf(swept.client, world, Number.POSITIVE_INFINITY)).toEqual([]);
      const named = new Set((await listed(swept.client, world)).map(({ rootCid }) => rootCid));
      const left = readdirSync(placeOf(root.path, world.spaceId, "files")).filter(
        (name) => !named.has(name.replace(/\.(hashes|part|have)$/, "")),
      );
      expect(left).toEqual([]);
      await swept.stop();
      console.log(`crash of files: ${ROUNDS} kills, ${world.sent} uploads begun, ${world.filesById.size} files kept`);
    },
    400_000,
  );
});

const listed = async (client: Client, world: World): Promise<FileInfo[]> =>
  (await client.get<{ files: FileInfo[] }>(filesPath(world.spaceId))).files;

/**
 * What is wrong with what the server has, by the journal and by its own listing. Of the files that gave their bytes before, some
 * are read by turns, or all.
 */
async function faultsOf(client: Client, world: World, atMost = FILES_READ_AGAIN): Promise<string[]> {
  const faults: string[] = [];
  const { readFiles } = world;
  const rows = new Map((await listed(client, world)).map((info) => [info.fileId, info]));
  for (const [fileId, known] of world.filesById) {
    const info = rows.get(fileId);
    if (!info && known.fate === "deleting") world.filesById.delete(fileId);
    else if (!info) faults.push(`${fileId}: acknowledged, and not listed`);
  }
  // Those that were read longest ago come first.
  const again = [...readFiles].flatMap((fileId) => rows.get(fileId) ?? []).slice(0, atMost);
  for (const info of [...[...rows.values()].filter(({ fileId }) => !readFiles.has(fileId)), ...again]) {
    readFiles.delete(info.fileId);
    readFiles.add(info.fileId);
    const got = await content(client, world.spaceId, info.fileId);
    const known = world.filesById.get(info.fileId);
    if (got.status !== 200 || got.bytes.length !== info.size)
      faults.push(`${info.fileId}: ${got.status}, not its bytes`);
    else if (known && Buffer.compare(got.bytes, bytesOf(known.size, known.seed)) !== 0)
      faults.push(`${info.fileId}: other bytes`);
  }
  return faults;
}

/** What is left of it is said with what its backup says. */
async function untilDurable(client: Client, world: World): Promise<void> {
  let left: object[] = [];
  const isDone = async (): Promise<boolean> => {
    left = [];
    for (const info of await listed(client, world))
      if (!info.durable)
        left.push({ ...info, ...(await client.get<object>(`${filesPath(world.spaceId)}/${info.fileId}/status`)) });
    return left.length === 0;
  };
  await until(isDone, "all to be durable", 60_000).catch((error: unknown) => {
    throw new Error(`${error}: ${JSON.stringify(left)}`);
  });
}

/** Works until the server is gone; answers when nothing is under way any more. */
async function beBusy(server: RunningServer, world: World, rng: Rng): Promise<void> {
  const { client } = server;
  let over = false;
  void server.exited.then(() => {
    over = true;
  });
  const lane = async (step: () => Promise<unknown>): Promise<void> => {
    // Whatever fails does so because the server was killed: what it had acknowledged is in the journal.
    while (!over) await step().catch(() => pace(5));
  };
  const upload = async (): Promise<void> => {
    const seed = ++world.sent;
    const size = rng.pick([rng.int(0, 4095), rng.int(4096, 200_000), rng.int(500_000, 2_000_000)]);
    const { fileId } = await attach(client, world.spaceId, world.objectId, bytesOf(size, seed));
    world.filesById.set(fileId, { size, seed, fate: "kept" });
  };
  const pick = (): string | undefined => {
    const ids = [...world.filesById.keys()];
    return ids.length === 0 ? undefined : rng.pick(ids);
  };
  const churn = async (): Promise<void> => {
    await pace(rng.int(1, 30));
    const fileId = pick();
    if (fileId === undefined) return;
    const path = `${filesPath(world.spaceId)}/${fileId}`;
    if (world.filesById.size > 40 || rng.chance(0.2)) {
      world.filesById.get(fileId)!.fate = "deleting";
      await client.request("DELETE", path);
    } else if (rng.chance(0.5)) await client.request("POST", `${path}/offload`);
    else await content(client, world.spaceId, fileId);
  };
  const sweep = async (): Promise<void> => {
    await pace(rng.int(10, 80));
    await client.request("POST", "/v1/files/cache/sweep");
    await client.request("POST", "/v1/files/cache/free", { body: { bytes: 1_000_000 } });
  };
  await Promise.all([lane(upload), lane(upload), lane(churn), lane(churn), lane(sweep)]);
}

/** Makes what nothing names look as if a day had passed for it. */
function agedByADay(root: string, spaceId: string): void {
  const db = new Database(`${placeOf(root, spaceId, "sdk")}.db`);
  db.run(
    `UPDATE file_contents SET orphan_ms = ${DAY_MS} WHERE root NOT IN (SELECT root FROM file_refs WHERE root IS NOT NULL)`,
  );
  db.close();
}
