import { expect, test } from "bun:test";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import { DATASET, watch } from "../../../test/support/worlds/live-space.ts";
import { summary, useLiveSpaces } from "../../../test/support/worlds/live-spaces.ts";
import type { JsonObject } from "../../protocol/json.ts";

const { openSpace, withRecords } = useLiveSpaces();

test("[LIVE-2] a create, an update and a delete arrive with their ops and the write's version", async () => {
  const space = await openSpace();
  const watcher = await watch(space, {});
  expect(watcher.snapshot).toEqual({ records: [] });
  await space.put("a", { n: 1, "deep.x": "y" });
  const [created] = watcher.take();
  const stored = space.engine.record(space.object, DATASET, "a")!;
  expect(created).toEqual({
    versionId: (stored["_ver"] as JsonObject)["id"] as string,
    added: [{ id: "a", doc: stored, ops: [{ type: "$set", path: [], payload: { n: 1, "deep.x": "y" } }] }],
  });

  await space.op("a", { type: "$inc", path: "n", value: 4 }, { type: "$unset", path: "deep.x" });
  const [updated] = watcher.take();
  expect(updated?.updated?.[0]?.ops).toEqual([
    { type: "$set", path: ["n"], payload: 5 },
    { type: "$unset", path: ["deep", "x"] },
  ]);
  expect(updated?.updated?.[0]?.doc).toMatchObject({ id: "a", n: 5, deep: {} });

  await space.remove("a");
  expect(summary(watcher.take())).toEqual([{ removed: [{ id: "a", reason: "deleted" }] }]);
  expect(watcher.take()).toEqual([]);
});

test("[LIVE-2] a collection that nothing was ever written to can be watched", async () => {
  const space = await openSpace();
  const watcher = await watch(space, { sort: ["n"], limit: 1, includeTotal: true });
  expect(watcher.snapshot).toEqual({ records: [], total: 0, hasNext: false });
  await space.put("a", { n: 1 });
  expect(summary(watcher.take())).toEqual([{ added: ["a"] }]);
});

test("[LIVE-2] filtered-out, and back in", async () => {
  const space = await openSpace();
  await space.put("a", { state: "open" });
  const watcher = await watch(space, { filter: { state: "open" } });
  await space.op("a", { type: "$set", path: "state", value: "done" });
  expect(summary(watcher.take())).toEqual([{ removed: [{ id: "a", reason: "filtered-out" }] }]);
  await space.op("a", { type: "$set", path: "state", value: "open" });
  expect(watcher.take()).toMatchObject([{ added: [{ id: "a", ops: [{ type: "$set", path: ["state"] }] }] }]);
});

test("[LIVE-2] [LIVE-3] a record pushed past the limit is displaced, and its neighbour returns when one leaves", async () => {
  const space = await withRecords(3);
  const watcher = await watch(space, { sort: ["n"], limit: 2 });
  expect(watcher.ids()).toEqual(["r0000", "r0001"]);
  await space.put("new", { n: 0.5 });
  expect(summary(watcher.take())).toEqual([{ added: ["new"], removed: [{ id: "r0001", reason: "displaced" }] }]);
  await space.remove("r0000");
  expect(summary(watcher.take())).toEqual([{ added: ["r0001"], removed: [{ id: "r0000", reason: "deleted" }] }]);
  await space.op("new", { type: "$set", path: "n", value: 9 });
  expect(summary(watcher.take())).toEqual([{ added: ["r0002"], removed: [{ id: "new", reason: "displaced" }] }]);
});

test("[LIVE-2] a move within the window is an update", async () => {
  const space = await withRecords(3);
  const watcher = await watch(space, { sort: ["n"], limit: 3 });
  await space.op("r0000", { type: "$set", path: "n", value: 1.5 });
  expect(summary(watcher.take())).toEqual([{ updated: ["r0000"] }]);
});

