/** `POST {S}/modify`: every op, every rejection, every refusal. */
import { describe, expect } from "bun:test";
import type { JsonObject, Rejection, WriteResult } from "../support/client.ts";
import {
  type Collection,
  content,
  createCollection,
  createSpace,
  creationVersion,
  setFields,
} from "../support/fixtures.ts";
import { rule, useServer } from "../support/rule.ts";
import { runScenarios } from "../support/scenario.ts";

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id, { dynamic: true });
});

let made = 0;
/** A record of its own for each test. */
async function record(fields: JsonObject = {}): Promise<string> {
  const id = `rec-${made++}`;
  await items.modify([setFields(id, fields)]);
  return id;
}
const op = (type: string, path?: string, value?: unknown): JsonObject =>
  ({ type, ...(path === undefined ? {} : { path }), ...(value === undefined ? {} : { value }) }) as JsonObject;
const apply = (id: string, ...ops: JsonObject[]): Promise<WriteResult> => items.modify([{ id, ops }]);

interface OpCase {
  title: string;
  before: JsonObject;
  ops: JsonObject[];
  after: JsonObject;
  /** Op indexes that are rejected. */
  rejected?: number[];
}

const OPS: OpCase[] = [
  { title: "$set replaces a value", before: { s: "a" }, ops: [op("$set", "s", "b")], after: { s: "b" } },
  { title: "$set adds a value", before: {}, ops: [op("$set", "n", 1)], after: { n: 1 } },
  {
    title: "$set of a nested path makes what lies between",
    before: {},
    ops: [op("$set", "o.a.b", 1)],
    after: { o: { a: { b: 1 } } },
  },
  {
    title: "$set of a nested path leaves its siblings",
    before: { o: { a: 1, b: 2 } },
    ops: [op("$set", "o.a", 9)],
    after: { o: { a: 9, b: 2 } },
  },
  {
    title: "$set of a whole object replaces it",
    before: { o: { a: 1, b: 2 } },
    ops: [op("$set", "o", { c: 3 })],
    after: { o: { c: 3 } },
  },
  {
    title: "$set with an absent path sets several fields",
    before: { s: "a" },
    ops: [op("$set", undefined, { n: 1, b: true })],
    after: { s: "a", n: 1, b: true },
  },
  {
    title: "$set with an empty path does the same",
    before: {},
    ops: [op("$set", "", { n: 1, "o.x": 2 })],
    after: { n: 1, o: { x: 2 } },
  },
  {
    title: "$set keeps false, 0 and empty values",
    before: {},
    ops: [op("$set", "", { b: false, n: 0, s: "", t: [], o: {} })],
    after: { b: false, n: 0, s: "", t: [], o: {} },
  },
  { title: "$unset removes a value", before: { s: "a", n: 1 }, ops: [op("$unset", "s")], after: { n: 1 } },
  {
    title: "$unset of a nested path",
    before: { o: { a: 1, b: 2 } },
    ops: [op("$unset", "o.a")],
    after: { o: { b: 2 } },
  },
  {
    title: "$unset with an empty path removes each named field, values ignored",
    before: { s: "a", n: 1, b: true },
    ops: [op("$unset", "", { s: 1, b: "x" })],
    after: { n: 1 },
  },
  {
    title: "$unset of what is not there changes nothing",
    before: { s: "a" },
    ops: [op("$unset", "n")],
    after: { s: "a" },
  },
  { title: "$inc adds", before: { n: 5 }, ops: [op("$inc", "n", 2)], after: { n: 7 } },
  {
    title: "$inc takes negative and fractional steps",
    before: { n: 5 },
    ops: [op("$inc", "n", -7.5)],
    after: { n: -2.5 },
  },
  { title: "$inc on a missing field starts from 0", before: {}, ops: [op("$inc", "n", 3)], after: { n: 3 } },
  {
    title: "$inc of a nested path",
    before: { o: { hits: 1 } },
    ops: [op("$inc", "o.hits", 1)],
    after: { o: { hits: 2 } },
  },
  {
    title: "$inc on a string is rejected and changes nothing",
    before: { s: "a" },
    ops: [op("$inc", "s", 1)],
    after: { s: "a" },
    rejected: [0],
  },
  { title: "$addToSet appends", before: { t: ["a"] }, ops: [op("$addToSet", "t", "b")], after: { t: ["a", "b"] } },
  {
    title: "$addToSet does not repeat",
    before: { t: ["a", 1] },
    ops: [op("$addToSet", "t", 1)],
    after: { t: ["a", 1] },
  },
  {
    title: "$addToSet compares whole values",
    before: { t: [{ a: 1 }] },
    ops: [op("$addToSet", "t", { a: 1 }), op("$addToSet", "t", { a: 2 })],
    after: { t: [{ a: 1 }, { a: 2 }] },
  },
  { title: "$addToSet tells 1 from '1'", before: { t: [1] }, ops: [op("$addToSet", "t", "1")], after: { t: [1, "1"] } },
  {
    title: "$addToSet adds an array as one element",
    before: { t: [] },
    ops: [op("$addToSet", "t", ["a"])],
    after: { t: [["a"]] },
  },
  {
    title: "$addToSet on a missing field makes the array",
    before: {},
    ops: [op("$addToSet", "t", "a")],
    after: { t: ["a"] },
  },
  {
    title: "$addToSet on a number is rejected",
    before: { n: 1 },
    ops: [op("$addToSet", "n", 2)],
    after: { n: 1 },
    rejected: [0],
  },
  {
    title: "$pull removes every occurrence",
    before: { t: ["a", "b", "a"] },
    ops: [op("$pull", "t", "a")],
    after: { t: ["b"] },
  },
  {
    title: "$pull of what is not there changes nothing",
    before: { t: ["a"] },
    ops: [op("$pull", "t", "z")],
    after: { t: ["a"] },
  },
  {
    title: "$pull compares whole values",
    before: { t: [{ a: 1 }, { a: 1, b: 2 }] },
    ops: [op("$pull", "t", { a: 1 })],
    after: { t: [{ a: 1, b: 2 }] },
  },
  {
    title: "$pull on a string is rejected",
    before: { s: "abc" },
    ops: [op("$pull", "s", "a")],
    after: { s: "abc" },
    rejected: [0],
  },
  {
    title: "ops of a record apply in their order",
    before: { n: 1 },
    ops: [op("$inc", "n", 1), op("$set", "n", 10), op("$inc", "n", 1)],
    after: { n: 11 },
  },
  {
    title: "a rejected op drops alone; the others apply",
    before: { s: "a" },
    ops: [op("$set", "n", 1), op("$inc", "s", 1), op("$set", "b", true)],
    after: { s: "a", n: 1, b: true },
    rejected: [1],
  },
];

