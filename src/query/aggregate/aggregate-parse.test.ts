// biome-ignore-all lint/suspicious/noThenProperty: $cond and $switch name their branches so
import { expect, test } from "bun:test";
import { faultOf } from "../../../test/support/errors-of.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { parsePipeline } from "./aggregate-parse.ts";
import { parseAggregateLimits } from "./aggregate-run.ts";

/** [stage, details.path of aggregate.bad_pipeline] */
const FAULTS: [Json, string][] = [
  ["x", "pipeline.0"],
  [{}, "pipeline.0"],
  [{ $match: {}, $sort: { a: 1 } }, "pipeline.0"],
  [{ $out: "x" }, "pipeline.0.$out"],
  [{ $merge: {} }, "pipeline.0.$merge"],
  [{ $bucket: {} }, "pipeline.0.$bucket"],
  [{ $replaceRoot: {} }, "pipeline.0.$replaceRoot"],
  [{ $match: 1 }, "pipeline.0.$match"],
  [{ $match: { a: { $near: 1 } } }, "pipeline.0.$match.a.$near"],
  [{ $match: { $text: { $search: "x" } } }, "pipeline.0.$match.$text"],
  [{ $match: { $or: [{ $expr: true }] } }, "pipeline.0.$match.$or.0.$expr"],
  [{ $match: { $nor: [{ $expr: true }] } }, "pipeline.0.$match.$nor.0.$expr"],
  [{ $match: { $expr: { $foo: 1 } } }, "pipeline.0.$match.$expr.$foo"],
  [{ $match: { $and: [{ a: 1 }, { $expr: { $abs: [1, 2] } }] } }, "pipeline.0.$match.$and.1.$expr.$abs"],
  [{ $sort: {} }, "pipeline.0.$sort"],
  [{ $sort: ["a"] }, "pipeline.0.$sort"],
  [{ $sort: { a: "asc" } }, "pipeline.0.$sort.a"],
  [{ $sort: { a: 0 } }, "pipeline.0.$sort.a"],
  [{ $skip: -1 }, "pipeline.0.$skip"],
  [{ $skip: 1.5 }, "pipeline.0.$skip"],
  [{ $limit: 0 }, "pipeline.0.$limit"],
  [{ $limit: "5" }, "pipeline.0.$limit"],
  [{ $count: "" }, "pipeline.0.$count"],
  [{ $count: "a.b" }, "pipeline.0.$count"],
  [{ $count: "$n" }, "pipeline.0.$count"],
  [{ $count: {} }, "pipeline.0.$count"],
  [{ $project: {} }, "pipeline.0.$project"],
  [{ $project: { a: 0 } }, "pipeline.0.$project.a"],
  [{ $project: { a: false } }, "pipeline.0.$project.a"],
  [{ $project: { "a.b": 1 } }, "pipeline.0.$project.a.b"],
  [{ $project: { $a: 1 } }, "pipeline.0.$project.$a"],
  [{ $project: { a: { b: 1 } } }, "pipeline.0.$project.a.b"],
  [{ $project: { a: { $add: [1], b: 2 } } }, "pipeline.0.$project.a.$add"],
  [{ $project: { a: "$$ROOT" } }, "pipeline.0.$project.a"],
  [{ $project: { a: "$" } }, "pipeline.0.$project.a"],
  [{ $project: { a: "$b..c" } }, "pipeline.0.$project.a"],
  [{ $project: { a: { $date: "x" } } }, "pipeline.0.$project.a.$date"],
  [{ $project: { a: { $map: {} } } }, "pipeline.0.$project.a.$map"],
  [{ $project: { a: { $subtract: [1] } } }, "pipeline.0.$project.a.$subtract"],
  [{ $project: { a: { $cond: { if: 1, then: 2 } } } }, "pipeline.0.$project.a.$cond"],
  [{ $project: { a: { $switch: { branches: [] } } } }, "pipeline.0.$project.a.$switch.branches"],
  [{ $project: { a: { $switch: { branches: [{ case: 1 }] } } } }, "pipeline.0.$project.a.$switch.branches.0"],
  [{ $project: { a: { $trim: { input: "x", char: "y" } } } }, "pipeline.0.$project.a.$trim.char"],
  [
    { $project: { a: { $dateAdd: { startDate: "$d", unit: "$u", amount: 1 } } } },
    "pipeline.0.$project.a.$dateAdd.unit",
  ],
  [{ $project: { a: { $dateTrunc: { date: "$d", unit: "eon" } } } }, "pipeline.0.$project.a.$dateTrunc.unit"],
  [
    { $project: { a: { $dateTrunc: { date: "$d", unit: "day", binSize: 0 } } } },
    "pipeline.0.$project.a.$dateTrunc.binSize",
  ],
  [
    { $project: { a: { $dateTrunc: { date: "$d", unit: "day", timezone: "Mars/Base" } } } },
    "pipeline.0.$project.a.$dateTrunc.timezone",
  ],
  [{ $project: { a: { $year: { date: "$d", timezone: "$tz" } } } }, "pipeline.0.$project.a.$year.timezone"],
  [
    { $project: { a: { $dateDiff: { startDate: 1, endDate: 2, unit: "week", startOfWeek: "m" } } } },
    "pipeline.0.$project.a.$dateDiff.startOfWeek",
  ],
  [{ $addFields: {} }, "pipeline.0.$addFields"],
  [{ $set: { "a.b": 1 } }, "pipeline.0.$set.a.b"],
  [{ $unwind: "tags" }, "pipeline.0.$unwind"],
  [{ $unwind: "$" }, "pipeline.0.$unwind"],
  [{ $unwind: { path: "$a", includeArrayIndex: "i" } }, "pipeline.0.$unwind.includeArrayIndex"],
  [{ $unwind: { path: "$a", preserveNullAndEmptyArrays: 1 } }, "pipeline.0.$unwind.preserveNullAndEmptyArrays"],
  [{ $group: {} }, "pipeline.0.$group"],
  [{ $group: { n: { $sum: 1 } } }, "pipeline.0.$group"],
  [{ $group: { _id: null, id: null } }, "pipeline.0.$group"],
  [{ $group: { _id: null, n: 1 } }, "pipeline.0.$group.n"],
  [{ $group: { _id: null, n: { $sum: 1, $avg: 1 } } }, "pipeline.0.$group.n"],
  [{ $group: { _id: null, n: { $median: 1 } } }, "pipeline.0.$group.n.$median"],
  [{ $group: { _id: null, n: { $count: 1 } } }, "pipeline.0.$group.n.$count"],
  [{ $group: { _id: null, "a.b": { $sum: 1 } } }, "pipeline.0.$group.a.b"],
  [{ $facet: {} }, "pipeline.0.$facet"],
  [{ $facet: { a: {} } }, "pipeline.0.$facet.a"],
  [{ $facet: { a: [{ $facet: { b: [] } }] } }, "pipeline.0.$facet.a.0.$facet"],
  [{ $facet: { a: [{ $nope: 1 }] } }, "pipeline.0.$facet.a.0.$nope"],
  [{ $lookup: { from: "x", localField: "a", foreignField: "id", as: "b" } }, "pipeline.0.$lookup.from"],
  [{ $lookup: { localField: "a", foreignField: "name", as: "b" } }, "pipeline.0.$lookup.foreignField"],
  [{ $lookup: { localField: "$a", foreignField: "id", as: "b" } }, "pipeline.0.$lookup.localField"],
  [{ $lookup: { localField: "a", foreignField: "id", as: "b.c" } }, "pipeline.0.$lookup.as"],
  [{ $lookup: { localField: "a", foreignField: "id" } }, "pipeline.0.$lookup.as"],
];

