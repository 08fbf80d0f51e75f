/** Windowed subscriptions: the frames, refill, reasons of removal, overflow and drift. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Row } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { openSocket } from "../support/server/raw-http.ts";
import type { ChangesEntry, SseStream } from "../support/server/sse-stream.ts";
import { applyChanges, createNumbered, idsOf, subscribeTo, type Window } from "../support/window.ts";

let spaceId: string;
const shared = useServer({}, async ({ client }) => {
  spaceId = (await createSpace(client)).id;
});

const fresh = (count = 0) => createNumbered(shared.client, spaceId, count);
const subscribe = (items: Collection, body?: JsonObject) => subscribeTo(shared.client, items, body);

/** Everything that arrives until `enough` holds. */
async function gather(stream: SseStream, enough: (entries: ChangesEntry[]) => boolean): Promise<ChangesEntry[]> {
  const entries: ChangesEntry[] = [];
  while (!enough(entries)) entries.push(...(await stream.changes()));
  return entries;
}

describe("changes", () => {
  rule("[LIVE-2] a create arrives as one root $set with the whole record", async () => {
    const items = await fresh();
    await using stream = await subscribe(items);
    await stream.snapshot();
    await items.modify([setFields("a", { n: 1, s: "x" })]);
    const [entry] = await stream.changes();
    expect(entry!.versionId).toBeString();
    expect(entry!.versionId).not.toBe("");
    expect(entry).not.toHaveProperty("updated");
    expect(entry).not.toHaveProperty("removed");
    const [added] = entry!.added!;
    expect(added!.doc).toEqual((await items.find("a"))!);
    expect(added!.ops).toHaveLength(1);
    expect(added!.ops![0]).toMatchObject({ type: "$set", path: [], payload: { n: 1, s: "x" } });
  });

  rule("[LIVE-2] every op arrives as the resulting $set or $unset", async () => {
    const items = await fresh();
    await items.modify([setFields("a", { n: 1, t: ["x"], o: { k: 1 }, s: "gone" })]);
    await using stream = await subscribe(items);
    await stream.snapshot();
    for (const [op, expected] of [
      [
        { type: "$inc", path: "n", value: 4 },
        { type: "$set", path: ["n"], payload: 5 },
      ],
      [
        { type: "$addToSet", path: "t", value: "y" },
        { type: "$set", path: ["t"], payload: ["x", "y"] },
      ],
      [
        { type: "$pull", path: "t", value: "x" },
        { type: "$set", path: ["t"], payload: ["y"] },
      ],
      [
        { type: "$set", path: "o.k", value: 2 },
        { type: "$set", path: ["o", "k"], payload: 2 },
      ],
      [
        { type: "$unset", path: "s" },
        { type: "$unset", path: ["s"] },
      ],
    ] as const) {
      await items.modify([{ id: "a", ops: [{ ...op }] }]);
      const [entry] = await stream.changes();
      expect(idsOf(entry!.updated)).toEqual(["a"]);
      expect(entry!.updated![0]!.ops).toEqual([expect.objectContaining({ ...expected })]);
      expect(entry!.updated![0]!.doc).toEqual((await items.find("a"))!);
    }
  });

  rule("[LIVE-2] many set ops on one field in one write arrive as one $set of what they make", async () => {
    const items = await fresh();
    await items.modify([setFields("a", { t: [0, 0, { k: 1, l: 2 }] })]);
    await using stream = await subscribe(items);
    await stream.snapshot();
    const op = (type: string, value: Json) => ({ type, path: "t", value });
    const numbers = Array.from({ length: 5_000 }, (_, i) => i);
    const ops = [
      op("$addToSet", { l: 2, k: 1 }),
      ...numbers.map((i) => op("$addToSet", i)),
      ...numbers.filter((i) => i % 2 === 0).map((i) => op("$pull", i)),
      op("$addToSet", "1"),
      op("$addToSet", [1]),
      op("$addToSet", null),
      op("$pull", { k: 1, l: 2 }),
      op("$pull", "absent"),
    ];
    await items.modify([{ id: "a", ops }]);
    const expected = [...numbers.filter((i) => i % 2 === 1), "1", [1], null];
    const [entry] = await stream.changes();
    expect(entry!.updated![0]!.ops).toEqual([{ type: "$set", path: ["t"], payload: expected }]);
    expect((await items.find("a"))!["t"]).toEqual(expected);
  });

  rule("[LIVE-2] versionIds ascend bytewise in the order of the writes", async () => {
    const items = await fresh();
    await using stream = await subscribe(items);
    await stream.snapshot();
    const versions: string[] = [];
    for (let i = 0; i < 12; i++) {
      await items.modify([setFields("a", { n: i })]);
      versions.push((await stream.changes())[0]!.versionId);
    }
    expect([...versions].sort()).toEqual(versions);
    expect(new Set(versions).size).toBe(12);
  });

  rule("[LIVE-2] one write with several records is one entry", async () => {
    const items = await fresh(2);
    await using stream = await subscribe(items);
    await stream.snapshot();
    await items.modify([setFields("r0", { n: 10 }), setFields("r1", { n: 11 }), setFields("new", { n: 12 })]);
    const entries = await stream.changes();
    expect(entries).toHaveLength(1);
    expect(idsOf(entries[0]!.updated).sort()).toEqual(["r0", "r1"]);
    expect(idsOf(entries[0]!.added)).toEqual(["new"]);
  });

  rule("[LIVE-2] a write that changes nothing the window sees sends nothing", async () => {
    const items = await fresh(2);
    const other = await fresh(2);
    await using stream = await subscribe(items, { filter: { n: { $lt: 2 } } });
    await stream.snapshot();
    await other.modify([setFields("r0", { n: 1 })]);
    await items.modify([setFields("high", { n: 100 })]);
    await items.modify([{ id: "absent", ops: [{ type: "$set", path: "n", value: 1 }] }]);
    await items.modify([setFields("r0", { n: 1 })]);
    const summaries = (await stream.changes()).map(({ updated, added, removed }) => [idsOf(updated), added, removed]);
    expect(summaries).toEqual([[["r0"], undefined, undefined]]);
  });

  rule(
    "[LIVE-2] writes that were acknowledged before the subscription are in its snapshot, later ones in changes",
    async () => {
      const items = await fresh();
      for (let round = 0; round < 10; round++) {
        await items.modify([setFields(`before-${round}`, { n: round })]);
        await using stream = await subscribe(items, { filter: { n: round } });
        const [snapshot] = await Promise.all([
          stream.snapshot(),
          items.modify([setFields(`during-${round}`, { n: round })]),
        ]);
        const seen = new Set(idsOf(snapshot.records));
        expect(seen.has(`before-${round}`)).toBe(true);
        while (!seen.has(`during-${round}`)) {
          for (const entry of await stream.changes()) for (const id of idsOf(entry.added)) seen.add(id);
        }
      }
    },
  );
});

