/** Histories of one making: long branches, thousands of changes, groups that end, reads that are cancelled, bodies that come late. */
import { afterAll, beforeAll, describe, expect, spyOn } from "bun:test";
import type { RecordChange } from "../../src/change/codec/change-body.ts";
import { changeIdOf, stubOf } from "../../src/change/codec/change-stub.ts";
import { createHistory } from "../../src/change/history/history.ts";
import { cidFromDigest } from "../../src/crypto/cid.ts";
import { countDatabaseWork, type DatabaseWork } from "../support/database-work.ts";
import { codeOf } from "../support/errors-of.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type HistoryReplica, openHistoryReplica } from "../support/worlds/history-replica.ts";
import {
  applied,
  createWorld,
  exchange,
  firstSeed,
  heal,
  leaves,
  listAll,
  recordsNow,
  viewOf,
  withHistory,
  writeSomething,
} from "../support/worlds/history-world.ts";
import { createRights } from "../support/worlds/open-engine.ts";
import { createAuthor } from "../support/worlds/schema-replica.ts";

rule(
  "[HIST-2] two long branches on one record: views within each, and at their merge",
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
      for (const at of [...Array.from({ length: 40 }, () => rng.int(0, written.length - 1)), written.length - 1]) {
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
  "[HIST-4] a search passes over thousands of changes that do not match, in pages that follow each other",
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

describe("of an object with thousands of changes of one record", () => {
  const COUNT = 2_400;
  /** Statements and rows: the longest page is that of a graph, of 2,000 entries. */
  const LONGEST_STEP = 2_010;
  const dir = scratchDir("svc-history");
  let work: DatabaseWork;
  let one: HistoryReplica;
  let two: HistoryReplica;
  let objectId: string;
  const versions: string[] = [];

  beforeAll(async () => {
    work = countDatabaseWork();
    const world = await createWorld(createRng(1), dir.path, 2);
    [one, two] = world.replicas as [HistoryReplica, HistoryReplica];
    ({ objectId } = world);
    for (let done = 0; done < COUNT; done += 400) {
      const records: RecordChange[] = [{ id: "one", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }];
      const written = Array.from({ length: 400 }, () => one.write(objectId, "items", records));
      versions.push(...(await Promise.all(written)));
    }
  }, 60_000);
  afterAll(async () => {
    for (const replica of [one, two]) await replica.close();
    work[Symbol.dispose]();
    dir[Symbol.dispose]();
  });

  /** A change that the other device makes beside all those: it is early, and in none of their versions. */
  const madeBeside = async (recordId: string): Promise<Uint8Array[]> => {
    const before = new Set((await two.packets()).map((packet) => Bun.hash(packet)));
    await two.write(objectId, "items", [{ id: recordId, upsert: true, ops: [{ type: "$set", path: "n", value: -5 }] }]);
    return (await two.packets()).filter((packet) => !before.has(Bun.hash(packet)));
  };
  /** A clock that also goes on when it is told to: by more than a read has in one go. */
  const fastClock = (): Disposable & { pass(): void } => {
    const { now } = performance;
    let aheadMs = 0;
    const spied = spyOn(performance, "now").mockImplementation(() => now.call(performance) + aheadMs);
    return {
      pass() {
        aheadMs += 1_000;
      },
      [Symbol.dispose]: () => spied.mockRestore(),
    };
  };

  rule("[HIST-4] a group ends at its limit of changes and the next goes on", async () => {
    const query = { dataset: "items", coalesce: true, coalesceWindow: 86_400 };
    const first = await one.history.list(objectId, query);
    expect(first.changes.map((change) => change.groupSize)).toEqual([1_000, 1_000]);
    expect(first.cursor).toBeString();
    const groups = await listAll(one, objectId, query);
    expect(groups.map((change) => change.groupSize)).toEqual([1_000, 1_000, 400]);
    expect(groups.map((change) => change.version)).toEqual([versions[2_399]!, versions[1_399]!, versions[399]!]);
  });

  rule("[HIST-4] a read does bounded work at a time, however many changes a record has", async () => {
    const beside = await Promise.all(
      Array.from({ length: 300 }, () =>
        two.write(objectId, "items", [{ id: "other", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]),
      ),
    );
    await one.ingest(await two.packets());
    const [early, late] = [versions[10]!, versions[COUNT - 10]!];
    const { history } = one;
    // One that has read nothing yet.
    const cold = createHistory({ engine: one.engine, store: one.engine.store });
    const reads = {
      "the object's graph": () => cold.recordView(objectId, early, "items", "other"),
      list: () => history.list(objectId, { limit: 200 }),
      "list of few changes among thousands": () => history.list(objectId, { author: two.author }),
      groups: () => history.list(objectId, { coalesce: true, coalesceWindow: 86_400 }),
      view: () => history.view(objectId, late),
      "view of an early version": () => history.view(objectId, early),
      "view of a record": () => history.recordView(objectId, late, "items", "one"),
      "diff of few": () => history.diff(objectId, { version: late, base: versions[COUNT - 20]! }),
      "diff of many": () => history.diff(objectId, { version: late, base: early }),
      "diff of many that are not of the record": () =>
        history.diff(objectId, { version: beside.at(-1)!, base: beside[0]! }),
    };
    using now = spyOn(performance, "now");
    let time = 0;
    // Whenever a read looks, the time that it has in one go is over.
    now.mockImplementation(() => (time += 1_000));
    for (const [name, read] of Object.entries(reads)) {
      work.restart();
      await read();
      expect([name, Math.max(work.read().most, LONGEST_STEP)]).toEqual([name, LONGEST_STEP]);
    }
    cold.close();
  });

  for (const what of ["a change", "a body"] as const)
    rule(`[HIST-2] a view leaves out ${what} that comes late while it is read, where it has read already`, async () => {
      // It knows all there is but for what is made beside it.
      const newest = await one.write(objectId, "items", [
        { id: "one", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] },
      ]);
      await one.ingest(await madeBeside("other"));
      const comesLate = await madeBeside("one");
      if (what === "a body") await one.ingest(comesLate.map(stubOf));
      const known = await one.history.recordView(objectId, newest, "items", "one");
      // One that has kept nothing of the view.
      const cold = createHistory({ engine: one.engine, store: one.engine.store });
      const { history } = one.engine.store;
      const touchesAfter = history.touchesAfter.bind(history);
      let isLate = false;
      {
        using clock = fastClock();
        using turns = spyOn(globalThis, "setImmediate");
        using _ = spyOn(history, "touchesAfter").mockImplementationOnce((...page) => {
          clock.pass();
          // The read pauses next, until the change is here and folded.
          turns.mockImplementationOnce(((resume: () => void) => {
            void one
              .ingest(comesLate)
              .then(() => one.engine.idle())
              .then(() => {
                isLate = true;
                resume();
              });
          }) as unknown as typeof setImmediate);
          return touchesAfter(...page);
        });
        expect(await cold.recordView(objectId, newest, "items", "one")).toEqual(known);
      }
      expect(isLate).toBe(true);
      expect(await one.history.recordView(objectId, newest, "items", "one")).toEqual(known);
      cold.close();
    });

  rule("[HIST-4] a page ends when it grows heavy", async () => {
    const large = "x".repeat(1_000_000);
    for (let i = 0; i < 12; i++)
      await one.write(objectId, "items", [
        { id: "big", upsert: true, ops: [{ type: "$set", path: "s", value: large }] },
      ]);
    const about = { dataset: "items", recordId: "big" };
    const page = await one.history.list(objectId, about);
    expect(page.changes.length).toBeGreaterThan(1);
    expect(page.changes.length).toBeLessThan(12);
    expect(await listAll(one, objectId, about)).toHaveLength(12);
  });
});

rule("[HIST-4] a view of more than 8 MiB is too large, and can be narrowed to a record", async () => {
  using dir = scratchDir("svc-history");
  const { replicas, objectId } = await createWorld(createRng(1), dir.path, 1);
  const [one] = replicas;
  const large = "x".repeat(1_000_000);
  const versions: string[] = [];
  for (let i = 0; i < 9; i++)
    versions.push(
      await one!.write(objectId, "items", [
        { id: `big${i}`, upsert: true, ops: [{ type: "$set", path: "s", value: large }] },
      ]),
    );
  expect(Object.keys((await viewOf(one!, objectId, versions[7]!))["items"]!)).toHaveLength(8);
  const refused = { code: "history.view_too_large", details: { limit: "bytes" } };
  await expect(viewOf(one!, objectId, versions[8]!)).rejects.toMatchObject(refused);
  expect(await one!.history.recordView(objectId, versions[8]!, "items", "big8")).toMatchObject({ exists: true });
  await one!.close();
});

rule("[HIST-4] a read ends when its request is cancelled, its object deleted or its space closed", async () => {
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

rule("[HIST-2] views hold while writes and late changes go on", async () => {
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

rule("[HIST-2] what has no body yet does not say when a view was modified", async () => {
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

rule("[HIST-2] a body that comes late is listed and part of every view from then on", async () => {
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
