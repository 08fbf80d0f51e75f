// biome-ignore-all lint/suspicious/noThenProperty: $switch names its branches so
/**
 * Pipelines against a plain JavaScript computation over the documents, and against mingo where the semantics agree.
 * Where they do not, the last test shows each difference and why.
 */
import { expect, test } from "bun:test";
import { Aggregator } from "mingo";
import { parsePipeline } from "../../src/query/aggregate/aggregate-parse.ts";
import { runAggregate } from "../../src/query/aggregate/aggregate-run.ts";
import { rowsOf } from "../../src/query/rows/row-source.ts";
import { referenceCompare, referenceMatch, referenceSort } from "../support/oracle/reference-matcher.ts";
import { createRandom, type Random } from "../support/random-json.ts";
import { freshSeed } from "../support/rng.ts";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../support/rows-table.ts";

// biome-ignore lint/suspicious/noExplicitAny: pipelines and documents are raw JSON.
type Any = any;

const SEEDS = [5, 77, freshSeed("aggregates")];
const source = rowsOf(COLLECTION_ID);

function randomOrders(random: Random, count: number): Any[] {
  return Array.from({ length: count }, (_, i) => {
    const doc: Any = { id: `r${String((i * 7919) % count).padStart(4, "0")}` };
    if (random.below(8)) doc.who = random.pick(["ann", "bob", "eve", "zoë", null]);
    if (random.below(8)) doc.n = random.below(5) ? random.below(50) - 10 : random.pick([0.5, "7", null, true]);
    if (random.below(4)) doc.tags = Array.from({ length: random.below(4) }, () => random.pick(["x", "y", "z"]));
    if (random.below(3)) doc.at = { $date: new Date(Date.UTC(2020, 0, 1) + random.below(2e9) * 100).toISOString() };
    if (random.below(3)) doc.deep = { a: random.below(4), list: [{ b: random.below(3) }, { c: 1 }] };
    doc.ref = `r${String(random.below(count)).padStart(4, "0")}`;
    return doc;
  });
}

const run = (db: ReturnType<typeof createRowsTable>, pipeline: Any[]): Any[] =>
  runAggregate(db, source, parsePipeline(pipeline)).records.map((text) => JSON.parse(text));

const byId = (docs: Any[]) => referenceSort(docs, []);

/** [pipeline, the same in plain JavaScript over the documents by id] */
function plainCases(random: Random): [Any[], (docs: Any[]) => Any[]][] {
  const filter = random.pick([{}, { who: "ann" }, { n: { $gt: 10 } }, { tags: "x" }, { n: { $ne: 5 } }, { who: null }]);
  const matched = (docs: Any[]) => docs.filter((doc) => referenceMatch(doc, filter));
  const [skip, limit] = [random.below(5), 1 + random.below(20)];
  const keyOf = (doc: Any) => (doc.who === undefined ? null : doc.who);
  const groups = (docs: Any[], key: (doc: Any) => Any) => {
    const map = new Map<string, { key: Any; docs: Any[] }>();
    for (const doc of docs) {
      const text = JSON.stringify(key(doc));
      if (!map.has(text)) map.set(text, { key: key(doc), docs: [] });
      map.get(text)?.docs.push(doc);
    }
    return [...map.values()];
  };
  const numbers = (docs: Any[]) => docs.map((doc) => doc.n).filter((n) => typeof n === "number");
  const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
  const best = (docs: Any[], sign: number) =>
    docs
      .map((doc) => doc.n)
      .filter((n) => n !== undefined && n !== null)
      .reduce((a, b) => (a === null || referenceCompare(b, a) * sign > 0 ? b : a), null);
  return [
    [[{ $match: filter }, { $count: "n" }], (docs) => [{ n: matched(docs).length }]],
    [
      [{ $match: filter }, { $sort: { n: -1, who: 1 } }, { $skip: skip }, { $limit: limit }],
      (docs) => referenceSort(matched(docs), ["-n", "who"]).slice(skip, skip + limit),
    ],
    [[{ $match: filter }, { $sort: { "deep.list.b": 1 } }], (docs) => referenceSort(matched(docs), ["deep.list.b"])],
    [
      [{ $match: filter }, { $group: { _id: "$who", n: { $sum: 1 } } }],
      (docs) => groups(matched(docs), keyOf).map(({ key, docs: members }) => ({ id: key, n: members.length })),
    ],
    [
      [
        { $match: filter },
        {
          $group: {
            _id: { w: "$who", a: "$deep.a" },
            sum: { $sum: "$n" },
            avg: { $avg: "$n" },
            min: { $min: "$n" },
            max: { $max: "$n" },
            first: { $first: "$id" },
            last: { $last: "$ref" },
            all: { $push: "$n" },
          },
        },
      ],
      (docs) =>
        groups(matched(docs), (doc) => ({ w: doc.who, a: doc.deep?.a })).map(({ key, docs: members }) => ({
          id: JSON.parse(JSON.stringify(key)),
          sum: sum(numbers(members)),
          avg: numbers(members).length ? sum(numbers(members)) / numbers(members).length : null,
          min: best(members, -1),
          max: best(members, 1),
          first: members[0].id,
          last: members.at(-1).ref,
          all: members.map((doc) => doc.n).filter((n) => n !== undefined),
        })),
    ],
    [
      [
        { $match: filter },
        { $unwind: "$tags" },
        { $group: { _id: "$tags", n: { $count: {} }, who: { $addToSet: "$who" } } },
      ],
      (docs) =>
        groups(
          matched(docs).flatMap((doc) => (doc.tags ?? []).map((tag: string) => ({ ...doc, tag }))),
          (doc) => doc.tag,
        ).map(({ key, docs: members }) => ({
          id: key,
          n: members.length,
          who: [...new Set(members.map((doc) => doc.who).filter((who) => who !== undefined))],
        })),
    ],
    [
      [
        { $match: filter },
        { $project: { id: 1, y: { $year: "$at" }, m: { $dateTrunc: { date: "$at", unit: "month" } } } },
      ],
      (docs) =>
        matched(docs).map(({ id, at }) => ({
          id,
          y: at ? Number(at.$date.slice(0, 4)) : null,
          m: at ? { $date: `${at.$date.slice(0, 7)}-01T00:00:00.000Z` } : null,
        })),
    ],
    [
      [{ $match: filter }, { $limit: limit }, { $lookup: { localField: "ref", foreignField: "id", as: "r" } }],
      (docs) =>
        matched(docs)
          .slice(0, limit)
          .map((doc) => ({ ...doc, r: docs.filter(({ id }) => id === doc.ref) })),
    ],
  ];
}

