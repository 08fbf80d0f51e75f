/** The aggregate endpoints: stages end to end, limits, explain, every refusal. */
import { describe, expect } from "bun:test";
import { processorMsOf } from "../support/hostile/besieged.ts";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

const ROWS = 600;
let tasks: Collection;
let small: Collection;

const shared = useServer({ args: ["--log-level", "debug"] }, async ({ client }) => {
  const space = await createSpace(client);
  tasks = await createCollection(client, space.id);
  await tasks.upsert(
    Array.from({ length: ROWS }, (_, i) => ({
      id: `t${String(i).padStart(4, "0")}`,
      fields: { n: i, s: `owner-${i % 7}`, b: i % 2 === 0, t: [i % 3, i % 5] },
    })),
  );
  small = await createCollection(client, space.id);
  await small.upsert([
    { id: "a", fields: { n: 1, d: { $date: "2026-01-31T09:30:00.000Z" } } },
    { id: "b", fields: { n: 2, s: "x" } },
    { id: "c", fields: { n: 2 } },
  ]);
  for (let i = 0; i < 3; i++)
    await createObject(client, space.id, { initialProperties: { svc: { name: `Object ${i % 2}` } } });
});

const context = () => ({
  client: shared.client,
  vars: { space: tasks.spaceId, object: tasks.objectId, dataset: tasks.dataset, small: small.objectId },
});
const path = "/v1/spaces/{space}/aggregate";
const target = { objectId: "{object}", dataset: "{dataset}" };

async function aggregate(on: Collection, pipeline: JsonObject[], more: JsonObject = {}): Promise<JsonObject[]> {
  const reply = await shared.client.post<{ records: JsonObject[] }>(`${on.path}/aggregate`, {
    ...on.target,
    pipeline,
    ...more,
  });
  return reply.records;
}

