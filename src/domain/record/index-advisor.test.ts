import { afterEach, expect, test } from "bun:test";
import { openLiveSpace } from "../../../test/support/worlds/live-space.ts";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import { indexedPathOf } from "../../query/rows/index-key.ts";
import { createIndexAdvisor } from "./index-advisor.ts";

const MINUTES = 60_000;
const EXPENSIVE = { candidates: 5_000, matches: 10 };

let space: Awaited<ReturnType<typeof openLiveSpace>> | undefined;
afterEach(async () => {
  await space?.close();
  space = undefined;
});

/** An advisor over a space whose collection says it has so many rows, with a builder that only takes notes. */
async function setUp(live = 10_000) {
  space = await openLiveSpace();
  const { engine, store, object, put } = space;
  for (let i = 0; i < 5; i++) await put(`r${i}`, { done: true, n: i, group: `g${i}` });
  const collectionId = engine.collectionIdOf(object, "things")!;
  await engine.background(() => store.rows.addLive(collectionId, live - 5));
  const built: string[] = [];
  const dropped: string[] = [];
  let nowMs = 0;
  const advisor = createIndexAdvisor({
    tables: store,
    builder: {
      build: (_collection, path) => void built.push(path),
      drop: ({ path }) => void dropped.push(path),
      isComing: (_collection, path) => built.includes(path),
      coming: () => built.map((path) => ({ collectionId, path })),
    },
    clock: { nowMs: () => nowMs },
    isDeclared: (_dataset, path) => path.startsWith("d") && path !== "done",
  });
  return {
    collectionId,
    built,
    dropped,
    wait: (ms: number) => {
      nowMs += ms;
    },
    ask: (wanted: string[], stats: { candidates: number; matches: number; index?: string } = EXPENSIVE, raw = {}) =>
      advisor.observe({
        collectionId,
        dataset: "things",
        wanted: () => wanted,
        filter: parseFilter(raw),
        window: 20,
        stats,
      }),
    /** An index that is there, all its keys in it. */
    async have(path: string, of = collectionId) {
      await engine.background(() => {
        const index = { no: store.queryIndexes.add(of, indexedPathOf(path)!), collectionId: of, path };
        store.queryIndexes.finish(index);
      });
    },
  };
}

test("[INDEX-2] a declared path gets its index at the first query that lacks it, another at the second", async () => {
  const { ask, built } = await setUp();
  ask(["declared"]);
  expect(built).toEqual(["declared"]);
  ask(["free"]);
  expect(built).toEqual(["declared"]);
  ask(["free"]);
  expect(built).toEqual(["declared", "free"]);
  ask(["free"]);
  expect(built.length).toBe(2);
});

test("[INDEX-2] a small collection gets none, nor does a query that is served well", async () => {
  const small = await setUp(1_999);
  small.ask(["declared"]);
  expect(small.built).toEqual([]);
  await space?.close();
  const { ask, built, have } = await setUp();
  await have("declared");
  ask(["declared", "d2"], { candidates: 1_000, matches: 1, index: "declared" });
  ask(["declared", "d2"], { candidates: 500_000, matches: 300_000, index: "declared" });
  ask([]);
  expect(built).toEqual([]);
  ask(["declared", "d2"], { candidates: 500_000, matches: 3, index: "declared" });
  expect(built).toEqual(["d2"]);
});

test("[INDEX-2] of several paths the one with the most different values goes first, the others have to be wanted again", async () => {
  const { ask, built } = await setUp();
  ask(["x", "done", "group", "n"]);
  ask(["x", "done", "group", "n"]);
  expect(built).toEqual(["group"]);
  // While it is on its way nothing more is learnt from queries that it may serve.
  ask(["group", "n"]);
  ask(["group", "n"]);
  ask(["n"]);
  expect(built).toEqual(["group"]);
  ask(["n"]);
  expect(built).toEqual(["group", "n"]);
});

test("[INDEX-2] of several paths the one goes first by whose index the fewest rows would be read", async () => {
  const { ask, built } = await setUp();
  // Both keep records apart as well, but most records are within the range.
  for (let use = 0; use < 2; use++) ask(["n", "group"], EXPENSIVE, { n: { $gte: 1 }, group: "g3" });
  expect(built).toEqual(["group"]);
  await space?.close();
  const sorted = await setUp();
  // Every record is done: in the order of the sort twenty are found soon.
  for (let use = 0; use < 2; use++) sorted.ask(["done", "n"], EXPENSIVE, { done: true });
  expect(sorted.built).toEqual(["n"]);
});

test("[INDEX-2] a full collection gives up the index least lately used, if that was long ago", async () => {
  const { ask, built, dropped, have, wait } = await setUp();
  for (let i = 0; i < 8; i++) await have(`p${i}`);
  wait(11 * MINUTES);
  for (const path of ["p0", "p1", "p2", "p4", "p5", "p6", "p7"])
    ask([path], { candidates: 1, matches: 1, index: path });
  ask(["d1"]);
  expect([built, dropped]).toEqual([["d1"], ["p3"]]);
  await have(built.pop()!);
  ask(["d2"]);
  expect([built, dropped]).toEqual([[], ["p3"]]);
  wait(11 * MINUTES);
  ask(["d2"]);
  expect([built, dropped]).toEqual([["d2"], ["p3", "p0"]]);
});

test("[INDEX-2] the indexes of a space are bounded together", async () => {
  const { ask, built, have, collectionId } = await setUp();
  for (let i = 0; i < 32; i++) await have(`p${i % 8}`, collectionId + 1 + (i >> 3));
  ask(["d1"]);
  expect(built).toEqual([]);
});
