/** Replicas that write at random and meet now and then, with what each written version's records were where it was written. */
import { afterAll, beforeAll, expect } from "bun:test";
import type { RecordChange } from "../../../src/change/codec/change-body.ts";
import type { HistoryChange, HistoryDiff, HistoryQuery } from "../../../src/protocol/history.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";
import { createRng, type Rng, runSeed } from "../rng.ts";
import { scratchDir } from "../scratch.ts";
import { batches, randomRecords } from "./history.ts";
import { type HistoryReplica, LOCAL_FIELD, openHistoryReplica } from "./history-replica.ts";
import { createRights } from "./open-engine.ts";
import { createAuthor } from "./schema-replica.ts";

export type Records = Record<string, Record<string, JsonObject>>;

export const SHOWN = ["auto", "items", "objects"];
export const firstSeed = runSeed("history");

/** What the rows of the object are now, without what only this device has. */
export function recordsNow(replica: HistoryReplica, objectId: string): Records {
  const { engine } = replica;
  const object = engine.object(objectId)!;
  const records: Records = {};
  for (const dataset of SHOWN) {
    const collectionId = engine.collectionIdOf(object, dataset);
    const rows = engine.store.db
      .query<{ id: string; doc: string }, [number, string]>(
        "SELECT id, doc FROM rows WHERE collectionId = ? AND state > 0 AND (collectionId > 0 OR id = ?)",
      )
      .all(collectionId ?? -1, objectId);
    for (const { id, doc } of rows) {
      const record = JSON.parse(doc) as JsonObject;
      delete record[LOCAL_FIELD];
      records[dataset] ??= {};
      records[dataset][id] = record;
    }
  }
  return records;
}

export async function viewOf(replica: HistoryReplica, objectId: string, version: string): Promise<Records> {
  const view = JSON.parse(await replica.history.view(objectId, version)) as {
    version: string;
    datasets: { dataset: string; records: (JsonObject & { id: string })[] }[];
  };
  const records: Records = {};
  for (const { dataset, records: list } of view.datasets) {
    expect(list.length).toBeGreaterThan(0);
    records[dataset] = Object.fromEntries(list.map((record) => [record.id, record]));
  }
  return records;
}

/** Leaves of the live records by dataset, id and path, without what a diff leaves out. */
export function leaves(records: Records): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (value: unknown, path: string[]) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0) {
      for (const [key, below] of Object.entries(value)) walk(below, [...path, key]);
    } else found.set(JSON.stringify(path), JSON.stringify(value));
  };
  for (const [dataset, byId] of Object.entries(records)) {
    for (const [id, record] of Object.entries(byId)) {
      if ("_deletedAt" in record) continue;
      found.set(JSON.stringify([dataset, id]), "here");
      for (const [key, value] of Object.entries(record)) {
        if (key !== "id" && !key.startsWith("_") && !(dataset === "objects" && key === "modifiedAt"))
          walk(value, [dataset, id, key]);
      }
    }
  }
  return found;
}

/** Applies a diff to leaves; what it says was there before must have been. */
export function applied(base: ReadonlyMap<string, string>, diff: HistoryDiff): Map<string, string> {
  const result = new Map(base);
  for (const { dataset, records } of diff.datasets) {
    expect(records.length).toBeGreaterThan(0);
    for (const { id, kind, fields = [] } of records) {
      const record = JSON.stringify([dataset, id]);
      expect(result.has(record)).toBe(kind !== "added");
      if (kind === "deleted") result.delete(record);
      else result.set(record, "here");
      for (const { path, before, after } of fields) {
        const key = JSON.stringify([dataset, id, ...path]);
        expect(result.get(key)).toBe(before === undefined ? undefined : JSON.stringify(before));
        if (after === undefined) result.delete(key);
        else result.set(key, JSON.stringify(after));
      }
    }
  }
  return result;
}

export async function listAll(
  replica: HistoryReplica,
  objectId: string,
  query: HistoryQuery,
): Promise<HistoryChange[]> {
  const all: HistoryChange[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await replica.history.list(objectId, { ...query, ...(cursor ? { cursor } : {}) });
    all.push(...page.changes);
    if (!page.cursor) return all;
    expect(page.changes.length).toBeGreaterThan(0);
    cursor = page.cursor;
  }
}

export async function exchange(rng: Rng, from: HistoryReplica, to: HistoryReplica, dropRate: number): Promise<void> {
  const packets = (await from.packets()).filter(() => !rng.chance(dropRate));
  for (const batch of batches(rng, rng.chance(0.5) ? rng.shuffle(packets) : packets)) await to.ingest(batch);
}