test("[LIVE-3] the offset hides the first matches, whichever they are", async () => {
  const space = await withRecords(5);
  const bounded = await watch(space, { sort: ["n"], offset: 1, limit: 2 });
  const unbounded = await watch(space, { sort: ["n"], offset: 2 });
  expect(bounded.ids()).toEqual(["r0001", "r0002"]);
  expect(unbounded.ids()).toEqual(["r0002", "r0003", "r0004"]);
  await space.remove("r0000");
  expect(summary(bounded.take())).toEqual([{ added: ["r0003"], removed: [{ id: "r0001", reason: "displaced" }] }]);
  expect(summary(unbounded.take())).toEqual([{ removed: [{ id: "r0002", reason: "displaced" }] }]);
  await space.put("first", { n: -1 });
  expect(bounded.take()).toHaveLength(1);
  expect(unbounded.take()).toHaveLength(1);
  expect([bounded.ids(), unbounded.ids()]).toEqual([
    ["r0001", "r0002"],
    ["r0002", "r0003", "r0004"],
  ]);
});

test("[LIVE-3] many rows leave at once: the window is refilled from the store in the same frame", async () => {
  const space = await withRecords(60);
  const watcher = await watch(space, { sort: ["n"], limit: 10 });
  await space.remove(...Array.from({ length: 40 }, (_, n) => `r${String(n).padStart(4, "0")}`));
  expect(watcher.take()).toHaveLength(1);
  expect(watcher.ids()).toEqual(Array.from({ length: 10 }, (_, n) => `r00${n + 40}`));
  expect(watcher.ended).toBeUndefined();
});

test("[LIVE-2] one entry a write, also when several are committed together", async () => {
  const space = await openSpace();
  const watcher = await watch(space, {});
  await Promise.all([space.put("a", { n: 1 }), space.put("b", { n: 2 }), space.put("a", { n: 3 })]);
  const entries = watcher.take();
  expect(summary(entries)).toEqual([{ added: ["b"] }, { added: ["a"] }]);
  expect(entries[1]?.added?.[0]?.doc).toMatchObject({ n: 3 });
  expect(new Set(entries.map(({ versionId }) => versionId)).size).toBe(2);
});

test("[LIVE-2] what cannot be sent is coalesced: created and deleted leaves no trace, updates merge their ops", async () => {
  const space = await withRecords(1);
  const watcher = await watch(space, {});
  await space.put("gone", { n: 1 });
  await space.op("r0000", { type: "$set", path: "x", value: 1 });
  await space.op("r0000", { type: "$set", path: "y", value: 2 });
  await space.op("r0000", { type: "$set", path: "x", value: 3 });
  await space.remove("gone");
  const entries = watcher.take();
  expect(summary(entries)).toEqual([{ updated: ["r0000"] }]);
  expect(entries[0]?.updated?.[0]?.ops).toEqual([
    { type: "$set", path: ["y"], payload: 2 },
    { type: "$set", path: ["x"], payload: 3 },
  ]);
});

test("[LIVE-2] local-scope writes stream too, with a version of their own", async () => {
  const space = await withRecords(1);
  const watcher = await watch(space, { filter: { unread: true } });
  await space.setLocal("r0000", { unread: true });
  const [entry] = watcher.take();
  expect(entry?.added?.[0]?.ops).toEqual([{ type: "$set", path: ["unread"], payload: true }]);
  expect(entry?.versionId).not.toBe("");
  await space.setLocal("r0000", { unread: undefined });
  expect(summary(watcher.take())).toEqual([{ removed: [{ id: "r0000", reason: "filtered-out" }] }]);
});

test("[LIVE-2] an object's deletion removes its row, and the records of its datasets, with an empty version", async () => {
  const space = await withRecords(4);
  const objects = await watch(space, { filter: { "svc.name": "thing" } }, "objects");
  const windows = [
    await watch(space, {}),
    await watch(space, { filter: { n: { $gt: 0 } }, sort: ["n"], offset: 1 }),
    await watch(space, { sort: ["n"], limit: 2, offset: 1 }),
  ];
  await space.put("late", { n: 9 });
  await space.deleteObject();
  expect(objects.take().at(-1)).toEqual({ versionId: "", removed: [{ id: space.object.idText, reason: "deleted" }] });
  for (const watcher of windows) {
    const entries = watcher.take();
    expect(entries.at(-1)?.versionId).toBe("");
    expect(entries.flatMap(({ removed }) => removed ?? []).every(({ reason }) => reason === "deleted")).toBeTrue();
    expect(watcher.ids()).toEqual([]);
  }
  expect(windows[0]?.ended).toBeUndefined();
  await expect(watch(space, {})).rejects.toMatchObject({ code: "object.not_found" });
});