describe("records of a dataset", () => {
  rule("[AGG-3] groups of a collection read by a reader", async () => {
    const groups = await aggregate(tasks, [
      { $match: { b: true, n: { $lt: 500 } } },
      { $group: { _id: "$s", count: { $sum: 1 }, total: { $sum: "$n" } } },
      { $sort: { id: 1 } },
    ]);
    const expected = new Map<string, { count: number; total: number }>();
    for (let i = 0; i < 500; i += 2) {
      const group = expected.get(`owner-${i % 7}`) ?? { count: 0, total: 0 };
      expected.set(`owner-${i % 7}`, { count: group.count + 1, total: group.total + i });
    }
    expect(groups).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, group]) => ({ id, ...group })));
  });

  rule("[AGG-3] [INDEX-5] groups of unwound elements, on the spot where there are none and on a reader", async () => {
    const pipeline = [{ $unwind: "$t" }, { $group: { _id: "$t", n: { $count: {} } } }, { $sort: { id: 1 } }];
    expect(await aggregate(small, pipeline)).toEqual([]);
    const counts = [0, 1, 2, 3, 4].map((id) => {
      let n = 0;
      for (let i = 0; i < ROWS; i++) n += Number(i % 3 === id) + Number(i % 5 === id);
      return { id, n };
    });
    expect(await aggregate(tasks, pipeline)).toEqual(counts);
  });

  rule("[AGG-2] [API-7] instants written in a pipeline come out in the one form that records have", async () => {
    const at = { $date: "2026-01-31T09:30:00.000Z" };
    const written = { $date: "2026-01-31T10:30:00+01:00" };
    const fields = { a: written, b: { $literal: { in: [written] } }, c: { $date: 1769851800000 } };
    expect(await aggregate(small, [{ $match: { id: "a" } }, { $project: fields }])).toEqual([
      { a: at, b: { in: [at] }, c: at },
    ]);
    expect(
      await aggregate(small, [
        { $match: { id: "a" } },
        { $project: { all: ["$d", written] } },
        { $unwind: "$all" },
        { $group: { _id: "$all", set: { $addToSet: written }, count: { $count: {} } } },
      ]),
    ).toEqual([{ id: at, set: [at], count: 2 }]);
  });

  rule("[AGG-1] untouched records come as they are stored, with their versions", async () => {
    const [record] = await aggregate(small, [{ $match: { n: 1 } }]);
    expect(record).toEqual((await small.find("a")) as JsonObject);
  });

  rule("[AGG-1] [QUERY-5] an unknown dataset has no records, so a count of it is one document with 0", async () => {
    const reply = await shared.client.post(`${small.path}/aggregate`, {
      objectId: small.objectId,
      dataset: "nobody",
      pipeline: [{ $count: "n" }],
    });
    expect(reply).toEqual({ records: [{ n: 0 }] });
  });

  rule("[DATA-1] what was written is seen by the next aggregate", async () => {
    for (let i = 0; i < 5; i++) {
      await tasks.upsert([{ id: "fresh", fields: { n: -i } }]);
      expect(await aggregate(tasks, [{ $match: { n: -i, id: "fresh" } }, { $count: "n" }])).toEqual([{ n: 1 }]);
    }
    await tasks.deleteRecords(["fresh"]);
    expect(await aggregate(tasks, [{ $count: "n" }])).toEqual([{ n: ROWS }]);
  });

  rule("[API-1] unknown top-level keys are dropped", async () => {
    const [counted] = await aggregate(small, [{ $count: "n" }], { surprise: 1, allowDiskUse: true });
    expect(counted).toEqual({ n: 3 });
  });

  rule("[AGG-7] [API-10] readers end what nobody waits for any more", async () => {
    const list = Array.from({ length: 1_000 }, (_, i) => i);
    const wide = await createCollection(shared.client, tasks.spaceId, { dynamic: true, fields: [] });
    await wide.upsert([{ id: "one", fields: { x: list, y: list, z: list } }]);
    // A thousand million documents: it would not end by itself.
    const pipeline = [{ $unwind: "$x" }, { $unwind: "$y" }, { $unwind: "$z" }, { $count: "n" }];
    const client = new AbortController();
    const endless = [1, 2, 3].map(() =>
      fetch(`${shared.client.base}${wide.path}/aggregate`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...wide.target, pipeline }),
        signal: client.signal,
      }).catch((error: Error) => error.name),
    );
    const before = processorMsOf(shared);
    await until(() => processorMsOf(shared) > before + 200, "the readers to be at it");
    client.abort();
    expect(await Promise.all(endless)).toEqual(["AbortError", "AbortError", "AbortError"]);
    expect(await aggregate(tasks, [{ $count: "n" }])).toEqual([{ n: ROWS }]);
  });

  rule("[INDEX-6] what a pipeline did is in the debug log", async () => {
    await aggregate(tasks, [{ $match: { n: { $gte: 0 } } }, { $count: "logged" }]);
    const line = shared.server
      .stderr()
      .split("\n")
      .findLast((each) => each.includes("aggregate") && each.includes("candidates"));
    expect(line).toContain(tasks.dataset);
    expect(line).toContain("matches");
  });
});

describe("objects of a space", () => {
  rule("[AGG-3] groups over the objects' rows", async () => {
    const reply = await shared.client.post<{ records: JsonObject[] }>(`${tasks.path}/objects/aggregate`, {
      pipeline: [
        { $match: { "svc.name": { $regex: "^Object" } } },
        { $group: { _id: "$svc.name", n: { $sum: 1 } } },
        { $sort: { id: 1 } },
      ],
    });
    expect(reply.records).toEqual([
      { id: "Object 0", n: 2 },
      { id: "Object 1", n: 1 },
    ]);
  });

  rule("[QUERY-7] the path names the collection: an objectId is refused, an empty one is not", async () => {
    const url = `${tasks.path}/objects/aggregate`;
    const error = await shared.client.fails(
      "POST",
      url,
      { objectId: tasks.objectId, pipeline: [] },
      400,
      "request.invalid_field",
    );
    expect(error.details?.["field"]).toBe("objectId");
    await shared.client.post(url, { objectId: "", dataset: "", pipeline: [{ $limit: 1 }] });
  });
});

