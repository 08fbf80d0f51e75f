/** `POST {S}/modify`: what becomes of records, their ids, versions and traces; what is dropped alone. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import type { JsonObject, Rejection, WriteResult } from "../support/server/client.ts";
import { content, createCollection, creationVersion, setFields } from "../support/server/fixtures.ts";
import { op, useItems } from "../support/worlds/items.ts";

const world = useItems();

describe("records", () => {
  rule("[DATA-1] upsert true on an absent id creates", async () => {
    const result = await world.items.modify([setFields("fresh", { n: 1 })]);
    expect(Object.keys(result).sort()).toEqual(["changeId", "recordIds", "versionId"]);
    expect(result.recordIds).toEqual(["fresh"]);
    expect(result.versionId).toBe(result.changeId);
    expect(result.changeId).not.toBe("");
    expect(content(await world.items.find("fresh"))).toEqual({ id: "fresh", n: 1 });
  });

  rule("[DATA-1] a create is all or nothing: one refused op, and nothing is made", async () => {
    const ops = [op("$set", "s", "text"), op("$inc", "s", 1)];
    const refused = await world.items.modify([{ id: "half", upsert: true, ops }]);
    expect(refused.rejections).toEqual([
      { recordIndex: 0, recordId: "half", opIndex: 1, reason: expect.stringContaining("number") },
    ]);
    expect(await world.items.find("half")).toBeUndefined();
    await world.items.modify([setFields("half", { s: "text" })]);
    expect((await world.apply("half", ...ops.toReversed())).rejections).toHaveLength(1);
    expect(await world.items.find("half")).toMatchObject({ s: "text" });
  });

  rule(
    "[DATA-1] a record holds at most 1 MiB of JSON: the op that would pass that is rejected with its reason",
    async () => {
      const id = await world.record();
      const results: (Rejection[] | undefined)[] = [];
      for (const field of ["part1", "part2", "part3"])
        results.push((await world.apply(id, op("$set", field, "x".repeat(400_000)))).rejections);
      expect(results).toEqual([
        undefined,
        undefined,
        [{ recordIndex: 0, recordId: id, opIndex: 0, reason: expect.stringContaining("1048576 bytes") }],
      ]);
    },
  );

  rule("[DATA-1] [DATA-8] upsert true on a present id changes it; the creation version stays", async () => {
    const id = await world.record({ n: 1, s: "kept" });
    const before = await world.items.find(id);
    await world.items.modify([setFields(id, { n: 2 })]);
    const after = await world.items.find(id);
    expect(content(after)).toEqual({ id, n: 2, s: "kept" });
    expect(creationVersion(after)).toBe(creationVersion(before));
  });

  rule("[DATA-1] upsert false on an absent record is a silent no-op: the id is echoed", async () => {
    const result = await world.items.modify([{ id: "never", upsert: false, ops: [op("$set", "n", 1)] }]);
    expect(result.recordIds).toEqual(["never"]);
    expect(result).not.toHaveProperty("rejections");
    expect(await world.items.find("never")).toBeUndefined();
    await world.apply("never", op("$set", "n", 1)); // upsert is false when absent
    expect(await world.items.find("never")).toBeUndefined();
  });

  rule("[DATA-10] several records with one id apply in their order", async () => {
    const id = await world.record();
    const result = await world.items.modify([
      { id, ops: [op("$set", "n", 1)] },
      { id, ops: [op("$inc", "n", 5)] },
      { id, ops: [op("$set", "s", "last")] },
    ]);
    expect(result.recordIds).toEqual([id, id, id]);
    expect(content(await world.items.find(id))).toEqual({ id, n: 6, s: "last" });
  });

  rule(
    "[DATA-10] a wide record that one request names thousands of times ends as if each part had come by itself",
    async () => {
      const set = await createCollection(world.client, world.items.spaceId, { dynamic: true });
      const numbers = Array.from({ length: 5_000 }, (_, i) => i);
      const wide = Object.fromEntries(numbers.map((i) => [`f${i}`, i]));
      await set.modify([setFields("wide", wide)]);
      const parts = numbers.map((i) => ({ id: "wide", ops: [{ type: "$inc", path: `f${i}`, value: i + 0.5 }] }));
      const others = [setFields("other", { n: 1 }), { id: "wide", ops: [{ type: "$inc", path: "f0.x", value: 1 }] }];
      const written = await set.modify([...parts, ...others, setFields("other", { n: 2 })]);
      expect(written.rejections).toMatchObject([{ recordIndex: 5_001, recordId: "wide", opIndex: 0 }]);
      const doubled = Object.fromEntries(numbers.map((i) => [`f${i}`, 2 * i + 0.5]));
      expect(content(await set.find("wide"))).toEqual({ id: "wide", ...doubled });
      const again = await set.upsert(numbers.map((i) => ({ id: "wide", fields: { [`f${i}`]: -i } })));
      expect(again).toMatchObject({ updated: 5_000, rejections: [] });
      expect(await set.find("wide")).toMatchObject({ f0: 0, f4999: -4_999 });
      expect(content(await set.find("other"))).toEqual({ id: "other", n: 2 });
    },
  );

  rule("[DATA-1] record ids come back in input order", async () => {
    const ids = ["zz", "aa", "mm"];
    const result = await world.items.modify(ids.map((id) => setFields(id, { n: 1 })));
    expect(result.recordIds).toEqual(ids);
  });

  rule("[DATA-1] rejections carry the index of their record", async () => {
    const [good, bad] = [await world.record({ n: 1 }), await world.record({ s: "text" })];
    const result = await world.items.modify([
      { id: good, ops: [op("$inc", "n", 1)] },
      { id: bad, ops: [op("$set", "b", true), op("$inc", "s", 1)] },
    ]);
    expect(result.rejections).toHaveLength(1);
    expect(result.rejections![0]).toMatchObject({
      recordIndex: 1,
      recordId: bad,
      opIndex: 1,
      reason: expect.any(String),
    });
    expect(content(await world.items.find(good))).toEqual({ id: good, n: 2 });
    expect(content(await world.items.find(bad))).toEqual({ id: bad, s: "text", b: true });
  });

  rule(
    "[DATA-9] a write on a tombstone is a whole-record rejection (opIndex -1); the id is never reusable",
    async () => {
      const id = await world.record({ n: 1 });
      await world.items.deleteRecords([id]);
      for (const upsert of [true, false]) {
        const result = await world.items.modify([setFields(id, { n: 2 }, upsert)]);
        expect(result.rejections).toHaveLength(1);
        expect(result.rejections![0] as Rejection).toMatchObject({ recordIndex: 0, recordId: id, opIndex: -1 });
        expect(await world.items.find(id)).toBeUndefined();
      }
    },
  );

  rule(
    "[DATA-1] a create is all or nothing: an op that is refused makes no record, and others of the request stand",
    async () => {
      const create = (id: string, ops: JsonObject[]): JsonObject => ({ id, upsert: true, ops });
      const good = [op("$set", "n", 1), op("$set", "s", "x")];
      for (const [name, bad] of [
        ["kind", op("$set", "n", "one")],
        ["inc", op("$inc", "s", 1)],
        ["many", op("$set", "", { s: 5 })],
      ] as const) {
        const [refused, made] = [`all-${name}`, `made-${name}`];
        const result = await world.items.modify([create(refused, [...good, bad]), create(made, good)]);
        expect(result.rejections).toHaveLength(1);
        expect(result.rejections![0]).toMatchObject({ recordIndex: 0, recordId: refused, opIndex: 2 });
        expect(result.rejections![0]!.reason).not.toBe("");
        expect(await world.items.find(refused)).toBeUndefined();
        expect(content(await world.items.find(made))).toEqual({ id: made, n: 1, s: "x" });
        // The id is free: what was not made can be made.
        expect((await world.items.modify([create(refused, good)])).rejections).toBeUndefined();
        // On a record that exists the refused op alone is dropped.
        const later = await world.items.modify([create(refused, [op("$set", "n", 2), bad])]);
        expect(later.rejections).toHaveLength(1);
        expect(content(await world.items.find(refused))).toEqual({ id: refused, n: 2, s: "x" });
      }
    },
  );

  rule("[TYPE-3] write-once fields can be set by the creating change only", async () => {
    const once = await createCollection(world.client, world.items.spaceId, {
      fields: [
        { key: "first", kind: "string" },
        { key: "n", kind: "number", mutableBy: "any" },
      ],
    });
    await once.modify([setFields("a", { first: "x", n: 1 })]);
    const result = await once.modify([{ id: "a", ops: [op("$set", "first", "y"), op("$set", "n", 2)] }]);
    expect(result.rejections!.map((entry) => entry.opIndex)).toEqual([0]);
    expect(content(await once.find("a"))).toEqual({ id: "a", first: "x", n: 2 });
  });

  rule("[TYPE-3] a value of another kind than its field's is never stored", async () => {
    const id = await world.record({ n: 1, s: "a" });
    for (const [path, value] of [
      ["n", "one"],
      ["s", 5],
      ["b", "true"],
      ["t", { a: 1 }],
      ["o", [1]],
      ["d", "2026-01-31"],
    ] as const) {
      const reply = await world.client.request("POST", `${world.items.path}/modify`, {
        body: { ...world.items.target, records: [{ id, ops: [op("$set", path, value)] }] },
      });
      const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
      expect([path, refused]).toEqual([path, true]);
    }
    expect(content(await world.items.find(id))).toEqual({ id, n: 1, s: "a" });
  });

  rule("[API-7] a datetime is stored as UTC with milliseconds, whatever form it came in", async () => {
    const id = await world.record();
    for (const given of ["2026-01-31T10:30:00+01:00", "2026-01-31T09:30:00Z", Date.UTC(2026, 0, 31, 9, 30)]) {
      await world.apply(id, op("$set", "d", { $date: given }));
      expect(content(await world.items.find(id))).toEqual({ id, d: { $date: "2026-01-31T09:30:00.000Z" } });
    }
  });

  rule("[API-15] numbers and text come back as they were given", async () => {
    const id = await world.record();
    const values = { s: 'nul \u0000 tab \t quote " back \\ line\n astral \u{1F9ED} lone', n: 0.1 + 0.2 };
    await world.apply(id, op("$set", "", values));
    expect(content(await world.items.find(id))).toEqual({ id, ...values });
    for (const n of [Number.MAX_SAFE_INTEGER, -0, 1e308, 5e-324, -123456.789]) {
      await world.apply(id, op("$set", "n", n));
      expect(((await world.items.find(id))!["n"] as number) === n).toBe(true);
    }
  });
});

describe("ids", () => {
  rule(
    "[DATA-4] an empty id is given by the server: base58, at most 11 characters, then /1, /2 in one batch",
    async () => {
      const auto = await createCollection(world.client, world.items.spaceId, { idRule: "auto" });
      const blank = (n: number): JsonObject => ({ id: "", upsert: true, ops: [op("$set", "n", n)] });
      const result = await auto.modify([blank(0), blank(1), blank(2)]);
      const [first] = result.recordIds;
      expect(first).toMatch(/^[1-9A-HJ-NP-Za-km-z]{1,11}$/);
      expect(result.recordIds).toEqual([first!, `${first}/1`, `${first}/2`]);
      for (const [index, id] of result.recordIds.entries()) expect(await auto.find(id)).toMatchObject({ id, n: index });
      const again = await auto.modify([blank(3)]);
      expect(again.recordIds[0]).not.toBe(first);
    },
  );

  rule("[DATA-4] an empty id without upsert is refused", async () => {
    const auto = await createCollection(world.client, world.items.spaceId, { idRule: "auto" });
    const body = { ...auto.target, records: [{ id: "", ops: [op("$set", "n", 1)] }] };
    const reply = await world.client.request("POST", `${auto.path}/modify`, { body });
    expect(reply.status).toBe(400);
    expect((await auto.query({})).records).toEqual([]);
  });

  rule("[DATA-4] an auto-id dataset refuses ids of the client's choosing", async () => {
    const auto = await createCollection(world.client, world.items.spaceId, { idRule: "auto" });
    const body = { ...auto.target, records: [setFields("mine", { n: 1 })] };
    const reply = await world.client.request("POST", `${auto.path}/modify`, { body });
    const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
    expect(refused).toBe(true);
    expect(await auto.find("mine")).toBeUndefined();
  });

  rule("[API-15] record ids that look like paths, SQL or prototypes are plain ids", async () => {
    const plain = await createCollection(world.client, world.items.spaceId, { idPattern: ".+" });
    const ids = ["a.b", "a/b", "'; DROP TABLE rows; --", "__proto__", "constructor", "$set", "ключ", "\u{1F9ED}"];
    await plain.modify(ids.map((id) => setFields(id, { s: id })));
    for (const id of ids) expect(await plain.find(id)).toMatchObject({ id, s: id });
  });
});

describe("versions and traces", () => {
  rule("[DATA-8] a written path gets the version of its change, later versions compare greater bytewise", async () => {
    const id = await world.record({ n: 1, s: "a" });
    const versionAt = async (path: string): Promise<string> => {
      const tree = (await world.items.find(id))!["_ver"] as JsonObject;
      const own = tree[path] ?? tree["*"];
      return typeof own === "string" ? own : JSON.stringify(own);
    };
    const [n1, s1] = [await versionAt("n"), await versionAt("s")];
    await world.apply(id, op("$set", "n", 2));
    const [n2, s2] = [await versionAt("n"), await versionAt("s")];
    expect(n2 > n1).toBe(true);
    expect(s2).toBe(s1);
    await world.apply(id, op("$set", "n", 3));
    expect((await versionAt("n")) > n2).toBe(true);
  });

  rule("[DATA-8] so many trace ids and no more, so long and no longer", async () => {
    const most = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(256, "x"));
    await world.items.modify([setFields("most", { n: 1 })], { traceIds: most });
    const body = {
      objectId: world.items.objectId,
      dataset: world.items.dataset,
      records: [setFields("more", { n: 1 })],
    };
    const path = `${world.items.path}/modify`;
    const refused = async (traceIds: string[]) =>
      (await world.client.fails("POST", path, { ...body, traceIds }, 400, "request.invalid_field")).details;
    expect(await refused([...most, "x"])).toMatchObject({ field: "traceIds", reason: expect.stringContaining("32") });
    expect(await refused(["x".repeat(257)])).toMatchObject({ reason: expect.stringContaining("256") });
    expect(await world.items.find("more")).toBeUndefined();
  });

  rule("[DATA-8] traceIds are kept under the version they came with", async () => {
    const result = await world.items.modify([setFields("traced", { n: 1 })], { traceIds: ["run-1", "step-2"] });
    const row = (await world.items.find("traced"))!;
    const traces = row["_traces"] as JsonObject;
    expect(Object.values(traces)).toEqual([["run-1", "step-2"]]);
    expect(Object.keys(traces)).toHaveLength(1);
    expect(result).not.toHaveProperty("rejections");
    expect(await world.items.find(await world.record())).not.toHaveProperty("_traces");
  });

  rule("[DATA-1] changeIds are unique, also when many writes arrive at once", async () => {
    const id = await world.record({ n: 0 });
    const results = await Promise.all(Array.from({ length: 50 }, () => world.apply(id, op("$inc", "n", 1))));
    expect(new Set(results.map((result) => result.changeId)).size).toBe(50);
    expect((await world.items.find(id))!["n"]).toBe(50);
  });
});