test("[LIVE-2] the collection of all objects: create, rename, deletion of another", async () => {
  const space = await openSpace();
  const watcher = await watch(space, { filter: { "svc.name": "box" }, sort: ["svc.name"], limit: 5 }, "objects");
  const box = await space.createObject({ "svc.name": "box" });
  await space.createObject({ "svc.name": "other" });
  expect(summary(watcher.take())).toEqual([{ added: [box.idText] }]);
  await space.deleteObject(box);
  expect(watcher.take()).toEqual([{ versionId: "", removed: [{ id: box.idText, reason: "deleted" }] }]);
});

test("[LIVE-2] snapshot and registration are of one version while writes go on", async () => {
  const space = await withRecords(20);
  const writing = (async () => {
    for (let n = 100; n < 200; n++) await space.put(`w${n}`, { n });
  })();
  const watchers: Awaited<ReturnType<typeof watch>>[] = [];
  for (let at = 0; at < 30; at++) {
    watchers.push(await watch(space, at % 2 === 0 ? {} : { sort: ["-n"], limit: 7 }));
    await Bun.sleep(0);
  }
  await writing;
  for (const [at, watcher] of watchers.entries()) {
    watcher.take();
    const fresh = space.query(space.collection, at % 2 === 0 ? {} : { sort: ["-n"], limit: 7 });
    expect(watcher.ids()).toEqual(fresh.map((doc) => doc["id"] as string).sort());
  }
});

test("[QUERY-4] total counts all matches, hasNext those behind the window", async () => {
  const space = await withRecords(9);
  const body = { filter: { n: { $gte: 2 } }, sort: ["n"], limit: 3, offset: 1, includeTotal: true };
  const { snapshot } = await watch(space, body);
  expect(snapshot).toMatchObject({ total: 7, hasNext: true });
  expect((await watch(space, { ...body, offset: 4 })).snapshot).toMatchObject({ total: 7, hasNext: false });
  expect((await watch(space, { filter: { n: 3 }, includeTotal: true })).snapshot).toMatchObject({
    total: 1,
    hasNext: false,
  });
});

test("[LIVE-2] one window for the same query; a late subscriber starts from now", async () => {
  const space = await withRecords(5);
  const body = { filter: { n: { $lt: 4 } }, sort: ["-n"], limit: 2 };
  const early = await watch(space, body);
  await space.op("r0003", { type: "$set", path: "n", value: 0 });
  const late = await watch(space, body);
  expect(late.ids()).toEqual(["r0001", "r0002"]);
  expect(late.take()).toEqual([]);
  await space.op("r0001", { type: "$set", path: "x", value: 1 });
  expect(summary(late.take())).toEqual([{ updated: ["r0001"] }]);
  early.take();
  expect(early.docs).toEqual(late.docs);
});

test("those who lag equally are handed the same bytes", async () => {
  const space = await withRecords(3);
  const watchers = await Promise.all([watch(space, {}), watch(space, {}), watch(space, {})]);
  await space.put("a", { n: 1 });
  const [first, second] = watchers.slice(0, 2).map((watcher) => watcher.subscription.take());
  expect(first).toBeDefined();
  expect(second).toBe(first!);
  await space.put("b", { n: 1 });
  expect(watchers[2]?.take()).toHaveLength(2);
  expect(watchers[0]?.take()).toHaveLength(1);
});

test("[LIVE-2] subscribers are called once, after the write was answered, until they have taken", async () => {
  const space = await openSpace();
  const watcher = await watch(space, {});
  await space.put("a", { n: 1 });
  expect(watcher.changed).toBe(0);
  await loopTurns();
  expect(watcher.changed).toBe(1);
  await space.put("b", { n: 1 });
  await loopTurns();
  expect(watcher.changed).toBe(1);
  watcher.take();
  await space.put("c", { n: 1 });
  await loopTurns();
  expect(watcher.changed).toBe(2);
});