describe("explain", () => {
  rule("[AGG-6] explain answers a plan that says access, pushdown and stages, and no records", async () => {
    for (const on of [tasks, small]) {
      const reply = await shared.client.post<{ plan: string; records?: unknown }>(`${on.path}/aggregate`, {
        ...on.target,
        pipeline: [{ $match: { n: { $gt: 1 } } }, { $sort: { n: -1 } }, { $limit: 5 }, { $project: { n: 1 } }],
        explain: true,
      });
      expect(reply.records).toBeUndefined();
      expect(reply.plan).toContain("Access:");
      expect(reply.plan).toMatch(/Pushdown: filter=.*sort=-n limit=5/);
      expect(reply.plan).toContain('4. {"$project":{"n":1}}');
    }
  });

  rule("[AGG-6] explain refuses what running refuses", async () => {
    const body = { ...tasks.target, pipeline: [{ $nope: 1 }], explain: true };
    await shared.client.fails("POST", `${tasks.path}/aggregate`, body, 400, "aggregate.bad_pipeline");
  });
});

describe("faults", () => {
  runScenarios(context, [
    {
      title: "[API-1] no body",
      method: "POST",
      path,
      status: 400,
      code: "request.bad_json",
    },
    ...["objectId", "dataset", "pipeline"].map((field) => ({
      title: `[API-1] ${field} is required`,
      method: "POST",
      path,
      body: { ...target, pipeline: [], [field]: undefined },
      status: 400,
      code: "request.missing_field",
      details: { field },
    })),
    {
      title: "[AGG-1] a pipeline is an array",
      method: "POST",
      path,
      body: { ...target, pipeline: { $match: {} } },
      status: 400,
      code: "request.schema",
      details: { path: "pipeline" },
    },
    {
      title: "[AGG-4] a limit is an integer",
      method: "POST",
      path,
      body: { ...target, pipeline: [], groupLimit: "many" },
      status: 400,
      code: "request.schema",
      details: { path: "groupLimit" },
    },
    {
      title: "[API-4] a serialized nil is no object id",
      method: "POST",
      path,
      body: { ...target, objectId: "null", pipeline: [] },
      status: 400,
      code: "object.id_required",
      details: { field: "objectId" },
    },
    {
      title: "[API-19] an unknown object",
      method: "POST",
      path,
      body: { ...target, objectId: "nope", pipeline: [] },
      status: 404,
      code: "object.not_found",
    },
    ...["$out", "$merge", "$bucket", "$replaceRoot", "$text"].map((stage) => ({
      title: `[AGG-1] ${stage} is no stage`,
      method: "POST",
      path,
      body: { ...target, pipeline: [{ [stage]: {} }] },
      status: 400,
      code: "aggregate.bad_pipeline",
      details: { stage },
    })),
    {
      title: "[AGG-5] an operator outside the filter grammar",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $match: { n: { $near: 1 } } }] },
      status: 400,
      code: "aggregate.bad_pipeline",
      details: { stage: "$match" },
    },
    {
      title: "[AGG-5] a filter fault inside $match keeps its code",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $match: { n: { $in: 1 } } }] },
      status: 400,
      code: "filter.invalid",
    },
    {
      title: "[AGG-5] [QUERY-6] a declared datetime is compared with instants alone",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $match: { d: { $gt: 5 } } }] },
      status: 400,
      code: "filter.invalid",
      mustContain: ["$date"],
    },
    {
      title: "[AGG-4] the bound on groups",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $group: { _id: "$n" } }], groupLimit: 10 },
      status: 400,
      code: "aggregate.limit_exceeded",
      details: { limit: "group" },
    },
    {
      title: "[AGG-4] the bound on an accumulated array",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $group: { _id: null, all: { $push: "$n" } } }], accumArrayLimit: 10 },
      status: 400,
      code: "aggregate.limit_exceeded",
      details: { limit: "accumArray" },
    },
    {
      title: "[AGG-4] the bound on memory",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $sort: { s: 1 } }], memoryLimitBytes: 100 },
      status: 400,
      code: "aggregate.limit_exceeded",
      details: { limit: "memory" },
    },
    {
      title: "[AGG-4] a negative bound is none",
      method: "POST",
      path,
      body: { ...target, pipeline: [{ $group: { _id: "$n" } }, { $count: "n" }], groupLimit: -1 },
      status: 200,
      match: { records: [{ n: ROWS }] },
    },
  ]);
});