export async function heal(rng: Rng, replicas: readonly HistoryReplica[]): Promise<void> {
  for (let round = 0; round < 2; round++) {
    for (const from of replicas) for (const to of replicas) if (from !== to) await exchange(rng, from, to, 0);
  }
}

/** A database that was written before there was a history table: the boot pass folds its objects anew. */
export async function indexAnew({ engine }: HistoryReplica): Promise<void> {
  await engine.idle();
  engine.store.db.exec(
    "DELETE FROM history; DELETE FROM history_traces; UPDATE objects SET projection = projection - 1",
  );
  expect(await engine.rebuildProjection("stale")).toBeGreaterThan(0);
}

export interface World {
  rng: Rng;
  replicas: HistoryReplica[];
  rights: ReturnType<typeof createRights>;
  objectId: string;
  /** What each written version's records were where it was written, and before it. */
  written: { version: string; author: string; records: Records; before: Records; traceIds: string[] }[];
}

export async function writeSomething(world: World, replica: HistoryReplica): Promise<void> {
  const { rng, objectId } = world;
  const before = recordsNow(replica, objectId);
  const dataset = rng.pick(["items", "items", "items", "items", "auto", "quiet", "objects"]);
  let records: RecordChange[];
  if (dataset === "objects") {
    records = [{ id: objectId, ops: [{ type: "$set", path: "svc.name", value: `n${rng.int(0, 99)}` }] }];
  } else if (dataset === "auto") {
    const known = Object.keys(before["auto"] ?? {});
    records = Array.from({ length: rng.int(1, 3) }, () =>
      known.length > 0 && rng.chance(0.5)
        ? { id: rng.pick(known), ops: [{ type: "$inc", path: "n", value: 1 }] }
        : { id: "", upsert: true, ops: [{ type: "$set", path: "n", value: rng.int(0, 9) }] },
    );
  } else if (dataset === "items" && rng.chance(0.05)) {
    records = [{ id: `r${rng.int(0, 3)}`, delete: true, ops: [] }];
  } else {
    records = randomRecords(rng, 4).map((record) => ({
      ...record,
      ops: record.ops.map((op) => ({ ...op, path: op.path ?? "" })),
    })) as RecordChange[];
  }
  const traceIds = rng.chance(0.3) ? [`t${rng.int(0, 3)}`] : [];
  const version = await replica.write(objectId, dataset, records, traceIds);
  world.written.push({ version, author: replica.author, before, records: recordsNow(replica, objectId), traceIds });
}

export async function createWorld(rng: Rng, dir: string, count: number): Promise<World> {
  let now = Date.UTC(2026, 0, 31);
  const rights = createRights();
  const replicas = Array.from({ length: count }, (_, index) =>
    openHistoryReplica({
      dir,
      name: `replica-${index}`,
      author: createAuthor(1 + (index % 2)),
      now: () => (now += 1000),
      rights,
    }),
  );
  const objectId = await replicas[0]!.createObject();
  await heal(rng, replicas);
  return { rng, replicas, rights, objectId, written: [] };
}

/** In one history of five everything is about one record and long enough to pass the fold's checkpoints. */
async function runHistory(rng: Rng, dir: string): Promise<World> {
  const long = rng.chance(0.2);
  const world = await createWorld(rng, dir, rng.int(2, 3));
  const steps = long ? rng.int(150, 300) : rng.int(15, 60);
  for (let step = 0; step < steps; step++) {
    const actor = rng.pick(world.replicas);
    const other = rng.pick(world.replicas.filter((replica) => replica !== actor));
    if (rng.chance(0.75)) await writeSomething(world, actor);
    else if (rng.chance(0.2)) await actor.setLocal(world.objectId, "items", `r${rng.int(0, 3)}`, `m${step}`);
    else await exchange(rng, actor, other, rng.pick([0, 0.2]));
  }
  return world;
}

/** A history of the tests of a group, at the end of which every replica has everything. */
export function useHistory(label: string): () => World {
  const dir = scratchDir("svc-history");
  let world: World | undefined;
  beforeAll(async () => {
    const rng = createRng(firstSeed).fork(label);
    world = await runHistory(rng, dir.path);
    await heal(rng, world.replicas);
  }, 120_000);
  afterAll(async () => {
    for (const replica of world?.replicas ?? []) await replica.close();
    dir[Symbol.dispose]();
  });
  return () => {
    if (!world) throw new Error("the history of this group is not written yet");
    return world;
  };
}

export async function withHistory(label: string, run: (world: World) => Promise<void>): Promise<void> {
  const rng = createRng(firstSeed).fork(label);
  using dir = scratchDir("svc-history");
  const world = await runHistory(rng, dir.path);
  try {
    await run(world);
  } finally {
    for (const replica of world.replicas) await replica.close();
  }
}
