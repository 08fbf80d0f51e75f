import { expect, test } from "bun:test";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../../../test/support/rows-table.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { rowsOf } from "../rows/row-source.ts";
import { explainAggregate } from "./aggregate-explain.ts";
import { parsePipeline } from "./aggregate-parse.ts";
import { DEFAULT_LIMITS, runAggregate } from "./aggregate-run.ts";
import type { AggregateLimits } from "./aggregate-types.ts";

const source = rowsOf(COLLECTION_ID);
const orders = [
  { id: "o1", who: "ann", total: 30, tags: ["x", "y"], parts: [{ q: 1 }, { q: 2 }], ref: "o3" },
  { id: "o2", who: "bob", total: 5, tags: [], ref: ["o1", "o3", "o1", "nope", 5] },
  { id: "o3", who: "ann", total: null, tags: null, parts: { q: 7 } },
  { id: "o4", total: "12", tags: "x", ref: null },
  { id: "o5", who: null, total: 2.5, at: { $date: "2026-01-31T09:30:00.000Z" } },
];
const db = createRowsTable(orders);

function run(pipeline: Json[], limits: Partial<AggregateLimits> = {}, from = db): unknown[] {
  const parsed = parsePipeline(pipeline);
  const { records } = runAggregate(from, source, parsed, { limits: { ...DEFAULT_LIMITS, ...limits } });
  return records.map((text) => JSON.parse(text));
}

function limitOf(pipeline: Json[], limits: Partial<AggregateLimits>): unknown {
  try {
    run(pipeline, limits);
  } catch (error) {
    if (error instanceof SvcError) return [error.code, error.details?.["limit"]];
    throw error;
  }
  return undefined;
}

const ids = (docs: unknown[]) => docs.map((doc) => (doc as { id: string }).id);

test("[AGG-1] no stages give the records by id, as stored", () => {
  const { records } = runAggregate(db, source, parsePipeline([]));
  expect(records).toEqual(orders.map((order) => JSON.stringify(order)));
});

test("[AGG-5] $match takes the filter language and $expr, also inside $and", () => {
  expect(ids(run([{ $match: { who: "ann" } }]))).toEqual(["o1", "o3"]);
  expect(ids(run([{ $match: { $expr: { $gt: ["$total", 4] } } }]))).toEqual(["o1", "o2", "o4"]);
  const both = { $and: [{ who: "ann" }, { $expr: { $eq: [{ $size: "$tags" }, 2] } }] };
  expect(ids(run([{ $match: both }]))).toEqual(["o1"]);
  expect(ids(run([{ $match: { who: { $ne: "ann" } } }, { $match: { total: { $gt: 3 } } }]))).toEqual(["o2"]);
});

test("[AGG-1] $sort, $skip and $limit, pushed down or not, keep ties in order", () => {
  expect(ids(run([{ $sort: { who: -1, total: 1 } }, { $skip: 1 }, { $limit: 3 }]))).toEqual(["o3", "o1", "o5"]);
  expect(ids(run([{ $limit: 3 }, { $sort: { who: 1 } }]))).toEqual(["o1", "o3", "o2"]);
  expect(ids(run([{ $addFields: { k: 1 } }, { $sort: { k: 1 } }]))).toEqual(["o1", "o2", "o3", "o4", "o5"]);
  expect(ids(run([{ $skip: 4 }]))).toEqual(["o5"]);
  expect(ids(run([{ $sort: { total: -1 } }]))).toEqual(["o4", "o1", "o2", "o5", "o3"]);
});

test("[AGG-1] $count gives one document, 0 for none", () => {
  expect(run([{ $match: { who: "ann" } }, { $count: "n" }])).toEqual([{ n: 2 }]);
  expect(run([{ $match: { who: "eve" } }, { $count: "n" }])).toEqual([{ n: 0 }]);
  expect(run([{ $skip: 9 }, { $count: "n" }])).toEqual([{ n: 0 }]);
  expect(run([{ $count: "n" }, { $project: { m: { $add: ["$n", 1] } } }])).toEqual([{ m: 6 }]);
});

test("[AGG-1] $project keeps only what is listed; $addFields and $set add and replace", () => {
  expect(run([{ $limit: 1 }, { $project: { who: 1, double: { $multiply: ["$total", 2] }, none: "$nope" } }])).toEqual([
    { who: "ann", double: 60 },
  ]);
  expect(run([{ $limit: 1 }, { $project: { id: true, tags: 5 } }])).toEqual([{ id: "o1", tags: ["x", "y"] }]);
  const [set] = run([{ $limit: 1 }, { $set: { total: "$who", who: "$total", ref: "$nope", parts: { a: "$id" } } }]);
  expect(set).toEqual({ id: "o1", who: 30, total: "ann", tags: ["x", "y"], parts: { a: "o1" } });
});