for (const seed of SEEDS)
  for (const paths of [[], ["who", "n", "tags"]])
    test(`[AGG-1] [AGG-3] [INDEX-1] pipelines equal a plain computation, indexes on [${paths}], seed ${seed}`, () => {
      const random = createRandom(seed);
      for (let round = 0; round < 12; round++) {
        const docs = randomOrders(random, 150);
        const db = createRowsTable(docs);
        indexPaths(db, paths);
        for (const [pipeline, compute] of plainCases(random))
          expect({ seed, pipeline, records: run(db, pipeline) }).toEqual({
            seed,
            pipeline,
            records: compute(byId(docs)),
          });
      }
    });

const toMingo = (value: Any): Any => {
  if (Array.isArray(value)) return value.map(toMingo);
  if (typeof value !== "object" || value === null) return value;
  if (typeof value.$date === "string") return new Date(value.$date);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, toMingo(part)]));
};

/** Back from mingo: dates as `{$date}`, the key of a group as `id`, missing fields left out, -0 as JSON writes it. */
const fromMingo = (value: Any): Any => {
  if (value instanceof Date) return { $date: value.toISOString() };
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(fromMingo);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([key, part]) => [key === "_id" ? "id" : key, fromMingo(part)]));
};

const runMingo = (docs: Any[], pipeline: Any[]) =>
  fromMingo(new Aggregator(toMingo(pipeline)).run(toMingo(byId(docs)) as Any[]));

/** Documents of one shape, on whose values both agree: no type faults, nothing missing. */
function wholeOrders(random: Random, count: number): Any[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `r${String(i).padStart(4, "0")}`,
    who: random.pick(["ann", "bob", "eve"]),
    n: random.below(400) / 4 - 20,
    m: 1 + random.below(9),
    s: random.pick(["  a-b ", "x-y-z", "---", "héllo"]),
    flag: random.below(2) === 0,
    list: Array.from({ length: random.below(4) }, () => ({ b: random.below(5) })),
    // No day that some month lacks, nothing before 2000: mingo errs there, as the differences below show.
    at: {
      $date: new Date(
        Date.UTC(2000, random.below(400), 1 + random.below(28), 0, 0, random.below(86_400)),
      ).toISOString(),
    },
    to: { $date: new Date(Date.UTC(2001, 0, 1) + random.below(1e9) * 1000).toISOString() },
  }));
}

const AGREED: Any[] = [
  { $add: ["$n", "$m", 1] },
  { $subtract: ["$n", "$m"] },
  { $subtract: ["$to", "$at"] },
  { $multiply: ["$n", "$m"] },
  { $divide: ["$n", "$m"] },
  { $abs: "$n" },
  { $round: ["$n", 0] },
  { $concat: ["$who", "/", "$s"] },
  { $split: ["$s", "-"] },
  { $replaceOne: { input: "$s", find: "-", replacement: "+" } },
  { $replaceAll: { input: "$s", find: "-", replacement: "+" } },
  { $trim: { input: "$s" } },
  { $ltrim: { input: "$s", chars: "- x" } },
  { $rtrim: { input: "$s", chars: "-" } },
  { $strLenBytes: "$s" },
  { $strLenCP: "$s" },
  { $size: "$list" },
  "$list.b",
  "$list.0.b",
  { $cond: [{ $gt: ["$n", 5] }, "$who", "$m"] },
  {
    $switch: {
      branches: [
        { case: { $lt: ["$n", 0] }, then: "neg" },
        { case: "$flag", then: "$m" },
      ],
      default: "no",
    },
  },
  { $ifNull: ["$none", "$who"] },
  { $cmp: ["$n", "$m"] },
  { $eq: ["$who", "ann"] },
  { $gte: ["$at", "$to"] },
  { $year: "$at" },
  ...["year", "quarter", "month", "week", "day", "hour", "minute", "second"].flatMap((unit) => [
    { $dateAdd: { startDate: "$at", unit, amount: "$m" } },
    { $dateTrunc: { date: "$at", unit, binSize: 3 } },
  ]),
  ...["year", "quarter", "month", "day", "minute", "millisecond"].map((unit) => ({
    $dateDiff: { startDate: "$at", endDate: "$to", unit },
  })),
];

