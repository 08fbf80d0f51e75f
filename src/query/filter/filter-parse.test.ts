import { expect, test } from "bun:test";
import { faultOf } from "../../../test/support/errors-of.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { parseFilter } from "./filter-parse.ts";

const faultIn = (input: unknown, declared?: (path: string) => "datetime" | undefined) =>
  faultOf(() => parseFilter(input, { declared }));

/** [filter, code, details.path] */
const FAULTS: [Json, ErrorCode, string][] = [
  ["x", "filter.invalid", ""],
  [[], "filter.invalid", ""],
  [{ tags: { $sizee: 1 } }, "filter.unknown_operator", "tags.$sizee"],
  [{ a: { $contains: 1 } }, "filter.unknown_operator", "a.$contains"],
  [{ $where: "1" }, "filter.unknown_operator", "$where"],
  [{ $expr: {} }, "filter.unknown_operator", "$expr"],
  [{ $text: {} }, "filter.unknown_operator", "$text"],
  [{ $and: [{ a: 1 }, { price: { $near: 1 } }] }, "filter.unknown_operator", "$and.1.price.$near"],
  [{ $eq: 1 }, "filter.invalid", "$eq"],
  [{ a: { $and: [{ b: 1 }] } }, "filter.invalid", "a.$and"],
  [{ a: { $gt: 1, b: 2 } }, "filter.invalid", "a.b"],
  [{ a: { b: 2, $gt: 1 } }, "filter.invalid", "a.b"],
  [{ $and: [] }, "filter.invalid", "$and"],
  [{ $or: {} }, "filter.invalid", "$or"],
  [{ $nor: [1] }, "filter.invalid", "$nor.0"],
  [{ a: { $in: 1 } }, "filter.invalid", "a.$in"],
  [{ a: { $nin: {} } }, "filter.invalid", "a.$nin"],
  [{ a: { $in: [{ $gt: 1 }] } }, "filter.invalid", "a.$in.0"],
  [{ a: { $all: 1 } }, "filter.invalid", "a.$all"],
  [{ a: { $all: [{ $elemMatch: {}, b: 1 }] } }, "filter.invalid", "a.$all.0"],
  [{ a: { $exists: "yes" } }, "filter.invalid", "a.$exists"],
  [{ a: { $exists: 2 } }, "filter.invalid", "a.$exists"],
  [{ a: { $size: -1 } }, "filter.invalid", "a.$size"],
  [{ a: { $size: 1.5 } }, "filter.invalid", "a.$size"],
  [{ a: { $type: "decimal" } }, "filter.invalid", "a.$type"],
  [{ a: { $type: [] } }, "filter.invalid", "a.$type"],
  [{ a: { $type: 2 } }, "filter.invalid", "a.$type"],
  [{ a: { $mod: [0, 1] } }, "filter.invalid", "a.$mod"],
  [{ a: { $mod: [2] } }, "filter.invalid", "a.$mod"],
  [{ a: { $mod: [2, 0.5] } }, "filter.invalid", "a.$mod"],
  [{ a: { $elemMatch: [] } }, "filter.invalid", "a.$elemMatch"],
  [{ a: { $elemMatch: { b: { $foo: 1 } } } }, "filter.unknown_operator", "a.$elemMatch.b.$foo"],
  [{ a: { $regex: 5 } }, "filter.invalid", "a.$regex"],
  [{ a: { $regex: "(" } }, "filter.invalid", "a.$regex"],
  [{ a: { $regex: "(?=x)" } }, "filter.invalid", "a.$regex"],
  [{ a: { $regex: "x", $options: "g" } }, "filter.invalid", "a.$options"],
  [{ a: { $regex: "x", $options: 1 } }, "filter.invalid", "a.$options"],
  [{ a: { $options: "i" } }, "filter.invalid", "a.$options"],
  [{ a: { $gt: { $regex: "x" } } }, "filter.invalid", "a.$gt"],
  [{ a: { $not: 5 } }, "filter.invalid", "a.$not"],
  [{ a: { $not: {} } }, "filter.invalid", "a.$not"],
  [{ a: { $not: { b: 1 } } }, "filter.invalid", "a.$not.b"],
  [{ a: { $not: { $date: "2026-01-01T00:00:00Z" } } }, "filter.invalid", "a.$not"],
  [{ a: { $date: "tomorrow" } }, "filter.invalid", "a.$date"],
  [{ a: { $gt: { $date: "2026-02-30T00:00:00Z" } } }, "filter.invalid", "a.$gt.$date"],
  [{ a: { $in: [1, { $date: 1.5 }] } }, "filter.invalid", "a.$in.1.$date"],
  [{ a: { b: [{ $date: null }] } }, "filter.invalid", "a.b.0.$date"],
  [{ a: { $date: "2026-01-01T00:00:00Z", $gt: 1 } }, "filter.invalid", "a.$date"],
  [{ "a.$date": "2026" }, "filter.invalid", "a.$date"],
  [{ a: { $in: Array(1001).fill(1) } }, "filter.too_complex", "a.$in"],
  [{ a: { $regex: "x".repeat(1001) } }, "filter.too_complex", "a.$regex"],
  [{ a: { $regex: "(?:\\pL{1000}|x{1000}|\\d{1000}|y{1000}|z{1000}|w{999})" } }, "filter.too_complex", "a.$regex"],
];