describe("removal", () => {
  rule("[LIVE-2] [LIVE-3] deleted, filtered-out and displaced are told apart", async () => {
    const items = await fresh(6);
    await using stream = await subscribe(items, { filter: { s: "in" }, sort: ["n"], limit: 3 });
    expect(idsOf((await stream.snapshot()).records)).toEqual(["r0", "r1", "r2"]);

    await items.deleteRecords(["r0"]);
    let [entry] = await stream.changes();
    expect(entry!.removed).toEqual([{ id: "r0", reason: "deleted" }]);
    expect(idsOf(entry!.added)).toEqual(["r3"]); // refilled from the store

    await items.modify([setFields("r1", { s: "out" })]);
    [entry] = await stream.changes();
    expect(entry!.removed).toEqual([{ id: "r1", reason: "filtered-out" }]);
    expect(idsOf(entry!.added)).toEqual(["r4"]);

    await items.modify([setFields("front", { n: -1, s: "in" })]);
    [entry] = await stream.changes();
    expect(idsOf(entry!.added)).toEqual(["front"]);
    expect(entry!.removed).toEqual([{ id: "r4", reason: "displaced" }]);
    expect(idsOf((await items.query({ filter: { s: "in" }, sort: ["n"], limit: 3 })).records)).toEqual([
      "front",
      "r2",
      "r3",
    ]);
  });

  rule("[LIVE-2] a record whose sort key moves past the limit is displaced", async () => {
    const items = await fresh(5);
    await using stream = await subscribe(items, { sort: ["n"], limit: 3 });
    await stream.snapshot();
    await items.modify([setFields("r0", { n: 50 })]);
    const [entry] = await stream.changes();
    expect(entry!.removed).toEqual([{ id: "r0", reason: "displaced" }]);
    expect(idsOf(entry!.added)).toEqual(["r3"]);
  });

  rule("[LIVE-3] the window is [offset, offset + limit): a deletion before it shifts it", async () => {
    const items = await fresh(8);
    await using stream = await subscribe(items, { sort: ["n"], offset: 2, limit: 3 });
    const window: Window = new Map((await stream.snapshot()).records.map((row) => [row.id, row]));
    expect([...window.keys()]).toEqual(["r2", "r3", "r4"]);
    await items.deleteRecords(["r0"]);
    while (![..."345"].every((n) => window.has(`r${n}`))) applyChanges(window, await stream.changes());
    expect([...window.keys()].sort()).toEqual(["r3", "r4", "r5"]);
  });

  rule("[LIVE-2] a record that comes to match is added", async () => {
    const items = await fresh(3);
    await using stream = await subscribe(items, { filter: { n: { $gte: 10 } } });
    expect((await stream.snapshot()).records).toEqual([]);
    await items.modify([setFields("r1", { n: 10 })]);
    const [entry] = await stream.changes();
    expect(idsOf(entry!.added)).toEqual(["r1"]);
    expect(entry!.added![0]!.doc).toMatchObject({ id: "r1", n: 10, s: "in" });
  });
});

