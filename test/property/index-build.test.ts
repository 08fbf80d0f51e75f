/**
 * Invariant: whatever is written before, while and after an index is made, a query answers with it what it answers
 * without; and the index holds exactly the keys of the rows there are.
 */
import { afterEach, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { createIndexBuilder } from "../../src/domain/record/index-builder.ts";
import { parseFilter } from "../../src/query/filter/filter-parse.ts";
import { rowsInKeyOrder } from "../../src/query/plan/key-order.ts";
import type { ReaderJob } from "../../src/query/readers/reader-job.ts";
import type { ReaderPool } from "../../src/query/readers/reader-pool.ts";
import { rowsOf } from "../../src/query/rows/row-source.ts";
import { runQuery } from "../../src/query/run/run-query.ts";
import { parseSort } from "../../src/query/value/sort.ts";
import { openReader } from "../../src/store/database/database.ts";
import { createRandom, type Random, randomDocument, randomFilter } from "../support/random-json.ts";
import { freshSeed } from "../support/rng.ts";
import { scratchDir } from "../support/scratch.ts";
import { type LiveSpace, openLiveSpace } from "../support/worlds/live-space.ts";
import { createAuthor, openSchemaReplica } from "../support/worlds/schema-replica.ts";

const PATHS = ["a", "b", "a.b", "c"];
const RECORDS = 400;

/** Key orders are read at once, over a connection of its own as readers do. */
const readers = {
  async run(path: string, job: ReaderJob) {
    if (job.kind !== "keyOrder") throw new Error(`a builder asked for ${job.kind}`);
    const db = openReader(path);
    try {
      return rowsInKeyOrder(db, job.collectionId, job.path);
    } finally {
      db.close();
    }
  },
} as unknown as ReaderPool;

const builderOf = ({ engine, store }: Pick<LiveSpace, "engine" | "store">, rest: () => Promise<void>) =>
  createIndexBuilder({
    engine,
    tables: store,
    readers,
    log: silentLog,
    startLongWork: () => ({ progress() {}, end() {} }),
    rest,
    sliceMs: 0,
  });

let space: LiveSpace | undefined;
afterEach(async () => {
  await space?.close();
  space = undefined;
});

const idOf = (n: number) => `r${String((n * 7919) % RECORDS).padStart(4, "0")}`;

function randomWrite(random: Random, { put, remove, op, setLocal, together }: LiveSpace): Promise<unknown> {
  const id = idOf(random.below(RECORDS));
  const { id: _, ...fields } = randomDocument(random, id);
  switch (random.below(7)) {
    case 0:
      return remove(id);
    case 1:
      return op(id, { type: "$unset", path: random.pick(["a", "b", "a.b"]) });
    case 2:
      return op(id, { type: "$set", path: random.pick(["a", "b", "c"]), value: random.pick([1, "x", null, [1, "x"]]) });
    case 3:
      return setLocal(id, { c: random.below(5) });
    case 4:
      return together(
        [0, 1, 2].map((k) => [
          { id: `n${random.below(10 * RECORDS)}-${k}`, upsert: true, ops: [{ type: "$set", path: "", value: fields }] },
        ]),
      );
    default:
      return put(id, fields as never);
  }
}

/** The same query with the indexes there are and with none. */
function compareOne(random: Random, { store }: LiveSpace, collectionId: number, context: object): string | undefined {
  const raw = random.below(5) ? randomFilter(random, 1) : {};
  const request = {
    filter: parseFilter(raw),
    sort: parseSort(random.below(2) ? [random.pick(["a", "-a", "b", "-c", "a.b"])] : []),
    limit: random.below(2) ? 1 + random.below(20) : 0,
    offset: random.below(5),
    includeTotal: random.below(2) === 0,
    everyRow: random.below(2) === 0,
  };
  const { db, queryIndexes } = store;
  const plain = runQuery(db, rowsOf(collectionId, new Map()), request);
  const indexed = runQuery(db, rowsOf(collectionId, queryIndexes.inUse(collectionId)), request);
  const asked = { ...context, raw: JSON.stringify(raw), sort: request.sort, limit: request.limit };
  // What the query did differs, its answer must not.
  expect({ ...asked, ...indexed, stats: undefined }).toEqual({ ...asked, ...plain, stats: undefined });
  return indexed.stats.index;
}

/** An index holds one entry for each live row, one for each element of an array, and no others. */
function expectWhole({ store }: LiveSpace, collectionId: number): void {
  const { db, queryIndexes } = store;
  for (const [path, no] of queryIndexes.inUse(collectionId)) {
    const count = (sql: string) => db.query<{ n: number }, [number, number]>(sql).get(no, collectionId)!.n;
    const own = count("SELECT count(*) AS n FROM query_keys WHERE idx = ?1 AND part = 0 AND ?2 = ?2");
    const live = count("SELECT count(*) AS n FROM rows WHERE collectionId = ?2 AND state = 1 AND ?1 = ?1");
    const stray = count(
      "SELECT count(*) AS n FROM query_keys k LEFT JOIN rows r ON r.no = k.row AND r.id = k.rid AND r.collectionId = ?2 AND r.state = 1 WHERE k.idx = ?1 AND r.no IS NULL",
    );
    expect({ path, own, stray }).toEqual({ path, own: live, stray: 0 });
  }
}

for (const seed of [2, 31, freshSeed("index-build")])
  test(`[INDEX-1] queries agree with and without an index while writes go on during its making, seed ${seed}`, async () => {
    const random = createRandom(seed);
    space = await openLiveSpace();
    const { engine, store, together } = space;
    for (let first = 0; first < RECORDS; first += 50)
      await together(
        Array.from({ length: 50 }, (_, i) => {
          const { id, ...value } = randomDocument(random, idOf(first + i));
          return [{ id: String(id), upsert: true, ops: [{ type: "$set", path: "", value }] }];
        }) as never,
      );
    const collectionId = engine.collectionIdOf(space.object, "things")!;
    const used = new Set<string>();
    let rests = 0;
    const builder = builderOf(space, async () => {
      const writes = Array.from({ length: random.below(4) }, () => randomWrite(random, space!));
      if (rests++ === 20) writes.push(engine.rebuildProjection("all"));
      const index = compareOne(random, space!, collectionId, { seed, rests });
      if (index !== undefined) used.add(index);
      await Promise.all(writes);
    });
    for (const path of PATHS) builder.build(collectionId, path);
    while (builder.busy()) await Bun.sleep(1);
    expect([...store.queryIndexes.inUse(collectionId).keys()]).toEqual(PATHS);
    for (let round = 0; round < 150; round++) {
      if (round % 3 === 0) await randomWrite(random, space);
      const index = compareOne(random, space, collectionId, { seed, round });
      if (index !== undefined) used.add(index);
    }
    expectWhole(space, collectionId);
    await engine.rebuildProjection("all");
    expectWhole(space, collectionId);
    expect([...used].sort()).toEqual([...PATHS].sort());
    await builder.close();
  });

test("[INDEX-3] the indexes of a deleted object's records go with them", async () => {
  space = await openLiveSpace();
  const { engine, store, put, deleteObject } = space;
  for (let i = 0; i < 20; i++) await put(`r${i}`, { a: i });
  const collectionId = engine.collectionIdOf(space.object, "things")!;
  const builder = builderOf(space, () => Bun.sleep(0));
  builder.build(collectionId, "a");
  while (builder.busy()) await Bun.sleep(1);
  expect(store.queryIndexes.inUse(collectionId).size).toBe(1);
  await deleteObject();
  await engine.tearDownDeleted();
  expect(store.queryIndexes.inUse(collectionId).size).toBe(0);
  builder.resume();
  while (builder.busy()) await Bun.sleep(1);
  const { db } = store;
  expect([db.query("SELECT * FROM query_keys").all(), db.query("SELECT * FROM query_indexes").all()]).toEqual([[], []]);
  await builder.close();
});

test("[INDEX-3] an index that a stop left half made, or half dropped, is finished at the next open", async () => {
  using dir = scratchDir("svc-index");
  const replica = openSchemaReplica({
    dir: dir.path,
    name: "a",
    author: createAuthor(3),
    now: () => 1_800_000_000_000,
  });
  for (let i = 0; i < 300; i++)
    await replica.services.objects.create({ initialProperties: { svc: { name: `n${i % 50}` } } });
  const indexes = () => replica.services.store.queryIndexes;
  const names = () =>
    runQuery(replica.services.store.db, rowsOf(0), { filter: parseFilter({ "svc.name": "n7" }), sort: [] });
  const stopAfter = async (rests: number, begin: (builder: ReturnType<typeof builderOf>) => void) => {
    let left = rests;
    const builder = builderOf(replica.services, async () => void (left-- === 0 && void builder.close()));
    begin(builder);
    while (builder.busy()) await Bun.sleep(1);
    await builder.close();
    await replica.reopen();
  };

  await stopAfter(2, (builder) => builder.build(0, "svc.name"));
  expect([indexes().filling().length, indexes().inUse(0).size]).toEqual([1, 0]);
  expect(names().records.length).toBe(6);
  await replica.services.objects.create({ initialProperties: { svc: { name: "n7" } } });
  await stopAfter(1_000, (builder) => builder.resume());
  expect([...indexes().inUse(0).keys()]).toEqual(["svc.name"]);
  expect([names().records.length, names().stats.index, names().stats.candidates]).toEqual([7, "svc.name", 7]);

  const [made] = indexes().allInUse();
  await replica.services.engine.background(() => indexes().retire(made!));
  await replica.reopen();
  expect([indexes().dropping().length, names().records.length, names().stats.index]).toEqual([1, 7, undefined]);
  await stopAfter(1_000, (builder) => builder.resume());
  expect(indexes().dropping()).toEqual([]);
  expect(replica.services.store.db.query("SELECT * FROM query_keys").all()).toEqual([]);
  await replica.close();
});