for (const seed of SEEDS)
  test(`[AGG-1] [AGG-2] [AGG-3] expressions and stages equal mingo's where the semantics agree, seed ${seed}`, () => {
    const docs = wholeOrders(createRandom(seed), 120);
    const db = createRowsTable(docs);
    for (const expression of AGREED) {
      const pipeline = [{ $project: { id: 1, v: expression } }];
      expect({ seed, pipeline, records: run(db, pipeline) }).toEqual({
        seed,
        pipeline,
        records: runMingo(docs, pipeline),
      });
    }
    const pipelines: Any[][] = [
      [{ $match: { n: { $gt: 3 }, who: { $in: ["ann", "eve"] } } }, { $sort: { n: -1 } }, { $skip: 2 }, { $limit: 9 }],
      [{ $group: { _id: "$who", s: { $sum: "$m" }, a: { $avg: "$m" }, lo: { $min: "$n" }, hi: { $max: "$n" } } }],
      [
        {
          $group: {
            _id: { w: "$who", f: "$flag" },
            first: { $first: "$id" },
            last: { $last: "$id" },
            n: { $count: {} },
          },
        },
      ],
      [{ $group: { _id: "$flag", all: { $push: "$m" }, set: { $addToSet: "$who" } } }],
      [{ $unwind: "$list" }, { $group: { _id: "$list.b", n: { $sum: 1 } } }],
      [{ $unwind: { path: "$list", preserveNullAndEmptyArrays: true } }, { $project: { id: 1, list: 1 } }],
      [{ $addFields: { t: { $add: ["$n", 1] } } }, { $match: { $expr: { $gt: ["$t", "$m"] } } }, { $count: "c" }],
      [{ $facet: { top: [{ $sort: { m: 1 } }, { $limit: 3 }], n: [{ $match: { flag: true } }, { $count: "c" }] } }],
    ];
    for (const pipeline of pipelines)
      expect({ seed, pipeline, records: run(db, pipeline) }).toEqual({
        seed,
        pipeline,
        records: runMingo(docs, pipeline),
      });
  });

/** [why the two differ, document, expression, ours] */
const DIFFERENCES: [string, Any, Any, Any][] = [
  ["runtime faults are null here, thrown there", { n: "x" }, { $add: ["$n", 1] }, null],
  ["division by zero is null here, thrown there", { n: 1 }, { $divide: ["$n", 0] }, null],
  ["a number's length is null here, thrown there", { n: 1 }, { $strLenCP: "$n" }, null],
  ["$size of no array is null here, thrown there", { n: 1 }, { $size: "$n" }, null],
  ["overflow is null here (JSON has no Infinity)", { n: 1e308 }, { $multiply: ["$n", 10] }, null],
  [
    "a half with places goes to the even digit here, as in MongoDB; it is cut off there",
    { n: 79.75 },
    { $round: ["$n", 1] },
    79.8,
  ],
  [
    "week 1 begins on the first Sunday here, as in MongoDB; it is counted from the first day there",
    { d: { $date: "2026-01-04T00:00:00.000Z" } },
    { $week: "$d" },
    1,
  ],
  [
    "a month too short gives its last day here, as in MongoDB; it runs over there",
    { d: { $date: "2026-01-31T00:00:00.000Z" } },
    { $dateAdd: { startDate: "$d", unit: "month", amount: 1 } },
    { $date: "2026-02-28T00:00:00.000Z" },
  ],
  [
    "twelve months back are a year here; they are nothing there",
    { d: { $date: "2000-01-01T00:00:00.000Z" } },
    { $dateAdd: { startDate: "$d", unit: "month", amount: -12 } },
    { $date: "1999-01-01T00:00:00.000Z" },
  ],
  ["strings compare by code point here, by UTF-16 unit there", { n: "😀" }, { $gt: ["$n", "\uffff"] }, true],
  [
    "comparisons see all types here, as in MongoDB; across types none is greater there",
    { n: "a" },
    { $gt: ["$n", 5] },
    true,
  ],
];

test.each(DIFFERENCES)("[AGG-2] unlike mingo: %s", (_why, fields, expression, ours) => {
  const docs = [{ id: "r", ...fields }];
  const pipeline = [{ $project: { v: expression } }];
  expect(run(createRowsTable(docs), pipeline)).toEqual([{ v: ours }]);
  let theirs: unknown;
  try {
    theirs = runMingo(docs, pipeline);
  } catch {
    theirs = "thrown";
  }
  expect(theirs).not.toEqual([{ v: ours }]);
});
