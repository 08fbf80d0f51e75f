/** Windows that are read or counted aside, refilled, moved by late changes, or fail. */
import { expect, test } from "bun:test";
import { countTurns, loopTurns } from "../../../test/support/loop-turns.ts";
import { ALWAYS_ASIDE, DATASET, NEVER_ASIDE, watch } from "../../../test/support/worlds/live-space.ts";
import { summary, useLiveSpaces } from "../../../test/support/worlds/live-spaces.ts";

const { openSpace, withRecords } = useLiveSpaces();

test("[LIVE-2] a window that takes too long to read is read aside; writes meanwhile are not lost", async () => {
  const space = await withRecords(40, { readTimes: ALWAYS_ASIDE });
  space.hold(true);
  const opening = watch(space, { sort: ["n"], limit: 5, includeTotal: true });
  await loopTurns();
  expect(space.heldReads()).toBe(1);
  expect(space.live.size).toBe(1);
  await space.put("early", { n: -1 });
  await space.remove("r0001");
  space.hold(false);
  const watcher = await opening;
  expect(watcher.snapshot.total).toBe(40);
  expect(watcher.ids()).toEqual(["early", "r0000", "r0002", "r0003", "r0004"]);
  expect(watcher.take()).toEqual([]);
  await space.remove("early");
  expect(summary(watcher.take())).toEqual([{ added: ["r0005"], removed: [{ id: "early", reason: "deleted" }] }]);
});

test("[LIVE-3] rows that leave while the refill waits: within the budget it is made up, beyond it the stream ends", async () => {
  const space = await withRecords(3000, { readTimes: ALWAYS_ASIDE });
  const strict = await watch(space, { sort: ["n"], limit: 10, driftBudgetPercent: 0 });
  const normal = await watch(space, { sort: ["n"], limit: 10 });
  const any = await watch(space, { sort: ["n"], limit: 10, driftBudgetPercent: 100 });
  const numbered = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => `r${String(n + from).padStart(4, "0")}`);
  space.hold(true);
  // Ten rows and the reserve of 1,024 behind them: two are missing when all but eight have left.
  await space.remove(...numbered(0, 1026));
  await loopTurns();
  expect([strict.ended, normal.ended, any.ended]).toEqual(["drifted", undefined, undefined]);
  normal.take();
  any.take();
  expect(normal.ids()).toHaveLength(8);
  await space.put("between", { n: 1030.5 });
  space.hold(false);
  await loopTurns();
  await loopTurns();
  normal.take();
  const fresh = () =>
    space
      .query(space.collection, { sort: ["n"], limit: 10 })
      .map((doc) => doc["id"] as string)
      .sort();
  expect(normal.ids()).toEqual(fresh());

  space.hold(true);
  await space.remove(...numbered(1026, 2066));
  await loopTurns();
  expect([normal.ended, any.ended]).toEqual(["drifted", undefined]);
  space.hold(false);
  await loopTurns();
  await loopTurns();
  any.take();
  expect(any.ids()).toEqual(fresh());
});

test("[LIVE-3] a full window that runs out of matches has lost what nothing replaces", async () => {
  const space = await withRecords(10, { readTimes: ALWAYS_ASIDE });
  const strict = await watch(space, { sort: ["n"], limit: 10 });
  const any = await watch(space, { sort: ["n"], limit: 10, driftBudgetPercent: 100 });
  await space.remove("r0001", "r0002", "r0003", "r0004", "r0005", "r0006");
  await loopTurns();
  expect([strict.ended, any.ended]).toEqual(["drifted", undefined]);
  any.take();
  expect(any.ids()).toHaveLength(4);
  // Who comes then has lost nothing until the window has been full again.
  const late = await watch(space, { sort: ["n"], limit: 10 });
  await space.op("r0000", { type: "$set", path: "x", value: 1 });
  expect(summary(late.take())).toEqual([{ updated: ["r0000"] }]);
  expect(late.ended).toBeUndefined();
  await Promise.all(Array.from({ length: 6 }, (_, n) => space.put(`new${n}`, { n: 50 + n })));
  late.take();
  await space.remove("new0", "new1", "new2", "new3");
  await loopTurns();
  expect([late.ended, any.ended]).toEqual(["drifted", undefined]);
});

test("[LIVE-3] a window that never was full shrinks without having lost anything", async () => {
  const space = await withRecords(10, { readTimes: ALWAYS_ASIDE });
  const watcher = await watch(space, { sort: ["n"], limit: 20, driftBudgetPercent: 0 });
  await space.remove("r0001", "r0002", "r0003", "r0004", "r0005", "r0006");
  await loopTurns();
  watcher.take();
  expect(watcher.ended).toBeUndefined();
  expect(watcher.ids()).toHaveLength(4);
});

test("[LIVE-2] an object deleted while its window is read aside stays deleted", async () => {
  const space = await withRecords(30, { readTimes: ALWAYS_ASIDE, reserve: { min: 0, max: 0, wide: 0 } });
  const watcher = await watch(space, { sort: ["n"], limit: 5, driftBudgetPercent: 100 });
  space.hold(true);
  await space.remove("r0000", "r0001");
  await loopTurns();
  expect(space.heldReads()).toBe(1);
  await space.deleteObject();
  space.hold(false);
  await loopTurns();
  watcher.take();
  expect([watcher.ids(), watcher.ended]).toEqual([[], undefined]);
});