test("[AGG-1] $unwind opens arrays, keeps single values, drops or preserves the empty", () => {
  const tags = { $project: { id: 1, tags: 1 } };
  expect(run([{ $unwind: "$tags" }, tags])).toEqual([
    { id: "o1", tags: "x" },
    { id: "o1", tags: "y" },
    { id: "o4", tags: "x" },
  ]);
  expect(run([{ $unwind: { path: "$tags", preserveNullAndEmptyArrays: true } }, tags])).toEqual([
    { id: "o1", tags: "x" },
    { id: "o1", tags: "y" },
    { id: "o2" },
    { id: "o3", tags: null },
    { id: "o4", tags: "x" },
    { id: "o5" },
  ]);
  const nested = createRowsTable([{ id: "a", ...{ x: { y: [1, 2], z: 3 } } }]);
  expect(run([{ $unwind: "$x.y" }], {}, nested)).toEqual([
    { id: "a", x: { y: 1, z: 3 } },
    { id: "a", x: { y: 2, z: 3 } },
  ]);
});

test("[AGG-3] $group: groups in first-seen order, id as the key, missing and null one group", () => {
  expect(run([{ $group: { _id: "$who", n: { $count: {} }, sum: { $sum: "$total" } } }])).toEqual([
    { id: "ann", n: 2, sum: 30 },
    { id: "bob", n: 1, sum: 5 },
    { id: null, n: 2, sum: 2.5 },
  ]);
  expect(run([{ $group: { id: { w: "$who", none: "$nope" } } }])).toEqual([
    { id: { w: "ann" } },
    { id: { w: "bob" } },
    { id: {} },
    { id: { w: null } },
  ]);
});

test("[AGG-3] accumulators", () => {
  const all = {
    sum: { $sum: "$total" },
    avg: { $avg: "$total" },
    min: { $min: "$total" },
    max: { $max: "$total" },
    first: { $first: "$who" },
    last: { $last: "$who" },
    push: { $push: "$who" },
    set: { $addToSet: "$who" },
    ones: { $sum: 1 },
  };
  expect(run([{ $group: { _id: null, ...all } }])).toEqual([
    {
      id: null,
      sum: 37.5,
      avg: 12.5,
      min: 2.5,
      max: "12",
      first: "ann",
      last: null,
      push: ["ann", "bob", "ann", null],
      set: ["ann", "bob", null],
      ones: 5,
    },
  ]);
  const none = { sum: { $sum: "$nope" }, avg: { $avg: "$nope" }, min: { $min: "$nope" }, max: { $max: "$nope" } };
  expect(run([{ $group: { _id: null, ...none, first: { $first: "$nope" }, push: { $push: "$nope" } } }])).toEqual([
    { id: null, sum: 0, avg: null, min: null, max: null, first: null, push: [] },
  ]);
  expect(run([{ $match: { who: "eve" } }, { $group: { _id: null, n: { $sum: 1 } } }])).toEqual([]);
});

test("[AGG-1] $facet runs pipelines side by side", () => {
  const facet = {
    cheap: [{ $sort: { total: 1 } }, { $limit: 2 }, { $project: { id: 1 } }],
    n: [{ $count: "n" }],
    one: [{ $limit: 1 }],
  };
  expect(run([{ $match: { total: { $type: "number" } } }, { $facet: facet }])).toEqual([
    { cheap: [{ id: "o5" }, { id: "o2" }], n: [{ n: 3 }], one: [orders[0]] },
  ]);
});

test("[AGG-8] $lookup fetches records of the collection by id, each once, by id", () => {
  const lookup = { $lookup: { localField: "ref", foreignField: "id", as: "found" } };
  const found = run([lookup]).map((doc) => ids((doc as { found: unknown[] }).found));
  expect(found).toEqual([["o3"], ["o1", "o3"], [], [], []]);
  const dead = createRowsTable([{ id: "a", ...{ ref: ["dead1", "other1"] } }]);
  expect(run([lookup], {}, dead)).toEqual([{ id: "a", ref: ["dead1", "other1"], found: [] }]);
});

test("[AGG-1] names that objects inherit are plain names", () => {
  const [doc] = runAggregate(
    db,
    source,
    parsePipeline(JSON.parse('[{"$limit":1},{"$project":{"__proto__":"$who","constructor":"$id"}}]')),
  ).records;
  expect(doc).toBe('{"__proto__":"ann","constructor":"o1"}');
});

test("[AGG-4] limits: group, accumArray and memory, each by its name", () => {
  const exceeded = (limit: string) => ["aggregate.limit_exceeded", limit];
  const byWho: Json = { $group: { _id: "$who", ids: { $push: "$id" } } };
  expect(limitOf([byWho], { groupLimit: 2 })).toEqual(exceeded("group"));
  expect(limitOf([byWho], { groupLimit: 3 })).toBeUndefined();
  expect(limitOf([byWho], { groupLimit: -1 })).toBeUndefined();
  expect(limitOf([byWho], { accumArrayLimit: 1 })).toEqual(exceeded("accumArray"));
  expect(limitOf([{ $group: { _id: null, ids: { $addToSet: "$id" } } }], { accumArrayLimit: 4 })).toEqual(
    exceeded("accumArray"),
  );
  expect(limitOf([{ $group: { _id: null, ids: { $addToSet: "$who" } } }], { accumArrayLimit: 3 })).toBeUndefined();
  for (const stage of [{ $sort: { a: 1 } }, byWho, { $facet: { a: [] } }, { $skip: 0 }])
    expect(limitOf([stage], { memoryLimitBytes: 100 })).toEqual(exceeded("memory"));
  expect(limitOf([{ $sort: { a: 1 } }, { $limit: 1 }], { memoryLimitBytes: 1_000 })).toBeUndefined();
  expect(
    limitOf([{ $addFields: { k: 1 } }, { $sort: { a: 1 } }, { $limit: 1 }], { memoryLimitBytes: 1_500 }),
  ).toBeUndefined();
});