test("[LIVE-4] more entries than the mailbox takes end a subscriber that lags, and only that one", async () => {
  const space = await openSpace();
  const slow = await watch(space, { mailboxCapacity: 16 });
  const roomy = await watch(space, { mailboxCapacity: 64 });
  const prompt = await watch(space, { mailboxCapacity: 16 });
  for (let n = 0; n < 16; n++) {
    await space.put(`a${n}`, { n });
    prompt.take();
  }
  expect(slow.ended).toBeUndefined();
  await space.put("one more", { n: 0 });
  await loopTurns();
  expect([slow.ended, roomy.ended, prompt.ended]).toEqual(["overflow", undefined, undefined]);
  expect(slow.subscription.take()).toBeUndefined();
  expect(roomy.take()).toHaveLength(17);
});

test("[LIVE-4] updates of the same record take one place", async () => {
  const space = await withRecords(1);
  const slow = await watch(space, { mailboxCapacity: 16 });
  for (let n = 0; n < 50; n++) await space.op("r0000", { type: "$set", path: `f${n % 4}`, value: n });
  await loopTurns();
  expect(slow.ended).toBeUndefined();
  expect(slow.take()).toHaveLength(1);
});

test("[LIVE-4] whatever one commit brings fits into an empty mailbox", async () => {
  const space = await openSpace();
  const watcher = await watch(space, { mailboxCapacity: 16 });
  await space.together(
    Array.from({ length: 40 }, (_, n) => [
      { id: `p${n}`, upsert: true, ops: [{ type: "$set", path: "", value: { n } }] },
    ]),
  );
  await loopTurns();
  expect(watcher.ended).toBeUndefined();
  expect(watcher.take()).toHaveLength(40);
});

test("[LIVE-1] closing the engine's live queries ends every subscription", async () => {
  const space = await withRecords(2);
  const watchers = [await watch(space, {}), await watch(space, { sort: ["n"], limit: 1 })];
  expect(space.live.size).toBe(2);
  space.live.close();
  expect(watchers.map(({ ended }) => ended)).toEqual(["sdk_closed", "sdk_closed"]);
  expect(space.live.size).toBe(0);
  await expect(watch(space, {})).rejects.toMatchObject({ code: "server.unavailable" });
});

test("[LIVE-1] a closed subscription is told nothing more and its window is forgotten", async () => {
  const space = await withRecords(2);
  const watcher = await watch(space, { sort: ["n"], limit: 1 });
  await space.put("a", { n: -1 });
  watcher.subscription.close();
  watcher.subscription.close();
  await loopTurns();
  expect(watcher.changed).toBe(0);
  expect(watcher.subscription.take()).toBeUndefined();
  expect(space.live.size).toBe(0);
});

test("subscribing within a write is refused", async () => {
  const space = await openSpace();
  const outcome = Promise.withResolvers<unknown>();
  await space.engine.write(() => {
    const sink = { changed: () => {}, ended: () => {} };
    outcome.resolve(space.live.subscribe(space.collection, {}, sink).catch((error: unknown) => error));
  });
  expect(await outcome.promise).toBeInstanceOf(Error);
});

test("[LIVE-3] a window whose filter takes long on what was written ends as drifted, and holds up no other", async () => {
  const space = await openSpace();
  const dear = { s: { $regex: "a[ab]{900}d$" } };
  const [whole, first, other] = [
    await watch(space, { filter: dear }),
    await watch(space, { filter: dear, sort: ["n"], limit: 1 }),
    await watch(space, { filter: { s: { $regex: "^b" } } }),
  ];
  await space.put("short", { s: "b" });
  expect(summary(other.take())).toEqual([{ added: ["short"] }]);
  await space.put("long", { s: "b".repeat(200_000) });
  await loopTurns();
  expect([whole.ended, first.ended, other.ended]).toEqual(["drifted", "drifted", undefined]);
  expect(summary(other.take())).toEqual([{ added: ["long"] }]);
  expect(space.live.size).toBe(1);
});