describe("local scope", () => {
  rule("[LIVE-2] local writes stream too, with a locally minted versionId", async () => {
    const items = await createCollection(shared.client, spaceId, {
      fields: [
        { key: "n", kind: "number", mutableBy: "any" },
        { key: "mark", kind: "string", scope: "local", mutableBy: "any" },
      ],
    });
    await items.modify([setFields("a", { n: 1 })]);
    await using stream = await subscribe(items);
    await stream.snapshot();
    await items.modify([{ id: "a", ops: [{ type: "$set", path: "mark", value: "here" }] }], { scope: "local" });
    const [entry] = await stream.changes();
    expect(entry!.updated![0]).toMatchObject({ id: "a", doc: { n: 1, mark: "here" } });
    expect(entry!.versionId).not.toBe("");
  });
});

describe("closing", () => {
  rule("[LIVE-3] drifted: more than driftBudgetPercent of the held window left without replacement", async () => {
    const items = await fresh(10);
    await using stream = await shared.client.stream("POST", `${items.path}/query/subscribe`, {
      ...items.target,
      sort: ["n"],
      limit: 10,
      driftBudgetPercent: 30,
    });
    await stream.snapshot();
    await items.deleteRecords(["r0", "r1", "r2", "r3", "r4"]);
    expect((await stream.untilClosed()).reason).toBe("drifted");
  });

  rule("[LIVE-3] a loss within the drift budget, or one that is refilled, does not close the stream", async () => {
    const items = await fresh(40);
    await using stream = await shared.client.stream("POST", `${items.path}/query/subscribe`, {
      ...items.target,
      sort: ["n"],
      limit: 10,
    });
    await stream.snapshot();
    await items.deleteRecords(Array.from({ length: 10 }, (_, i) => `r${i}`)); // the whole window goes, and is refilled
    const entries = await gather(stream, (list) => list.flatMap((entry) => idsOf(entry.added)).length >= 10);
    expect(entries.flatMap((entry) => idsOf(entry.added)).sort()).toEqual(
      Array.from({ length: 10 }, (_, i) => `r${i + 10}`),
    );
    await items.modify([setFields("r10", { s: "told next" })]);
    expect((await stream.changes()).flatMap(({ updated }) => idsOf(updated))).toEqual(["r10"]);
  });

  rule("[LIVE-1] closed is terminal; a new stream's snapshot is the current state", async () => {
    const items = await fresh(10);
    const body = { ...items.target, sort: ["n"], limit: 10, driftBudgetPercent: 10 };
    await using first = await shared.client.stream("POST", `${items.path}/query/subscribe`, body);
    await first.snapshot();
    await items.deleteRecords(["r0", "r1", "r2", "r3", "r4"]);
    await first.untilClosed();
    expect(await first.next(5_000)).toBeUndefined();
    await using second = await shared.client.stream("POST", `${items.path}/query/subscribe`, body);
    expect(idsOf((await second.snapshot()).records)).toEqual(["r5", "r6", "r7", "r8", "r9"]);
  });

  rule(
    "[LIVE-4] a reader that lags ends with overflow or catches up coalesced; it is never silently wrong",
    async () => {
      const items = await fresh(50);
      await using socket = await openSocket(shared.server.port);
      const body = JSON.stringify({ ...items.target, driftBudgetPercent: 100, mailboxCapacity: 16 });
      socket.write(
        `POST ${items.path}/query/subscribe HTTP/1.1\r\nHost: ${shared.server.address}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await socket.readUntil("event: snapshot");
      socket.pause();
      const filler = "x".repeat(4_000);
      for (let round = 0; round < 60; round++) {
        await items.modify(Array.from({ length: 50 }, (_, i) => setFields(`r${i}`, { n: round, s: filler })));
      }
      await items.modify([setFields("last", { n: 1 })]);
      socket.resume();
      const isOver = () => /"reason":"overflow"|"id":"last"/.test(socket.received());
      await until(isOver, "the last change, or the end for overflow", 15_000);
      await shared.client.get("/v1/health");
    },
  );
});

describe("model", () => {
  rule("[LIVE-2] a window kept from frames equals a fresh query after random writes", async () => {
    const { createRng, runSeed } = await import("../support/rng.ts");
    const rng = createRng(runSeed("subscribe model"));
    const items = await fresh(30);
    const query = { filter: { n: { $lt: 60 } }, sort: ["-n", "s"], offset: 2, limit: 9 };
    await using stream = await subscribe(items, query);
    const window: Window = new Map((await stream.snapshot()).records.map((row) => [row.id, row]));
    for (let round = 0; round < 25; round++) {
      const writes = Array.from({ length: rng.int(1, 6) }, async () => {
        const id = `r${rng.int(0, 45)}`;
        if (rng.chance(0.15)) await items.deleteRecords([id]);
        else if (rng.chance(0.3))
          await items.modify([{ id, ops: [{ type: "$inc", path: "n", value: rng.int(-20, 20) }] }]);
        else await items.modify([setFields(id, { n: rng.int(0, 90), s: rng.pick(["in", "out"]) })]);
      });
      await Promise.all(writes);
      const wanted = new Map((await items.query(query)).records.map((row): [string, Row] => [row.id, row]));
      const deadline = Date.now() + 5_000;
      while (!Bun.deepEquals(sorted(window), sorted(wanted)) && Date.now() < deadline) {
        const changes = await stream.changes(5_000).catch(() => undefined);
        if (!changes) break; // what lacks is shown below
        applyChanges(window, changes);
      }
      expect(sorted(window)).toEqual(sorted(wanted));
    }
  });
});

const sorted = (window: Window): Row[] => [...window.values()].sort((a, b) => (a.id < b.id ? -1 : 1));

rule("[LIVE-2] a stream of the objects collection sees what a write to an object does to its row", async () => {
  await using stream = await shared.client.stream("POST", `/v1/spaces/${spaceId}/objects/query/subscribe`, {
    filter: { "svc.name": "streamed" },
    driftBudgetPercent: 100,
  });
  await stream.snapshot();
  const made = await createObject(shared.client, spaceId, { initialProperties: { svc: { name: "streamed" } } });
  expect(idsOf((await stream.changes())[0]!.added)).toEqual([made.id]);
});

describe("objects", () => {
  rule("[LIVE-2] create, change and deletion of an object stream; deletion has an empty versionId", async () => {
    const fresh = await createSpace(shared.client);
    await using stream = await shared.client.stream("POST", `/v1/spaces/${fresh.id}/objects/query/subscribe`, {
      filter: { "svc.name": "watched" },
      driftBudgetPercent: 100,
    });
    expect((await stream.snapshot()).records).toEqual([]);
    const made = await createObject(shared.client, fresh.id, { initialProperties: { svc: { name: "watched" } } });
    const [added] = await stream.changes();
    expect(added!.added).toHaveLength(1);
    expect(added!.added![0]).toMatchObject({ id: made.id, doc: { id: made.id, svc: { name: "watched" } } });

    await shared.client.post(`/v1/spaces/${fresh.id}/properties/${made.id}/set/svc`, {
      patch: { description: "new" },
    });
    const [updated] = await stream.changes();
    expect(updated!.updated![0]).toMatchObject({ id: made.id, doc: { svc: { description: "new" } } });

    await shared.client.del(`/v1/spaces/${fresh.id}/objects/${made.id}`);
    const [removed] = await stream.changes();
    expect(removed).toMatchObject({ versionId: "", removed: [{ id: made.id, reason: "deleted" }] });
  });
});