test.each(FAULTS)("[QUERY-1] %j is %s at %s", (filter, code, path) => {
  const fault = faultIn(filter);
  expect([fault?.code, fault?.details?.["path"]]).toEqual([code, path]);
});

test("[QUERY-1] unknown_operator names the operator and lists what there is", () => {
  const fault = faultIn({ a: { $contains: 1 } });
  expect(fault?.details).toEqual({ operator: "$contains", path: "a.$contains" });
  for (const operator of ["$eq", "$nin", "$elemMatch", "$options", "$nor"]) expect(fault?.message).toContain(operator);
});

test("[QUERY-1] invalid carries the reason in message and details", () => {
  const fault = faultIn({ a: { $size: -1 } });
  expect(fault?.message).toContain("non-negative integer");
  expect(fault?.details?.["reason"]).toContain("non-negative integer");
});

test("[QUERY-1] absent, null and {} are everything; what the limits allow is taken", () => {
  const conditions = Array.from({ length: 199 }, () => ({ a: 1 }));
  const fine = [undefined, null, {}, { $and: conditions }, { a: { $in: Array(1000).fill(1) } }, nested(31)];
  for (const filter of fine) expect(faultIn(filter)).toBeUndefined();
});

test("[QUERY-1] more than 200 nodes or 32 levels is too complex, with the limit", () => {
  const wide = faultIn({ $or: Array.from({ length: 250 }, () => ({ a: 1 })) });
  expect([wide?.code, wide?.details?.["limit"]]).toEqual(["filter.too_complex", 200]);
  const deep = [nested(33), { a: nestedNot(40) }, { a: nestedObject(60) }, nestedElemMatch(40)];
  for (const filter of deep) {
    const fault = faultIn(filter);
    expect([fault?.code, fault?.details?.["limit"]]).toEqual(["filter.too_complex", 32]);
  }
});

test("[QUERY-6] a declared datetime is compared with dates only", () => {
  const declared = (path: string) => (path === "due" || path === "log.at" ? "datetime" : undefined);
  const date = { $date: "2026-01-31T09:30:00.000Z" };
  const wrong: [Json, string][] = [
    [{ due: "2026-01-31" }, "due"],
    [{ due: { $gt: 5 } }, "due.$gt"],
    [{ due: { $in: [date, "x"] } }, "due.$in.1"],
    [{ due: { $not: { $lt: 5 } } }, "due.$not.$lt"],
    [{ log: { $elemMatch: { at: { $gt: "2026" } } } }, "log.$elemMatch.at.$gt"],
  ];
  for (const [filter, path] of wrong) {
    const fault = faultIn(filter, declared);
    expect([fault?.code, fault?.details?.["path"]]).toEqual(["filter.invalid", path]);
    expect(fault?.message).toContain('{"$date"');
  }
  const right = [{ due: date }, { due: null }, { due: { $exists: true } }, { due: { $gt: date } }, { "log.x": 5 }];
  for (const filter of right) expect(faultIn(filter, declared)).toBeUndefined();
});

test("[QUERY-1] hostile keys are refused or taken, never worse", () => {
  const keys = [
    "__proto__",
    "constructor",
    "a'b",
    'a"b',
    "a\0b",
    "\ud800",
    "$".repeat(5),
    "",
    ".",
    "a..b",
    "x".repeat(100_000),
  ];
  const texts = keys.flatMap((key) => [
    JSON.stringify({ k: 1 }).replace('"k"', JSON.stringify(key)),
    JSON.stringify({ a: { k: 1 } }).replace('"k"', JSON.stringify(key)),
    JSON.stringify({ a: { $elemMatch: { k: { $gt: 1 } } } }).replace('"k"', JSON.stringify(key)),
  ]);
  for (const text of texts) {
    const fault = faultIn(JSON.parse(text));
    if (fault) expect(JSON.stringify(fault.toBody()).length).toBeLessThan(2_000);
  }
  expect(Object.keys(Object.prototype)).toEqual([]);
});

function nested(levels: number): Json {
  return levels <= 1 ? { a: 1 } : { $and: [nested(levels - 1)] };
}
function nestedNot(levels: number): Json {
  return levels <= 1 ? { $gt: 1 } : { $not: nestedNot(levels - 1) };
}
function nestedObject(levels: number): Json {
  return levels <= 1 ? 1 : { x: nestedObject(levels - 1) };
}
function nestedElemMatch(levels: number): Json {
  return levels <= 1 ? { a: 1 } : { a: { $elemMatch: nestedElemMatch(levels - 1) } };
}