test("[AGG-7] repeating a value stage by stage ends at the size of a document", () => {
  const nine: Json = Array(9).fill("$a");
  const pipeline: Json[] = [
    { $limit: 1 },
    { $set: { a: "$id" } },
    ...Array.from({ length: 40 }, (): Json => ({ $set: { a: nine } })),
  ];
  expect(limitOf(pipeline, { memoryLimitBytes: -1 })).toEqual(["aggregate.limit_exceeded", "memory"]);
});

test("[AGG-7] [API-10] an aggregate that is told to stop ends with server.unavailable", () => {
  const many = createRowsTable(Array.from({ length: 5_000 }, (_, i) => ({ id: `r${i}` })));
  let asked = 0;
  const shouldStop = () => ++asked === 3;
  const pipeline = parsePipeline([{ $group: { _id: "$id", n: { $max: "$id" } } }]);
  const attempt = () => runAggregate(many, source, pipeline, { shouldStop });
  expect(attempt).toThrow(expect.objectContaining({ code: "server.unavailable" }));
  expect(asked).toBe(3);
  expect(many.inTransaction).toBe(false);
});

const indexed = createRowsTable(
  Array.from({ length: 3_000 }, (_, i) => ({
    id: `r${String(i).padStart(4, "0")}`,
    n: i,
    status: [["todo", "x"], "done", 5, true, { $date: "2026-01-31T09:30:00.000Z" }, { a: 1 }, null][i % 7],
  })),
);
indexPaths(indexed, ["status", "n"]);

test("[INDEX-1] counting by an indexed path happens in SQL, and is the same as on documents", () => {
  const count = parsePipeline([{ $group: { _id: "$status", n: { $sum: 1 }, m: { $count: {} } } }]);
  const pushed = runAggregate(indexed, source, count);
  // A third field that SQL does not count keeps the whole stage on documents.
  const slow = parsePipeline([
    { $group: { _id: "$status", n: { $sum: 1 }, m: { $count: {} }, x: { $max: 1 } } },
    { $project: { id: 1, n: 1, m: 1 } },
  ]);
  const read = runAggregate(indexed, source, slow);
  expect(pushed.records).toEqual(read.records);
  expect(pushed.stats.index).toBe("status");
  expect(pushed.stats.candidates).toBeLessThan(1_000);
  expect(read.stats.candidates).toBe(3_000);
});

test("[AGG-6] explain says what is pushed down, by which index, and what each stage does", () => {
  const explain = (pipeline: Json[]) => explainAggregate(indexed, source, parsePipeline(pipeline));
  const window = explain([
    { $match: { n: { $gt: 5 } } },
    { $sort: { n: -1 } },
    { $skip: 2 },
    { $limit: 10 },
    { $project: { n: 1 } },
  ]);
  expect(window).toContain("Access: index on n in the order of the sort");
  expect(window).toContain('Pushdown: filter={"$match":{"n":{"$gt":5}}} sort=-n skip=2 limit=10');
  expect(window).toContain('  5. {"$project":{"n":1}}: streams');
  const group = explain([{ $match: { n: { $lt: 9 } } }, { $group: { _id: "$status", total: { $sum: "$n" } } }]);
  expect(group).toContain("Access: index on n, 9 candidates, then by id");
  expect(group).toContain("at most 50000 groups within 268435456 bytes");
  expect(explain([{ $group: { _id: "$status", n: { $sum: 1 } } }])).toContain("counted over the index on status");
  expect(explain([{ $match: { n: 5 } }, { $count: "n" }])).toContain("rows counted over the index on n");
  expect(explain([])).toContain("Pushdown: nothing\nStages: none");
});

test("[AGG-7] [API-10] unwinding one record again and again can be stopped", () => {
  const list = Array.from({ length: 1_000 }, (_, i) => i);
  const wide = createRowsTable([{ id: "a", ...{ x: list, y: list, z: list } }]);
  const pipeline = parsePipeline([{ $unwind: "$x" }, { $unwind: "$y" }, { $unwind: "$z" }, { $count: "n" }]);
  let asked = 0;
  const attempt = () => runAggregate(wide, source, pipeline, { shouldStop: () => ++asked === 5 });
  expect(attempt).toThrow(expect.objectContaining({ code: "server.unavailable" }));
});