describe("ops", () => {
  for (const { title, before, ops, after, rejected = [] } of OPS) {
    rule(`[DATA-1] ${title}`, async () => {
      const id = await record(before);
      const result = await apply(id, ...ops);
      expect(content(await items.find(id))).toEqual({ id, ...after });
      expect((result.rejections ?? []).map((entry) => entry.opIndex)).toEqual(rejected);
      for (const entry of result.rejections ?? []) expect(entry).toMatchObject({ recordIndex: 0, recordId: id });
      if (rejected.length === 0) expect(result).not.toHaveProperty("rejections");
    });
  }

  rule("[DATA-1] keys that mean something to JavaScript are ordinary keys", async () => {
    const id = await record();
    const reply = await shared.client.request("POST", `${items.path}/modify`, {
      raw: JSON.stringify({
        ...items.target,
        records: [{ id, ops: [{ type: "$set", path: "constructor", value: 1 }] }],
      }),
    });
    expect(reply.status).toBeLessThan(500);
    const row = await items.find(id);
    if (reply.status === 200) expect(row).toHaveProperty("constructor", 1);
    expect(({} as JsonObject)["polluted"]).toBeUndefined();
  });
});

describe("records", () => {
  rule("[DATA-1] upsert true on an absent id creates", async () => {
    const result = await items.modify([setFields("fresh", { n: 1 })]);
    expect(result.recordIds).toEqual(["fresh"]);
    expect(result.versionId).toBe(result.changeId);
    expect(result.changeId).not.toBe("");
    expect(content(await items.find("fresh"))).toEqual({ id: "fresh", n: 1 });
  });

  rule("[DATA-1] a create is all or nothing: one refused op, and nothing is made", async () => {
    const ops = [op("$set", "s", "text"), op("$inc", "s", 1)];
    const refused = await items.modify([{ id: "half", upsert: true, ops }]);
    expect(refused.rejections).toEqual([
      { recordIndex: 0, recordId: "half", opIndex: 1, reason: expect.stringContaining("number") },
    ]);
    expect(await items.find("half")).toBeUndefined();
    await items.modify([setFields("half", { s: "text" })]);
    expect((await apply("half", ...ops.toReversed())).rejections).toHaveLength(1);
    expect(await items.find("half")).toMatchObject({ s: "text" });
  });

  rule(
    "[DATA-1] a record holds at most 1 MiB of JSON: the op that would pass that is rejected with its reason",
    async () => {
      const id = await record();
      const results: (Rejection[] | undefined)[] = [];
      for (const field of ["part1", "part2", "part3"])
        results.push((await apply(id, op("$set", field, "x".repeat(400_000)))).rejections);
      expect(results).toEqual([
        undefined,
        undefined,
        [{ recordIndex: 0, recordId: id, opIndex: 0, reason: expect.stringContaining("1048576 bytes") }],
      ]);
    },
  );

  rule("[DATA-1] upsert true on a present id changes it; the creation version stays", async () => {
    const id = await record({ n: 1, s: "kept" });
    const before = await items.find(id);
    await items.modify([setFields(id, { n: 2 })]);
    const after = await items.find(id);
    expect(content(after)).toEqual({ id, n: 2, s: "kept" });
    expect(creationVersion(after)).toBe(creationVersion(before));
  });

  rule("[DATA-1] upsert false on an absent record is a silent no-op: the id is echoed", async () => {
    const result = await items.modify([{ id: "never", upsert: false, ops: [op("$set", "n", 1)] }]);
    expect(result.recordIds).toEqual(["never"]);
    expect(result).not.toHaveProperty("rejections");
    expect(await items.find("never")).toBeUndefined();
    await apply("never", op("$set", "n", 1)); // upsert is false when absent
    expect(await items.find("never")).toBeUndefined();
  });

  rule("[DATA-1] several records with one id apply in their order", async () => {
    const id = await record();
    const result = await items.modify([
      { id, ops: [op("$set", "n", 1)] },
      { id, ops: [op("$inc", "n", 5)] },
      { id, ops: [op("$set", "s", "last")] },
    ]);
    expect(result.recordIds).toEqual([id, id, id]);
    expect(content(await items.find(id))).toEqual({ id, n: 6, s: "last" });
  });

  rule(
    "[DATA-1] a wide record that one request names thousands of times ends as if each part had come by itself",
    async () => {
      const set = await createCollection(shared.client, items.spaceId, { dynamic: true });
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
    const result = await items.modify(ids.map((id) => setFields(id, { n: 1 })));
    expect(result.recordIds).toEqual(ids);
  });

  rule("[DATA-1] rejections carry the index of their record", async () => {
    const [good, bad] = [await record({ n: 1 }), await record({ s: "text" })];
    const result = await items.modify([
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
    expect(content(await items.find(good))).toEqual({ id: good, n: 2 });
    expect(content(await items.find(bad))).toEqual({ id: bad, s: "text", b: true });
  });

  rule(
    "[DATA-1] a write on a tombstone is a whole-record rejection (opIndex -1); the id is never reusable",
    async () => {
      const id = await record({ n: 1 });
      await items.deleteRecords([id]);
      for (const upsert of [true, false]) {
        const result = await items.modify([setFields(id, { n: 2 }, upsert)]);
        expect(result.rejections).toHaveLength(1);
        expect(result.rejections![0] as Rejection).toMatchObject({ recordIndex: 0, recordId: id, opIndex: -1 });
        expect(await items.find(id)).toBeUndefined();
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
        const result = await items.modify([create(refused, [...good, bad]), create(made, good)]);
        expect(result.rejections).toHaveLength(1);
        expect(result.rejections![0]).toMatchObject({ recordIndex: 0, recordId: refused, opIndex: 2 });
        expect(result.rejections![0]!.reason).not.toBe("");
        expect(await items.find(refused)).toBeUndefined();
        expect(content(await items.find(made))).toEqual({ id: made, n: 1, s: "x" });
        // The id is free: what was not made can be made.
        expect((await items.modify([create(refused, good)])).rejections).toBeUndefined();
        // On a record that exists the refused op alone is dropped.
        const later = await items.modify([create(refused, [op("$set", "n", 2), bad])]);
        expect(later.rejections).toHaveLength(1);
        expect(content(await items.find(refused))).toEqual({ id: refused, n: 2, s: "x" });
      }
    },
  );

  rule("[DATA-1] write-once fields can be set by the creating change only", async () => {
    const once = await createCollection(shared.client, items.spaceId, {
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

  rule("[DATA-1] a value of another kind than its field's is never stored", async () => {
    const id = await record({ n: 1, s: "a" });
    for (const [path, value] of [
      ["n", "one"],
      ["s", 5],
      ["b", "true"],
      ["t", { a: 1 }],
      ["o", [1]],
      ["d", "2026-01-31"],
    ] as const) {
      const reply = await shared.client.request("POST", `${items.path}/modify`, {
        body: { ...items.target, records: [{ id, ops: [op("$set", path, value)] }] },
      });
      const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
      expect([path, refused]).toEqual([path, true]);
    }
    expect(content(await items.find(id))).toEqual({ id, n: 1, s: "a" });
  });

  rule("[DATA-1] a datetime is stored as UTC with milliseconds, whatever form it came in", async () => {
    const id = await record();
    for (const given of ["2026-01-31T10:30:00+01:00", "2026-01-31T09:30:00Z", Date.UTC(2026, 0, 31, 9, 30)]) {
      await apply(id, op("$set", "d", { $date: given }));
      expect(content(await items.find(id))).toEqual({ id, d: { $date: "2026-01-31T09:30:00.000Z" } });
    }
  });

  rule("[DATA-1] numbers and text come back as they were given", async () => {
    const id = await record();
    const values = { s: 'nul \u0000 tab \t quote " back \\ line\n astral \u{1F9ED} lone', n: 0.1 + 0.2 };
    await apply(id, op("$set", "", values));
    expect(content(await items.find(id))).toEqual({ id, ...values });
    for (const n of [Number.MAX_SAFE_INTEGER, -0, 1e308, 5e-324, -123456.789]) {
      await apply(id, op("$set", "n", n));
      expect(((await items.find(id))!["n"] as number) === n).toBe(true);
    }
  });
});

describe("ids", () => {
  rule(
    "[DATA-4] an empty id is given by the server: base58, at most 11 characters, then /1, /2 in one batch",
    async () => {
      const auto = await createCollection(shared.client, items.spaceId, { idRule: "auto" });
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
    const auto = await createCollection(shared.client, items.spaceId, { idRule: "auto" });
    const body = { ...auto.target, records: [{ id: "", ops: [op("$set", "n", 1)] }] };
    const reply = await shared.client.request("POST", `${auto.path}/modify`, { body });
    expect(reply.status).toBe(400);
    expect((await auto.query({})).records).toEqual([]);
  });

  rule("[DATA-4] an auto-id dataset refuses ids of the client's choosing", async () => {
    const auto = await createCollection(shared.client, items.spaceId, { idRule: "auto" });
    const body = { ...auto.target, records: [setFields("mine", { n: 1 })] };
    const reply = await shared.client.request("POST", `${auto.path}/modify`, { body });
    const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
    expect(refused).toBe(true);
    expect(await auto.find("mine")).toBeUndefined();
  });

  rule("[DATA-4] record ids that look like paths, SQL or prototypes are plain ids", async () => {
    const plain = await createCollection(shared.client, items.spaceId, { idPattern: ".+" });
    const ids = ["a.b", "a/b", "'; DROP TABLE rows; --", "__proto__", "constructor", "$set", "ключ", "\u{1F9ED}"];
    await plain.modify(ids.map((id) => setFields(id, { s: id })));
    for (const id of ids) expect(await plain.find(id)).toMatchObject({ id, s: id });
  });
});

describe("versions and traces", () => {
  rule("[_ver] a written path gets the version of its change, later versions compare greater bytewise", async () => {
    const id = await record({ n: 1, s: "a" });
    const versionAt = async (path: string): Promise<string> => {
      const tree = (await items.find(id))!["_ver"] as JsonObject;
      const own = tree[path] ?? tree["*"];
      return typeof own === "string" ? own : JSON.stringify(own);
    };
    const [n1, s1] = [await versionAt("n"), await versionAt("s")];
    await apply(id, op("$set", "n", 2));
    const [n2, s2] = [await versionAt("n"), await versionAt("s")];
    expect(n2 > n1).toBe(true);
    expect(s2).toBe(s1);
    await apply(id, op("$set", "n", 3));
    expect((await versionAt("n")) > n2).toBe(true);
  });

  rule("[_traces] so many trace ids and no more, so long and no longer", async () => {
    const most = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(256, "x"));
    await items.modify([setFields("most", { n: 1 })], { traceIds: most });
    const body = { objectId: items.objectId, dataset: items.dataset, records: [setFields("more", { n: 1 })] };
    const path = `${items.path}/modify`;
    const refused = async (traceIds: string[]) =>
      (await shared.client.fails("POST", path, { ...body, traceIds }, 400, "request.invalid_field")).details;
    expect(await refused([...most, "x"])).toMatchObject({ field: "traceIds", reason: expect.stringContaining("32") });
    expect(await refused(["x".repeat(257)])).toMatchObject({ reason: expect.stringContaining("256") });
    expect(await items.find("more")).toBeUndefined();
  });

  rule("[_traces] traceIds are kept under the version they came with", async () => {
    const result = await items.modify([setFields("traced", { n: 1 })], { traceIds: ["run-1", "step-2"] });
    const row = (await items.find("traced"))!;
    const traces = row["_traces"] as JsonObject;
    expect(Object.values(traces)).toEqual([["run-1", "step-2"]]);
    expect(Object.keys(traces)).toHaveLength(1);
    expect(result).not.toHaveProperty("rejections");
    expect(await items.find(await record())).not.toHaveProperty("_traces");
  });

  rule("[write] changeIds are unique, also when many writes arrive at once", async () => {
    const id = await record({ n: 0 });
    const results = await Promise.all(Array.from({ length: 50 }, () => apply(id, op("$inc", "n", 1))));
    expect(new Set(results.map((result) => result.changeId)).size).toBe(50);
    expect((await items.find(id))!["n"]).toBe(50);
  });
});

describe("refusals of the whole change", () => {
  const BAD_PATHS = [
    "a..b",
    ".a",
    "a.",
    "*",
    "a.*",
    "*.a",
    "id",
    "id.x",
    "_ver",
    "_ver.id",
    "_traces",
    "_deletedAt",
    "_x.y",
  ];
  for (const path of BAD_PATHS) {
    rule(`[DATA-1] the path ${JSON.stringify(path)} refuses the whole change: 400 dataset.validation`, async () => {
      const id = await record({ n: 1 });
      const records = [
        { id, ops: [op("$set", "n", 2)] },
        { id: `${id}-b`, upsert: true, ops: [op("$set", "s", "x"), op("$set", path, 1)] },
      ];
      await shared.client.fails(
        "POST",
        `${items.path}/modify`,
        { ...items.target, records },
        400,
        "dataset.validation",
      );
      const keyed = [{ id, ops: [op("$set", "n", 2), op("$set", "", { [path]: 1 })] }];
      await shared.client.fails(
        "POST",
        `${items.path}/modify`,
        { ...items.target, records: keyed },
        400,
        "dataset.validation",
      );
      expect(content(await items.find(id))).toEqual({ id, n: 1 });
      expect(await items.find(`${id}-b`)).toBeUndefined();
    });
  }

  const body = (records: unknown, more: JsonObject = {}) => ({
    method: "POST",
    path: "{S}/modify",
    body: { objectId: "{objectId}", dataset: "{dataset}", records, ...more },
  });
  runScenarios(
    () => ({ client: shared.client, vars: { S: items.path, objectId: items.objectId, dataset: items.dataset } }),
    [
      ...(["objectId", "dataset", "records"] as const).map((field) => ({
        title: `[DATA-1] a missing ${field} is request.missing_field`,
        method: "POST",
        path: "{S}/modify",
        body: Object.fromEntries(
          Object.entries({ objectId: "{objectId}", dataset: "{dataset}", records: [] }).filter(
            ([key]) => key !== field,
          ),
        ),
        status: 400,
        code: "request.missing_field",
        details: { field },
      })),
      {
        title: "[DATA-1] a missing op type is request.schema with its path",
        ...body([
          { id: "a", ops: [{ type: "$set", path: "n", value: 1 }] },
          { id: "b", ops: [] },
          { id: "c", ops: [{ path: "n" }] },
        ]),
        status: 400,
        code: "request.schema",
        details: { path: "records[2].ops[0].type" },
      },
      {
        title: "[DATA-1] an upsert that is no boolean is request.schema",
        ...body([{ id: "a", upsert: "yes", ops: [] }]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0].upsert" },
      },
      {
        title: "[DATA-1] a bad scope is request.schema",
        ...body([], { scope: "account" }),
        status: 400,
        code: "request.schema",
        details: { path: "scope" },
      },
      {
        title: "[DATA-1] records that are no array are request.schema",
        ...body({}),
        status: 400,
        code: "request.schema",
        details: { path: "records" },
      },
      {
        title: "[DATA-1] a record that is no object is request.schema",
        ...body(["a"]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0]" },
      },
      {
        title: "[DATA-1] an id that is no string is request.schema",
        ...body([{ id: 5, ops: [] }]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0].id" },
      },
      {
        title: "[DATA-1] traceIds that are no strings are request.schema",
        ...body([], { traceIds: [1] }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[dataset.unknown] a dataset that nothing declares",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "{objectId}", dataset: "nonsense", records: [{ id: "a", upsert: true, ops: [] }] },
        status: 400,
        code: "dataset.unknown",
      },
      {
        title: "[object.not_found] an unknown object",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "bafyunknown", dataset: "{dataset}", records: [{ id: "a", upsert: true, ops: [] }] },
        status: 404,
        code: "object.not_found",
      },
    ],
  );

  rule("[DATA-1] an unknown op, an op value of a wrong type: 4xx or a rejection, never stored", async () => {
    for (const bad of [
      op("$rename", "n", "m"),
      op("$inc", "n", "1"),
      op("$inc", "n"),
      op("$set", "", 5),
      op("$set", "", [1]),
      op("$push", "t", 1),
      op("", "n", 1),
    ]) {
      const id = await record({ n: 1 });
      const reply = await shared.client.request("POST", `${items.path}/modify`, {
        body: { ...items.target, records: [{ id, ops: [bad] }] },
      });
      const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
      expect([bad, refused]).toEqual([bad, true]);
      expect(content(await items.find(id))).toEqual({ id, n: 1 });
    }
  });

  rule("[DATA-1] a dataset that no type of the object declares is dataset.validation", async () => {
    const other = await createCollection(shared.client, items.spaceId);
    const body = { objectId: items.objectId, dataset: other.dataset, records: [setFields("a", { n: 1 })] };
    await shared.client.fails("POST", `${items.path}/modify`, body, 400, "dataset.validation");
  });

  rule("[DATA-1] an undeclared key of a dataset that is not dynamic is never stored", async () => {
    const closed = await createCollection(shared.client, items.spaceId);
    const body = { ...closed.target, records: [setFields("a", { n: 1, surprise: 1 })] };
    const reply = await shared.client.request("POST", `${closed.path}/modify`, { body });
    expect(reply.status < 500).toBe(true);
    expect((await closed.find("a")) ?? {}).not.toHaveProperty("surprise");
  });
});
