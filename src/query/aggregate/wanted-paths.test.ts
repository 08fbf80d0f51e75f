import { expect, test } from "bun:test";
import { parseFilter } from "../filter/filter-parse.ts";
import { parseSort } from "../value/sort.ts";
import { parsePipeline } from "./aggregate-parse.ts";
import { pathsWantedByPipeline, pathsWantedByQuery } from "./wanted-paths.ts";

const ofQuery = (filter: unknown, sort: string[] = [], limit?: number) =>
  pathsWantedByQuery({ filter: parseFilter(filter), sort: parseSort(sort), limit });

test("[INDEX-2] a query wants what every match must meet, then the first sort path of a window", () => {
  const filter = { a: 1, "b.c": { $gt: 5 }, $or: [{ d: 1 }], e: { $ne: 1 }, é: 1, $and: [{ f: "x" }] };
  expect(ofQuery(filter, ["-g", "h"], 10)).toEqual(["a", "b.c", "f", "g"]);
  expect(ofQuery(filter, ["-g", "h"])).toEqual(["a", "b.c", "f"]);
  expect(ofQuery({}, ["id"], 10)).toEqual([]);
  expect(ofQuery({}, ["a"], 0)).toEqual([]);
});

test("[INDEX-2] a query that names the ids of its matches wants nothing", () => {
  expect(ofQuery({ id: "x", a: 1 })).toEqual([]);
  expect(ofQuery({ $and: [{ id: { $in: ["x"] } }, { a: 1 }] }, ["a"], 5)).toEqual([]);
  expect(ofQuery({ id: { $gt: "x" }, a: 1 })).toEqual(["a"]);
});

test("[INDEX-2] a pipeline wants what it pushes down, or the path of a group that only counts", () => {
  const of = (...stages: object[]) => pathsWantedByPipeline(parsePipeline(stages));
  const group = (fields: object) => ({ $group: { _id: "$g", ...fields } });
  expect(of({ $match: { a: 1 } }, { $match: { b: 2 } }, group({}))).toEqual(["a", "b"]);
  expect(of({ $sort: { a: 1 } }, { $limit: 5 })).toEqual(["a"]);
  expect(of({ $sort: { a: 1 } })).toEqual([]);
  expect(of(group({ n: { $sum: 1 } }))).toEqual(["g"]);
  expect(of(group({ n: { $sum: "$x" } }))).toEqual([]);
  expect(of({ $limit: 5 }, group({}))).toEqual([]);
  expect(of({ $project: { a: 1 } }, { $match: { a: 1 } })).toEqual([]);
});