test("[LIVE-2] changes of another device arrive late, are folded in their order, and told as what they changed", async () => {
  const space = await withRecords(3);
  const other = await openSpace({ replicaOf: space });
  const watcher = await watch(space, { filter: { n: { $lt: 2 } }, sort: ["n"], limit: 2 });
  await other.op("r0001", { type: "$set", path: "n", value: 7 }, { type: "$set", path: "x", value: 1 });
  await other.put("theirs", { n: -1 });
  await space.op("r0001", { type: "$set", path: "y", value: 2 });
  await space.op("r0001", { type: "$inc", path: "n", value: -6 });
  watcher.take();
  expect(watcher.ids()).toEqual(["r0000", "r0001"]);
  await space.engine.ingest(other.allChanges());
  expect(watcher.take().flatMap(({ removed }) => removed ?? [])).toEqual([{ id: "r0001", reason: "displaced" }]);
  expect(watcher.ids()).toEqual(["r0000", "theirs"]);
  expect(space.engine.record(space.object, DATASET, "r0001")).toMatchObject({ n: 1, x: 1, y: 2 });
});

test("[QUERY-4] [LIVE-2] a total that takes too long to count is counted aside, and again if others write meanwhile", async () => {
  const space = await withRecords(3000, { readTimes: ALWAYS_ASIDE });
  const body = { filter: { n: { $mod: [2, 0] } }, sort: ["n"], limit: 2, includeTotal: true };
  space.hold(true);
  const opening = watch(space, body);
  await loopTurns();
  space.hold(false);
  space.hold(true);
  while (space.heldReads() === 0) await loopTurns();
  expect(space.heldReads()).toBe(1);
  await space.put("r0000", { n: 3 });
  space.hold(false);
  const watcher = await opening;
  expect(watcher.snapshot).toMatchObject({ total: 1499, hasNext: true });
  expect(watcher.ids()).toEqual(["r0002", "r0004"]);
});

test("[LIVE-1] a window that fails ends for its subscribers; the write and the other windows are not concerned", async () => {
  const space = await withRecords(3);
  const healthy = await watch(space, {});
  const failing = await watch(space, { sort: ["n"], limit: 1 });
  space.breakReads(new Error("disk"));
  await space.remove("r0000");
  await loopTurns();
  expect([healthy.ended, failing.ended]).toEqual([undefined, "sdk_closed"]);
  expect(healthy.take()).toHaveLength(1);
  expect(space.live.size).toBe(1);
});

test("[LIVE-2] a window without a limit that takes too long to read is read aside, and is whole when writes go on", async () => {
  const space = await withRecords(2500, { readTimes: ALWAYS_ASIDE });
  await space.put('the "last"', { n: 5000 });
  space.hold(true);
  const body = { filter: { n: { $gte: 0 } }, sort: ["n"], offset: 2, includeTotal: true };
  const opening = [watch(space, body), watch(space, body)];
  const plain = watch(space, {});
  await loopTurns();
  expect(space.heldReads()).toBe(2);
  await space.remove("r0001", "r0002");
  await space.put("first", { n: -1 });
  await space.put("new", { n: 0.5 });
  await space.put('the "last"', { n: 2.5 });
  await space.op("r0003", { type: "$set", path: "n", value: 9999 });
  await space.op("r0004", { type: "$set", path: "n", value: -4 });
  space.hold(false);
  for (const watcher of await Promise.all(opening)) {
    expect([watcher.snapshot.total, watcher.snapshot.hasNext]).toEqual([2499, false]);
    const ids = watcher.snapshot.records.map((text) => (JSON.parse(text) as { id: string }).id);
    expect([ids.length, ...ids.slice(0, 2), ids.at(-1)]).toEqual([2497, 'the "last"', "r0005", "r0003"]);
    expect(watcher.take()).toEqual([]);
  }
  expect((await plain).ids()).toHaveLength(2501);
  await space.put("new", { n: 10_000 });
  const [watcher] = await Promise.all(opening);
  expect(summary(watcher!.take())).toEqual([{ added: ["new"], removed: [{ id: 'the "last"', reason: "displaced" }] }]);
});

test("[LIVE-8] windows that are asked for together wait for a turn of the loop whose time is not spent, so that others go on in between", async () => {
  const space = await withRecords(200, { readTimes: { ...NEVER_ASIDE, turnMs: 0 } });
  const asked = 20;
  const turns = countTurns();
  const watchers = await Promise.all(
    Array.from({ length: asked }, (_, n) => watch(space, { filter: { n: { $gte: n } }, sort: ["n"], limit: 5 })),
  );
  const waited = turns();
  expect(watchers.map((watcher) => watcher.ids()[0])).toEqual(
    Array.from({ length: asked }, (_, n) => `r${String(n).padStart(4, "0")}`),
  );
  expect(waited).toBeGreaterThanOrEqual(asked - 1);
});