test.each(FAULTS)("[AGG-1] %j is a bad pipeline at %s", (stage, path) => {
  const fault = faultOf(() => parsePipeline([stage]));
  expect([fault?.code, fault?.details?.["path"]]).toEqual(["aggregate.bad_pipeline", path]);
  expect(fault?.details?.["reason"]).toBeString();
  const stages = Object.keys(typeof stage === "object" && stage !== null ? stage : {});
  const named =
    stages.length === 1 && path.includes("$facet.a.0") ? path.split(".").at(-1) : stages.length === 1 ? stages[0] : "";
  expect(fault?.details?.["stage"]).toBe(named);
});

test("[AGG-1] a pipeline that is no array is request.schema", () => {
  for (const input of [undefined, null, {}, "x", 5]) {
    const fault = faultOf(() => parsePipeline(input));
    expect([fault?.code, fault?.details]).toEqual(["request.schema", { path: "pipeline", expected: "array" }]);
  }
  expect(parsePipeline([]).stages).toEqual([]);
});

test("[AGG-5] filters inside $match follow the filter language", () => {
  const cases: [Json, ErrorCode, string][] = [
    [{ a: { $size: -1 } }, "filter.invalid", "pipeline.0.$match.a.$size"],
    [{ a: { $in: Array(1001).fill(1) } }, "filter.too_complex", "pipeline.0.$match.a.$in"],
    [{ due: 5 }, "filter.invalid", "pipeline.0.$match.due"],
  ];
  const declared = (path: string) => (path === "due" ? "datetime" : undefined);
  for (const [filter, code, path] of cases) {
    const fault = faultOf(() => parsePipeline([{ $match: filter }], { declared }));
    expect([fault?.code, fault?.details?.["path"]]).toEqual([code, path]);
  }
});

test("[AGG-7] stages, expressions and levels are bounded", () => {
  const deep = (levels: number): Json => (levels === 0 ? 1 : { $abs: deep(levels - 1) });
  const many = [
    Array.from({ length: 101 }, () => ({ $skip: 1 })),
    [{ $facet: { a: Array.from({ length: 100 }, () => ({ $skip: 1 })) } }],
    [{ $project: { a: Array(1001).fill(1) } }],
    [{ $project: { a: deep(40) } }],
  ];
  for (const pipeline of many) expect(faultOf(() => parsePipeline(pipeline))?.code).toBe("aggregate.bad_pipeline");
  expect(faultOf(() => parsePipeline([{ $project: { a: deep(30) } }]))).toBeUndefined();
});

test("[AGG-4] limits: absent or 0 is the default, negative unlimited, other types request.schema", () => {
  const limits = { groupLimit: 50_000, accumArrayLimit: 10_000, memoryLimitBytes: 256 * 1024 * 1024 };
  expect(parseAggregateLimits({})).toEqual(limits);
  expect(parseAggregateLimits({ groupLimit: 0, accumArrayLimit: -1 })).toEqual({ ...limits, accumArrayLimit: -1 });
  for (const value of ["5", 1.5, null, true]) {
    const fault = faultOf(() => parseAggregateLimits({ memoryLimitBytes: value }));
    expect([fault?.code, fault?.details?.["path"]]).toEqual(["request.schema", "memoryLimitBytes"]);
  }
});
