/**
 * Invariant: a crash loses nothing that was acknowledged, leaves nothing half applied, and no version is handed out
 * twice. Parallel writers keep a journal; the server is killed with SIGKILL at random moments, while it works and
 * while it boots; after each restart the journal is checked through the API and the files by SQLite itself.
 */
import { describe, expect } from "bun:test";
import { pace } from "../support/pace.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { Client } from "../support/server/client.ts";
import {
  type Collection,
  createCollection,
  createSpace,
  creationVersion,
  openCollection,
  setFields,
} from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { checkCopiedDatabases, checkDatabases } from "./database-check.ts";
import { createJournal, type Journal, verify } from "./journal.ts";
import { startWriters } from "./writers.ts";

const ALL_ROUNDS = rounds(50);
/** A data root lives through so many: each round makes spaces, and every start opens all of them. */
const ROUNDS = Math.min(ALL_ROUNDS, 25);
const firstSeed = runSeed("crash");

describe("SIGKILL at random moments", () => {
  for (let life = 0; life * ROUNDS < ALL_ROUNDS; life++)
    rule(
      `[STORE-6] data root ${life}, ${ROUNDS} rounds: every acknowledged write is there, nothing is half applied, no version is reused`,
      async () => {
        const rng = createRng((firstSeed + life) >>> 0);
        const root = scratchDir("svc-crash");
        using _ = root;
        const journal = createJournal();
        const items = await prepare(root.path);
        let acknowledged = 0;
        for (let round = 0; round < ROUNDS; round++) {
          if (rng.chance(0.2)) await killDuringBoot(root.path, rng);
          acknowledged += await killWhileWriting(root.path, items, journal, rng, round);
          if (round % 6 === 5) expect(checkCopiedDatabases(root.path)).toEqual([]);
        }
        const last = await startServer({ dataDir: root.path });
        expect(await verify(last.client, items, journal, { everySpace: true })).toEqual([]);
        expect(await last.stop()).toBe(0);
        expect(checkDatabases(root.path)).toEqual([]);
        console.log(
          `crash: ${ROUNDS} kills, ${acknowledged} acknowledged writes, ${journal.changeIds.size} change ids`,
        );
        expect(acknowledged).toBeGreaterThan(ROUNDS * 5);
      },
      Math.max(480_000, ROUNDS * 12_000),
    );
});

rule("[STORE-6] the checker itself finds what is lost, half applied, revived or handed out twice", async () => {
  await using server = await startServer();
  const space = await createSpace(server.client);
  const items = await createCollection(server.client, space.id);
  await items.modify([setFields("g-half-0", { s: "half" }), setFields("g-back-0", { s: "back" })]);
  await items.modify([{ id: "count", upsert: true, ops: [{ type: "$set", value: { n: 2, t: [1] } }] }]);
  const journal = createJournal();
  journal.groupsByToken.set("gone", { ids: ["g-gone-0"], fate: "kept" });
  journal.groupsByToken.set("half", { ids: ["g-half-0", "g-half-1"], fate: "sent" });
  journal.groupsByToken.set("back", { ids: ["g-back-0"], fate: "lost" });
  journal.countersById.set("count", { acknowledged: 3, sent: 3 });
  journal.deletedById.set("g-half-9", "kept");
  journal.objectsByName.set("obj-gone", { fate: "kept" });
  journal.spacesByName.set("space-gone", { fate: "kept" });
  for (const id of ["c1", "c1"]) journal.acknowledgeChange(id);
  const faults = (await verify(server.client, items, journal)).join("\n");
  for (const part of [
    "gone: acknowledged",
    "half: 1 of 2",
    "back: came back",
    "shares its version",
    "count: 2",
    "lists 1",
    "obj-gone",
    "space-gone",
    "c1 was handed out twice",
  ]) {
    expect(faults).toContain(part);
  }
});

async function prepare(dataDir: string): Promise<Collection> {
  await using server = await startServer({ dataDir });
  const space = await createSpace(server.client, "the space under test");
  const items = await createCollection(server.client, space.id);
  await server.stop();
  return items;
}

/** One round: start, check what the last kill left, write in parallel, kill. Returns the number of acknowledgements. */
async function killWhileWriting(
  dataDir: string,
  items: Collection,
  journal: Journal,
  rng: Rng,
  round: number,
): Promise<number> {
  const server = await startServer({ dataDir, bootstrapped: rng.chance(0.5) });
  try {
    expect({ round, faults: await verify(server.client, items, journal) }).toEqual({ round, faults: [] });
    await expectHigherVersions(server.client, items, journal, round);
    const writers = startWriters(server.client, items, journal, rng);
    const untilAcknowledged = async (wanted: number): Promise<void> => {
      const deadline = Date.now() + 5_000;
      while (writers.acknowledged() < wanted && Date.now() < deadline) await Bun.sleep(0);
    };
    if (rng.chance(0.3)) await untilAcknowledged(rng.int(1, 25));
    else {
      // At any moment, in one round of five perhaps before anything was acknowledged. A slow machine does its work first.
      if (rng.chance(0.8)) await untilAcknowledged(8);
      await pace(rng.int(20, 130));
    }
    await server.kill();
    writers.stop();
    await writers.done;
    return writers.acknowledged();
  } finally {
    await server.kill();
  }
}

/** The first write after a restart sorts after everything that was written before it. */
async function expectHigherVersions(client: Client, items: Collection, journal: Journal, round: number): Promise<void> {
  const collection = openCollection(client, items);
  const newest = (await collection.query({ sort: ["-_ver.id"], limit: 1 })).records[0];
  const id = `probe-${round}`;
  const result = await collection.modify([{ id, upsert: true, ops: [{ type: "$set", path: "n", value: round }] }]);
  journal.acknowledgeChange(result.changeId);
  const probe = await collection.find(id);
  if (newest) expect(creationVersion(probe) > creationVersion(newest)).toBe(true);
}

/** Kills a server some milliseconds after it was spawned, before or just after it listens. */
async function killDuringBoot(dataDir: string, rng: Rng): Promise<void> {
  const delayMs = rng.int(2, 80);
  const started = startServer({
    dataDir,
    account: false,
    onSpawn: (child) => void pace(delayMs).then(() => child.kill()),
  }).catch(() => undefined); // killed before LISTENING: that is the case under test
  const server = await started;
  await server?.exited;
}
