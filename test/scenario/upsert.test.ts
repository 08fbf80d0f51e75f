/** `POST {S}/upsert`: pages, skipped detection, write-once, rejections. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, UpsertRejection } from "../support/server/client.ts";
import {
  type Collection,
  content,
  createCollection,
  createSpace,
  creationVersion,
} from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { createWriteOnce, rowsOf } from "../support/worlds/items.ts";

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id);
});
const fresh = () => createWriteOnce(shared.client, items.spaceId);

describe("upsert", () => {
  rule("[DATA-3] creates, updates what differs, skips what is equal", async () => {
    const set = await fresh();
    const first = await set.upsert(rowsOf(3, (i) => ({ n: i, s: "a" })));
    expect(first).toMatchObject({ created: 3, updated: 0, skipped: 0 });
    expect(first.pages).toHaveLength(1);
    expect(first.pages[0]).toMatchObject({ recordIds: ["r0", "r1", "r2"] });
    expect(first.pages[0]!.versionId).toBe(first.pages[0]!.changeId);
    const second = await set.upsert([
      { id: "r0", fields: { n: 0, s: "a" } },
      { id: "r1", fields: { n: 100, s: "a" } },
      { id: "r9", fields: { n: 9 } },
    ]);
    expect(second).toMatchObject({ created: 1, updated: 1, skipped: 1 });
    expect(content(await set.find("r1"))).toEqual({ id: "r1", n: 100, s: "a" });
  });

  rule("[DATA-3] an identical rerun changes nothing: pages [] and every record skipped", async () => {
    const set = await fresh();
    const records = rowsOf(20, (i) => ({ n: i, s: `${i}` }));
    await set.upsert(records);
    const before = (await set.query({ sort: ["id"] })).records;
    const again = await set.upsert(records);
    expect(again).toMatchObject({ pages: [], created: 0, updated: 0, skipped: 20 });
    expect((await set.query({ sort: ["id"] })).records).toEqual(before);
  });

  rule("[DATA-3] fields absent from the payload are not removed", async () => {
    const set = await fresh();
    await set.upsert([{ id: "a", fields: { n: 1, s: "kept" } }]);
    await set.upsert([{ id: "a", fields: { n: 2 } }]);
    expect(content(await set.find("a"))).toEqual({ id: "a", n: 2, s: "kept" });
  });

  rule("[DATA-3] [DATA-8] only the changed field gets a new version; the creation version stays", async () => {
    const set = await fresh();
    await set.upsert([{ id: "a", fields: { n: 1, s: "kept" } }]);
    const before = (await set.find("a"))!;
    await set.upsert([{ id: "a", fields: { n: 2, s: "kept" } }]);
    const after = (await set.find("a"))!;
    const versionAt = (row: JsonObject, path: string): unknown =>
      (row["_ver"] as JsonObject)[path] ?? (row["_ver"] as JsonObject)["*"];
    expect(versionAt(after, "s")).toBe(versionAt(before, "s"));
    expect(versionAt(after, "n")).not.toBe(versionAt(before, "n"));
    expect(creationVersion(after)).toBe(creationVersion(before));
  });

  rule("[DATA-3] pages of pageSize records, one change each; 500 by default", async () => {
    const set = await fresh();
    const paged = await set.upsert(
      rowsOf(25, (i) => ({ n: i })),
      { pageSize: 10 },
    );
    expect(paged.pages.map((page) => page.recordIds.length)).toEqual([10, 10, 5]);
    expect(new Set(paged.pages.map((page) => page.changeId)).size).toBe(3);
    expect(paged.pages.flatMap((page) => page.recordIds)).toEqual(rowsOf(25, () => ({})).map((row) => row.id));
    const large = await fresh();
    const bulk = await large.upsert(rowsOf(1_201, (i) => ({ n: i })));
    expect(bulk.pages.map((page) => page.recordIds.length)).toEqual([500, 500, 201]);
    expect((await large.query({ includeTotal: true, limit: 1, sort: ["id"] })).total).toBe(1_201);
  });

  rule("[DATA-3] pages that change nothing emit no change", async () => {
    const set = await fresh();
    await set.upsert(rowsOf(20, (i) => ({ n: i })));
    const changed = await set.upsert(
      rowsOf(20, (i) => ({ n: i < 10 ? i : -i })),
      { pageSize: 10 },
    );
    expect(changed).toMatchObject({ skipped: 10, updated: 10, created: 0 });
    expect(changed.pages).toHaveLength(1);
  });

  const rejectionsOf = async (
    set: Collection,
    records: { id: string; fields: JsonObject }[],
  ): Promise<UpsertRejection[]> => (await set.upsert(records)).rejections ?? [];

  rule("[DATA-3] a differing write-once field is rejected, the stored value kept", async () => {
    const set = await fresh();
    await set.upsert([{ id: "a", fields: { once: "first", n: 1 } }]);
    const rejections = await rejectionsOf(set, [
      { id: "b", fields: { once: "x" } },
      { id: "a", fields: { once: "second", n: 1 } },
    ]);
    expect(rejections).toHaveLength(1);
    expect(rejections[0]).toMatchObject({
      index: 1,
      id: "a",
      code: "upsert.immutable_field",
      reason: expect.any(String),
    });
    expect(await set.find("a")).toMatchObject({ once: "first" });
    expect(await rejectionsOf(set, [{ id: "a", fields: { once: "first" } }])).toEqual([]);
  });

  rule("[DATA-3] [DATA-9] a tombstone is never revived", async () => {
    const set = await fresh();
    await set.upsert([{ id: "a", fields: { n: 1 } }]);
    await set.deleteRecords(["a"]);
    const result = await set.upsert([
      { id: "a", fields: { n: 2 } },
      { id: "b", fields: { n: 2 } },
    ]);
    expect(result).toMatchObject({ created: 1 });
    expect(result.rejections).toMatchObject([{ index: 0, id: "a", code: "upsert.record_deleted" }]);
    expect(await set.find("a")).toBeUndefined();
  });

  rule(
    "[DATA-3] a missing required field, an undeclared field, a stamped field, an id outside the pattern",
    async () => {
      const set = await createCollection(shared.client, items.spaceId, {
        idPattern: "[a-z]+",
        idMaxLen: 5,
        fields: [
          { key: "need", kind: "string", required: true, mutableBy: "any" },
          { key: "at", kind: "datetime", stamp: "createTime" },
        ],
      });
      const result = await set.upsert([
        { id: "good", fields: { need: "x" } },
        { id: "lacks", fields: {} },
        { id: "more", fields: { need: "x", other: 1 } },
        { id: "stamp", fields: { need: "x", at: { $date: "2020-01-01T00:00:00.000Z" } } },
        { id: "UPPER", fields: { need: "x" } },
        { id: "toolong", fields: { need: "x" } },
        { id: "goodx", fields: { need: "y" } },
      ]);
      expect(result).toMatchObject({ created: 2 });
      expect(result.rejections!.map((entry) => [entry.index, entry.id, entry.code])).toEqual([
        [1, "lacks", "upsert.rejected"],
        [2, "more", "upsert.rejected"],
        [3, "stamp", "upsert.rejected"],
        [4, "UPPER", "upsert.rejected"],
        [5, "toolong", "upsert.rejected"],
      ]);
      expect((await set.query({ sort: ["id"] })).records.map((row) => row.id)).toEqual(["good", "goodx"]);
    },
  );

  rule("[TYPE-3] the default pattern: [A-Za-z0-9._:-]+ over the whole id, at most 128 long", async () => {
    const set = await fresh();
    const ids = ["ok._:-9", "x".repeat(128), "x".repeat(129), "a/b", "a b", "é"];
    const result = await set.upsert(ids.map((id) => ({ id, fields: { n: 1 } })));
    expect(result.created).toBe(2);
    expect(result.rejections!.map((entry) => entry.index)).toEqual([2, 3, 4, 5]);
  });

  rule("[DATA-3] one bad record never costs the others of its page", async () => {
    const set = await fresh();
    const records = rowsOf(50, (i) => (i % 10 === 3 ? { bogus: 1 } : { n: i }));
    const result = await set.upsert(records);
    expect(result).toMatchObject({ created: 45 });
    expect(result.rejections).toHaveLength(5);
  });

  rule("[DATA-3] a page with refusals and two entries of one record is one change", async () => {
    const set = await fresh();
    const result = await set.upsert([
      { id: "a", fields: { n: 1, s: "first" } },
      { id: "bad id!", fields: { n: 2 } },
      { id: "a", fields: { n: 3 } },
      { id: "b", fields: { n: "no number" } },
      { id: "c", fields: { n: 4 } },
    ]);
    expect(result).toMatchObject({ created: 2, updated: 1, skipped: 0 });
    expect(result.pages).toHaveLength(1);
    expect(result.rejections!.map(({ index }) => index)).toEqual([1, 3]);
    const { records } = await set.query({ sort: ["id"] });
    expect(records.map(content)).toEqual([
      { id: "a", n: 3, s: "first" },
      { id: "c", n: 4 },
    ]);
    expect(new Set(records.map(creationVersion)).size).toBe(1);
  });

  rule("[DATA-3] a field's name has no dots, whether the record is new or not", async () => {
    const set = await createCollection(shared.client, items.spaceId, { dynamic: true });
    const records = [
      { id: "a", fields: { "x.y": 1 } },
      { id: "b", fields: { "o.y": 1 } },
      { id: "c", fields: { n: 1 } },
    ];
    await set.upsert([{ id: "b", fields: { n: 1 } }]);
    for (const created of [1, 0]) {
      const result = await set.upsert(records);
      expect(result).toMatchObject({ created, updated: 0, skipped: 1 - created });
      expect(result.rejections).toMatchObject([
        { index: 0, id: "a", code: "upsert.rejected", reason: expect.stringContaining("x.y") },
        { index: 1, id: "b", code: "upsert.rejected", reason: expect.stringContaining("o.y") },
      ]);
    }
    expect((await set.query({ sort: ["id"] })).records.map(content)).toEqual([
      { id: "b", n: 1 },
      { id: "c", n: 1 },
    ]);
  });

  rule("[DATA-3] a field named id is the record's own id, or the entry is refused", async () => {
    const set = await fresh();
    const entries = [
      { id: "same", fields: { id: "same", n: 1 } },
      { id: "other", fields: { id: "another", n: 1 } },
    ];
    for (const created of [1, 0]) {
      const result = await set.upsert(entries);
      expect(result).toMatchObject({ created, skipped: 1 - created });
      expect(result.rejections).toMatchObject([{ index: 1, id: "other", code: "upsert.rejected" }]);
    }
  });

  rule("[DATA-3] minus zero is zero: a rerun finds it in place", async () => {
    const set = await createCollection(shared.client, items.spaceId, { dynamic: true });
    const raw = JSON.stringify({
      ...set.target,
      records: [{ id: "a", fields: { n: "ZERO", deep: [{ x: ["ZERO", 0.5] }] } }],
    }).replaceAll('"ZERO"', "-0.0");
    const send = async () => (await shared.client.request("POST", `${set.path}/upsert`, { raw })).json as JsonObject;
    expect(await send()).toMatchObject({ created: 1 });
    expect(await send()).toMatchObject({ pages: [], updated: 0, skipped: 1 });
  });

  rule("[DATA-3] what an entry was refused counts for no later entry of its record", async () => {
    const set = await fresh();
    await set.upsert([{ id: "a", fields: { n: 1, once: "first" } }]);
    const result = await set.upsert([
      { id: "a", fields: { n: 2, once: "second" } },
      { id: "a", fields: { once: "second" } },
    ]);
    expect(result).toMatchObject({ updated: 1, skipped: 0 });
    expect(result.rejections!.map(({ index, code }) => [index, code])).toEqual([
      [0, "upsert.immutable_field"],
      [1, "upsert.immutable_field"],
    ]);
  });

  rule("[DATA-3] the reason names the field once", async () => {
    const set = await createCollection(shared.client, items.spaceId, {
      fields: [
        { key: "qty", kind: "number", mutableBy: "any" },
        { key: "here", kind: "string", scope: "local" },
        { key: "at", kind: "datetime", stamp: "createTime" },
      ],
    });
    await set.upsert([{ id: "old", fields: {} }]);
    for (const id of ["new", "old"]) {
      const fields: JsonObject[] = [{ qty: "x" }, { here: "x" }, { at: { $date: 0 } }, { more: 1 }];
      const rejections = await rejectionsOf(
        set,
        fields.map((each) => ({ id, fields: each })),
      );
      expect(rejections.map(({ reason }, index) => reason.split(Object.keys(fields[index]!)[0]!).length - 1)).toEqual([
        1, 1, 1, 1,
      ]);
    }
  });

  rule("[DATA-3] an empty list is nothing", async () => {
    expect(await (await fresh()).upsert([])).toMatchObject({ pages: [], created: 0, updated: 0, skipped: 0 });
  });

  rule("[DATA-3] a dataset not declared idRule user", async () => {
    const auto = await createCollection(shared.client, items.spaceId, { idRule: "auto" });
    const body = { ...auto.target, records: [{ id: "a", fields: { n: 1 } }] };
    await shared.client.fails("POST", `${auto.path}/upsert`, body, 400, "upsert.requires_user_ids");
  });

  const body = (records: unknown, more: JsonObject = {}) => ({
    method: "POST",
    path: "{S}/upsert",
    body: { objectId: "{objectId}", dataset: "{dataset}", records, ...more },
  });
  runScenarios(
    () => ({ client: shared.client, vars: { S: items.path, objectId: items.objectId, dataset: items.dataset } }),
    [
      {
        title: "[DATA-6] upsert to a dataset that nothing declares",
        method: "POST",
        path: "{S}/upsert",
        body: { objectId: "{objectId}", dataset: "nonsense", records: [{ id: "a", fields: {} }] },
        status: 400,
        code: "dataset.unknown",
      },
      {
        title: "[API-1] records are required",
        method: "POST",
        path: "{S}/upsert",
        body: { objectId: "{objectId}", dataset: "{dataset}" },
        status: 400,
        code: "request.missing_field",
        details: { field: "records" },
      },
      {
        title: "[API-1] an unknown key is request.unknown_field",
        ...body([], { scope: "local" }),
        status: 400,
        code: "request.unknown_field",
        details: { fields: ["scope"] },
      },
      {
        title: "[API-1] fields that are no object are request.schema",
        ...body([{ id: "a", fields: [] }]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0].fields" },
      },
      {
        title: "[API-1] a pageSize that is no integer is request.schema",
        ...body([], { pageSize: "10" }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[API-19] upsert to an unknown object",
        method: "POST",
        path: "{S}/upsert",
        body: { objectId: "bafyunknown", dataset: "{dataset}", records: [{ id: "a", fields: { n: 1 } }] },
        status: 404,
        code: "object.not_found",
      },
    ],
  );
});

describe("texts that are none", () => {
  rule("[API-15] ids with lone surrogates are refused, and merge with and hide no other record", async () => {
    const loose = await createCollection(shared.client, items.spaceId, { idPattern: ".+" });
    await loose.upsert([{ id: "\ufffd", fields: { n: 1 } }]);
    const rows = await loose.query();
    const target = JSON.stringify(loose.target).slice(1, -1);
    for (const [call, wanted] of [
      ["upsert", '"records":[{"id":"\\ud800","fields":{"n":2}}]'],
      ["modify", '"records":[{"id":"\\udfff","upsert":true,"ops":[{"type":"$set","path":"n","value":2}]}]'],
      ["modify", '"records":[{"id":"\\ud800","ops":[{"type":"$set","path":"n","value":2}]}]'],
      ["delete-records", '"recordIds":["\\ud800"]'],
    ]) {
      const reply = await shared.client.request("POST", `${loose.path}/${call}`, { raw: `{${target},${wanted}}` });
      const { rejections } = reply.json as unknown as { rejections?: unknown[] };
      const refused = [expect.objectContaining({ reason: "the record's id is no well-formed text" })];
      expect([wanted, reply.status, rejections]).toEqual([wanted, 200, refused]);
    }
    expect(await loose.query()).toEqual(rows);
  });
});
