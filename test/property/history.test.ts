/**
 * Random histories over replicas that meet now and then. What each replica's records were when it wrote is the view at
 * the version it wrote, on every replica, whatever else came in between; and diffs lead from one version to another.
 */
import { expect } from "bun:test";
import type { RecordChange } from "../../src/change/codec/change-body.ts";
import { changeIdOf, stubOf } from "../../src/change/codec/change-stub.ts";
import { cidFromDigest } from "../../src/crypto/cid.ts";
import type { HistoryChange, HistoryDiff, HistoryQuery } from "../../src/protocol/history.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { batches, randomRecords } from "../support/history.ts";
import { type HistoryReplica, LOCAL_FIELD, openHistoryReplica } from "../support/history-replica.ts";
import { createRights } from "../support/open-engine.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { createAuthor } from "../support/schema-replica.ts";
import { scratchDir } from "../support/scratch.ts";

type Records = Record<string, Record<string, JsonObject>>;

const SHOWN = ["auto", "items", "objects"];
const firstSeed = runSeed("history");

/** What the rows of the object are now, without what only this device has. */
function recordsNow(replica: HistoryReplica, objectId: string): Records {
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

async function viewOf(replica: HistoryReplica, objectId: string, version: string): Promise<Records> {
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
function leaves(records: Records): Map<string, string> {
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
function applied(base: ReadonlyMap<string, string>, diff: HistoryDiff): Map<string, string> {
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

async function listAll(replica: HistoryReplica, objectId: string, query: HistoryQuery): Promise<HistoryChange[]> {
  const all: HistoryChange[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await replica.history.list(objectId, { ...query, ...(cursor ? { cursor } : {}) });
    all.push(...page.changes);
    if (!page.cursor) return all;
    expect(page.changes.length).toBeGreaterThan(0);
    cursor = page.cursor;
  }
}

async function exchange(rng: Rng, from: HistoryReplica, to: HistoryReplica, dropRate: number): Promise<void> {
  const packets = (await from.packets()).filter(() => !rng.chance(dropRate));
  for (const batch of batches(rng, rng.chance(0.5) ? rng.shuffle(packets) : packets)) await to.ingest(batch);
}

async function heal(rng: Rng, replicas: readonly HistoryReplica[]): Promise<void> {
  for (let round = 0; round < 2; round++) {
    for (const from of replicas) for (const to of replicas) if (from !== to) await exchange(rng, from, to, 0);
  }
}

/** A database that was written before there was a history table: the boot pass folds its objects anew. */
async function indexAnew({ engine }: HistoryReplica): Promise<void> {
  await engine.idle();
  engine.store.db.exec(
    "DELETE FROM history; DELETE FROM history_traces; UPDATE objects SET projection = projection - 1",
  );
  expect(await engine.rebuildProjection("stale")).toBeGreaterThan(0);
}

interface World {
  rng: Rng;
  replicas: HistoryReplica[];
  rights: ReturnType<typeof createRights>;
  objectId: string;
  /** What each written version's records were where it was written, and before it. */
  written: { version: string; author: string; records: Records; before: Records; traceIds: string[] }[];
}

async function writeSomething(world: World, replica: HistoryReplica): Promise<void> {
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

async function createWorld(rng: Rng, dir: string, count: number): Promise<World> {
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

async function withHistory(label: string, run: (world: World) => Promise<void>): Promise<void> {
  const rng = createRng(firstSeed).fork(label);
  using dir = scratchDir("svc-history");
  const world = await runHistory(rng, dir.path);
  try {
    await run(world);
  } finally {
    for (const replica of world.replicas) await replica.close();
  }
}

for (let i = 0; i < 25; i++) {
  rule(
    `[history] history ${i}: the view at a version is what its writer had when it wrote it, on every replica`,
    () =>
      withHistory(`views ${i}`, async ({ rng, replicas, objectId, written }) => {
        await heal(rng, replicas);
        if (rng.chance(0.5)) await replicas[1]!.engine.rebuildProjection();
        if (rng.chance(0.5)) await indexAnew(replicas[0]!);
        for (const { version, records } of written) {
          const replica = rng.pick(replicas);
          expect(await viewOf(replica, objectId, version)).toEqual(records);
          const dataset = rng.pick(SHOWN);
          const id = rng.pick([...Object.keys(records[dataset] ?? {}), "r0"]);
          const record = records[dataset]?.[id];
          expect(await replica.history.recordView(objectId, version, dataset, id)).toEqual({
            version,
            dataset,
            recordId: id,
            exists: record !== undefined,
            ...(record && "_deletedAt" in record ? { deleted: true } : {}),
            ...(record ? { record: record as JsonObject & { id: string } } : {}),
          });
        }
      }),
    120_000,
  );

  rule(
    `[history] history ${i}: a diff leads from its base, or from what the version was written upon, to the version`,
    () =>
      withHistory(`diffs ${i}`, async ({ rng, replicas, objectId, written }) => {
        await heal(rng, replicas);
        const replica = rng.pick(replicas);
        for (const { version, records, before } of written) {
          const effect = await replica.history.diff(objectId, { version });
          expect(applied(leaves(before), effect)).toEqual(leaves(records));
          const other = rng.pick(written);
          const between = await replica.history.diff(objectId, { version, base: other.version });
          expect(applied(leaves(other.records), between)).toEqual(leaves(records));
        }
      }),
    120_000,
  );

  rule(
    `[history] history ${i}: every replica lists the same, by pages of any size, and filters choose from it`,
    () =>
      withHistory(`lists ${i}`, async ({ rng, replicas, objectId, written }) => {
        await heal(rng, replicas);
        const [first] = replicas;
        const all = await listAll(first!, objectId, {});
        for (const replica of replicas) expect(await listAll(replica, objectId, { limit: rng.int(1, 9) })).toEqual(all);
        const quiet = new Set<string>();
        for (const { version } of written) if (!all.some((change) => change.version === version)) quiet.add(version);
        expect(all.length).toBe(written.length - quiet.size + 1); // and the one that made the object
        for (const { version, author, traceIds } of written) {
          if (quiet.has(version)) continue;
          expect(all.find((change) => change.version === version)).toMatchObject({ author, groupSize: 1 });
          expect(all.find((change) => change.version === version)!.traceIds ?? []).toEqual(traceIds);
        }
        const isAbout = (change: HistoryChange, dataset: string, id: string) =>
          change.touched!.some((touch) => touch.dataset === dataset && touch.recordId === id);
        for (const dataset of ["items", "auto", "objects", "quiet", "none"]) {
          const those = all.filter((change) => change.dataset === dataset);
          expect(await listAll(first!, objectId, { dataset, limit: 3 })).toEqual(those);
        }
        for (const id of ["r0", "r3", "r9"]) {
          const those = all.filter((change) => isAbout(change, "items", id));
          expect(await listAll(first!, objectId, { dataset: "items", recordId: id, limit: 2 })).toEqual(those);
          const mine = those.filter((change) => change.author === first!.author && change.traceIds?.includes("t1"));
          const query = { dataset: "items", recordId: id, author: first!.author, traceId: "t1" };
          expect(await listAll(first!, objectId, query)).toEqual(mine);
        }
        for (const traceId of ["t0", "t3", "t9"]) {
          const those = all.filter((change) => change.traceIds?.includes(traceId));
          expect(await listAll(first!, objectId, { traceId, limit: 1 })).toEqual(those);
        }
        const theirs = all.filter((change) => change.author !== first!.author);
        const author = replicas[1]!.author;
        expect(await listAll(first!, objectId, { author, limit: 4 })).toEqual(theirs);
      }),
    120_000,
  );

  rule(
    `[history] history ${i}: groups hold every change once, in its place, and their sizes add up`,
    () =>
      withHistory(`groups ${i}`, async ({ rng, replicas, objectId }) => {
        await heal(rng, replicas);
        const all = await listAll(replicas[0]!, objectId, {});
        for (const coalesceWindow of [1, 5, 86_400]) {
          const query = { coalesce: true, coalesceWindow, limit: rng.int(1, 7) };
          const groups = await listAll(replicas[0]!, objectId, query);
          expect(await listAll(replicas[1]!, objectId, query)).toEqual(groups);
          let at = 0;
          for (const group of groups) {
            const members = all.slice(at, at + group.groupSize);
            at += group.groupSize;
            expect(group.version).toBe(members[0]!.version);
            expect(new Set(members.map((member) => member.author))).toEqual(new Set([group.author]));
            expect(group.timestamp - members.at(-1)!.timestamp).toBeLessThanOrEqual(coalesceWindow);
            const touched = new Set(
              members.flatMap((member) => member.touched!.map((touch) => `${touch.dataset} ${touch.recordId}`)),
            );
            expect(new Set(group.touched!.map((touch) => `${touch.dataset} ${touch.recordId}`))).toEqual(touched);
          }
          expect(at).toBe(all.length);
        }
      }),
    120_000,
  );
}

for (let i = 0; i < 10; i++) {
  rule(
    `[history] history ${i}: what does not count is part of no view and of no list, and is again once it counts`,
    () =>
      withHistory(`rights ${i}`, async ({ rng, replicas, rights, objectId, written }) => {
        await heal(rng, replicas);
        const [first, second] = replicas;
        const theirs = createAuthor(2).publicKey;
        const all = await listAll(first!, objectId, {});
        rights.deny(theirs);
        await first!.engine.recheckVerdicts();
        const left = await listAll(first!, objectId, {});
        expect(left).toEqual(all.filter((change) => change.author !== second!.author));
        const merge = await first!.write(objectId, "items", [
          { id: "r0", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] },
        ]);
        expect(await viewOf(first!, objectId, merge)).toEqual(recordsNow(first!, objectId));
        rights.allow(theirs);
        await first!.engine.recheckVerdicts();
        expect(await viewOf(first!, objectId, merge)).toEqual(recordsNow(first!, objectId));
        expect((await listAll(first!, objectId, {})).slice(1)).toEqual(all);
        for (const { version, records } of written) expect(await viewOf(first!, objectId, version)).toEqual(records);
      }),
    120_000,
  );
}

rule(
  "[history] two long branches on one record: views within each, and at their merge",
  async () => {
    const rng = createRng(firstSeed).fork("branches");
    using dir = scratchDir("svc-history");
    const world = await createWorld(rng, dir.path, 2);
    const { replicas, objectId, written } = world;
    const write = async (replica: HistoryReplica, count: number) => {
      for (let i = 0; i < count; i++) {
        const before = recordsNow(replica, objectId);
        const records: RecordChange[] = [
          {
            id: "one",
            upsert: true,
            ops: [
              { type: "$inc", path: "n", value: 1 },
              { type: "$set", path: `f.k${rng.int(0, 5)}`, value: i },
            ],
          },
        ];
        const version = await replica.write(objectId, "items", records);
        written.push({ version, author: replica.author, before, records: recordsNow(replica, objectId), traceIds: [] });
      }
    };
    await write(replicas[0]!, 20);
    await exchange(rng, replicas[0]!, replicas[1]!, 0);
    for (let round = 0; round < 4; round++) {
      await write(replicas[0]!, 160);
      await write(replicas[1]!, 160);
    }
    await heal(rng, replicas);
    await write(replicas[0]!, 5);
    await heal(rng, replicas);
    for (const replica of replicas) {
      for (const at of [...Array.from({ length: 60 }, () => rng.int(0, written.length - 1)), written.length - 1]) {
        const { version, records, before } = written[at]!;
        expect(await viewOf(replica, objectId, version)).toEqual(records);
        const effect = await replica.history.diff(objectId, { version });
        expect(applied(leaves(before), effect)).toEqual(leaves(records));
        const base = written[rng.int(0, written.length - 1)]!;
        const between = await replica.history.diff(objectId, { version, base: base.version });
        expect(applied(leaves(base.records), between)).toEqual(leaves(records));
      }
    }
    for (const replica of replicas) await replica.close();
  },
  120_000,
);

rule(
  "[history] a search passes over thousands of changes that do not match, in pages that follow each other",
  async () => {
    const rng = createRng(firstSeed).fork("search");
    using dir = scratchDir("svc-history");
    const { replicas, objectId } = await createWorld(rng, dir.path, 2);
    const [one, two] = replicas;
    const bulk = (count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, i) =>
          one!.write(objectId, "quiet", [
            { id: `q${i % 50}`, upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] },
          ]),
        ),
      );
    const found: string[] = [];
    const write = async (replica: HistoryReplica) => {
      const records: RecordChange[] = [{ id: "one", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }];
      found.push(await replica.write(objectId, "items", records, ["rare"]));
    };
    for (let round = 0; round < 3; round++) {
      await write(one!);
      await write(two!); // beside it: often at the same lamport
      await bulk(2_500);
    }
    await heal(rng, replicas);
    const all = await listAll(one!, objectId, { dataset: "items" });
    expect(new Set(all.map((change) => change.version))).toEqual(new Set(found));
    for (const query of [{ dataset: "items" }, { traceId: "rare" }, { dataset: "items", recordId: "one" }]) {
      for (const limit of [1, 2, 50]) expect(await listAll(two!, objectId, { ...query, limit })).toEqual(all);
    }
    const theirs = all.filter((change) => change.author === two!.author);
    expect(await listAll(one!, objectId, { author: two!.author, limit: 1 })).toEqual(theirs);
    for (const replica of replicas) await replica.close();
  },
  120_000,
);

rule(
  "[history] a group ends at its limit of changes and the next goes on; a page ends when it grows heavy",
  async () => {
    using dir = scratchDir("svc-history");
    const { replicas, objectId } = await createWorld(createRng(1), dir.path, 2);
    const [one] = replicas;
    const versions: string[] = [];
    for (let done = 0; done < 2_400; done += 400) {
      const records: RecordChange[] = [{ id: "one", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }];
      const written = Array.from({ length: 400 }, () => one!.write(objectId, "items", records));
      versions.push(...(await Promise.all(written)));
    }
    const query = { dataset: "items", coalesce: true, coalesceWindow: 86_400 };
    const first = await one!.history.list(objectId, query);
    expect(first.changes.map((change) => change.groupSize)).toEqual([1_000, 1_000]);
    expect(first.cursor).toBeString();
    const groups = await listAll(one!, objectId, query);
    expect(groups.map((change) => change.groupSize)).toEqual([1_000, 1_000, 400]);
    expect(groups.map((change) => change.version)).toEqual([versions[2_399]!, versions[1_399]!, versions[399]!]);

    const large = "x".repeat(1_000_000);
    for (let i = 0; i < 12; i++)
      await one!.write(objectId, "items", [
        { id: "big", upsert: true, ops: [{ type: "$set", path: "s", value: large }] },
      ]);
    const about = { dataset: "items", recordId: "big" };
    const page = await one!.history.list(objectId, about);
    expect(page.changes.length).toBeGreaterThan(1);
    expect(page.changes.length).toBeLessThan(12);
    expect(await listAll(one!, objectId, about)).toHaveLength(12);
    for (const replica of replicas) await replica.close();
  },
  120_000,
);

rule("[history] a read ends when its request is cancelled, its object deleted or its space closed", async () => {
  using dir = scratchDir("svc-history");
  const { replicas, objectId } = await createWorld(createRng(1), dir.path, 2);
  const [one, two] = replicas;
  const ids = (count: number): RecordChange[] =>
    Array.from({ length: count }, (_, i) => ({
      id: `r${i}`,
      upsert: true,
      ops: [{ type: "$inc", path: "n", value: 1 }],
    }));
  await one!.write(objectId, "items", ids(3_000));
  const version = await one!.write(objectId, "items", ids(3_000));
  await one!.write(objectId, "items", ids(3_000));
  await exchange(createRng(1), one!, two!, 0);

  const codeOf = (read: Promise<unknown>): Promise<string> =>
    read.then(
      () => "none",
      (error: { code: string }) => error.code,
    );
  expect(one!.history.busy()).toBe(false);
  const abort = new AbortController();
  const cancelled = codeOf(one!.history.view(objectId, version, undefined, abort.signal));
  expect(one!.history.busy()).toBe(true);
  abort.abort();
  expect(await cancelled).toBe("server.unavailable");
  expect(one!.history.busy()).toBe(false);

  const deleted = codeOf(one!.history.view(objectId, version));
  await one!.engine.write((tx) => tx.deleteObject(tx.object(objectId)!));
  expect(await deleted).toBe("object.not_found");
  expect(await codeOf(one!.history.list(objectId, {}))).toBe("object.not_found");

  const closed = codeOf(two!.history.view(objectId, version));
  two!.history.close();
  expect(await closed).toBe("server.unavailable");
  for (const replica of replicas) await replica.close();
});

rule("[history] views hold while writes and late changes go on", async () => {
  await withHistory("busy", async (world) => {
    const { rng, replicas, objectId, written } = world;
    await heal(rng, replicas);
    const known = [...written];
    const late = (async () => {
      for (let i = 0; i < 60; i++) {
        await writeSomething(world, rng.pick(replicas));
        if (rng.chance(0.3)) await exchange(rng, replicas[0]!, replicas[1]!, 0.3);
      }
    })();
    for (const { version, records } of known) expect(await viewOf(replicas[1]!, objectId, version)).toEqual(records);
    await late;
    for (const { version, records } of known) expect(await viewOf(replicas[1]!, objectId, version)).toEqual(records);
  });
});

rule("[history] what has no body yet does not say when a view was modified", async () => {
  using dir = scratchDir("svc-history");
  const rights = createRights();
  let time = 1_800_000_000_000;
  const now = () => (time += 1000);
  const [one, two] = ["one", "two"].map((name) =>
    openHistoryReplica({ dir: dir.path, name, author: createAuthor(name === "one" ? 1 : 2), now, rights }),
  ) as [HistoryReplica, HistoryReplica];
  const objectId = await one.createObject();
  const ops = [{ type: "$set" as const, path: "f", value: 1 }];
  const version = await one.write(objectId, "items", [{ id: "r", upsert: true, ops }]);
  const packets = await one.packets();
  await two.ingest(packets.map((bytes) => (cidFromDigest(changeIdOf(bytes)) === version ? stubOf(bytes) : bytes)));
  for (const replica of [two, one]) {
    expect((await viewOf(replica, objectId, version))["objects"]).toEqual(recordsNow(replica, objectId)["objects"]!);
    await two.ingest(packets);
  }
  expect(await viewOf(two, objectId, version)).toEqual(await viewOf(one, objectId, version));
  for (const replica of [one, two]) await replica.close();
});

rule("[history] a body that comes late is listed and part of every view from then on", async () => {
  using dir = scratchDir("svc-history");
  const rights = createRights();
  const now = () => 1_800_000_000_000;
  const [one, two] = ["one", "two"].map((name) =>
    openHistoryReplica({ dir: dir.path, name, author: createAuthor(name === "one" ? 1 : 2), now, rights }),
  ) as [HistoryReplica, HistoryReplica];
  const objectId = await one.createObject();
  const ids: string[] = [];
  for (const value of [1, 2, 3]) {
    const ops = [{ type: "$set" as const, path: `f${value}`, value }];
    ids.push(await one.write(objectId, "items", [{ id: "r", upsert: true, ops }], [`trace-${value}`]));
  }
  const packets = await one.packets();
  const late = packets.find((bytes) => cidFromDigest(changeIdOf(bytes)) === ids[1])!;
  await two.ingest(packets.map((bytes) => (bytes === late ? stubOf(bytes) : bytes)));
  const listed = async () =>
    (await two.history.list(objectId, { dataset: "items" })).changes.map(({ version }) => version);
  expect(await listed()).toEqual([ids[2]!, ids[0]!]);
  expect((await viewOf(two, objectId, ids[2]!))["items"]!["r"]).toMatchObject({ f1: 1, f3: 3 });
  await two.ingest([late]);
  expect(await listed()).toEqual(ids.toReversed());
  expect((await two.history.list(objectId, { traceId: "trace-2" })).changes).toHaveLength(1);
  for (const id of ids) expect(await viewOf(two, objectId, id)).toEqual(await viewOf(one, objectId, id));
  for (const replica of [one, two]) await replica.close();
});
