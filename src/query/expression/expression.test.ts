// biome-ignore-all lint/suspicious/noThenProperty: $cond and $switch name their branches so
import { expect, test } from "bun:test";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { createExpressionScope } from "./expression-parse.ts";

const date = (text: string) => ({ $date: text });
const DOC: JsonObject = {
  n: 7,
  zero: 0,
  half: 2.5,
  s: "héllo 😀",
  sp: "  x \t",
  t: true,
  f: false,
  nothing: null,
  list: [3, 1, 2],
  objects: [{ b: 1 }, { c: 2 }, { b: { d: 5 } }, 9, [{ b: 7 }]],
  deep: { a: { b: 1 }, "0": "zero" },
  when: date("2026-03-29T00:30:00.000Z"),
  later: date("2026-10-25T01:30:00.000Z"),
};

function evaluate(expression: Json, doc: JsonObject = DOC): Json | undefined {
  return createExpressionScope().parse(expression, { stage: "$project", path: "x" }).evaluate(doc);
}

const MISSING = "(missing)";

const CASES: [string, Json, Json][] = [
  ["a path", "$deep.a.b", 1],
  ["a path to nothing", "$deep.x.b", MISSING],
  ["a path through a scalar", "$n.x", MISSING],
  ["a path over an array of objects", "$objects.b", [1, { d: 5 }]],
  ["a path over an array, deeper", "$objects.b.d", [5]],
  ["a numeric segment picks an element", "$list.1", 1],
  ["a numeric segment beyond the end", "$list.3", MISSING],
  ["a numeric segment on an object is a key", "$deep.0", "zero"],
  ["picking, then going on", "$objects.2.b.d", 5],
  ["a path does not enter a date", "$when.x", MISSING],
  ["inherited names are missing", "$constructor", MISSING],
  ["a plain text is itself", "n", "n"],
  ["$literal", { $literal: "$n" }, "$n"],
  ["$literal of an operator", { $literal: { $add: [1] } }, { $add: [1] }],
  ["a date literal, in the form that records have", date("2026-01-01T00:00:00Z"), date("2026-01-01T00:00:00.000Z")],
  ["a nested document leaves missing out", { a: "$n", b: "$none", c: { d: "$t" } }, { a: 7, c: { d: true } }],
  ["a nested array keeps places", ["$n", "$none", [1]], [7, null, [1]]],
  ["$add", { $add: ["$n", 1, "$half"] }, 10.5],
  ["$add of nothing", { $add: [] }, 0],
  ["$add with null", { $add: ["$n", "$nothing"] }, null],
  ["$add with missing", { $add: ["$n", "$none"] }, null],
  ["$add with a string", { $add: ["$n", "$s"] }, null],
  ["$add shifts a date", { $add: ["$when", 1500] }, date("2026-03-29T00:30:01.500Z")],
  ["$add of two dates", { $add: ["$when", "$later"] }, null],
  ["$add past the year 9999", { $add: ["$when", 1e15] }, null],
  ["$subtract", { $subtract: ["$n", 10] }, -3],
  ["$subtract of dates is milliseconds", { $subtract: ["$later", "$when"] }, 18147600000],
  ["$subtract shifts a date", { $subtract: ["$when", 1000] }, date("2026-03-29T00:29:59.000Z")],
  ["$subtract of a date from a number", { $subtract: [1, "$when"] }, null],
  ["$multiply", { $multiply: [2, "$half", "$n"] }, 35],
  ["$multiply overflows to null", { $multiply: [1e308, 10] }, null],
  ["$divide", { $divide: ["$n", 2] }, 3.5],
  ["$divide by zero", { $divide: ["$n", "$zero"] }, null],
  ["$abs", { $abs: -3 }, 3],
  ["$abs of a boolean", { $abs: "$t" }, null],
  ["$round half to even, down", { $round: ["$half"] }, 2],
  ["$round half to even, up", { $round: 3.5 }, 4],
  ["$round of negatives", { $round: [-2.5, 0] }, -2],
  ["$round to decimals, as written", { $round: [2.345, 2] }, 2.34],
  ["$round to decimals, up", { $round: [2.355, 2] }, 2.36],
  ["$round above half", { $round: [2.5001] }, 3],
  ["$round to tens", { $round: [1250, -2] }, 1200],
  ["$round to more than there is", { $round: [49, -3] }, 0],
  ["$round of half of more than there is", { $round: [500, -3] }, 0],
  ["$round of tiny numbers", { $round: [1.5e-7, 7] }, 2e-7],
  ["$round of huge numbers", { $round: [1.5e300, 2] }, 1.5e300],
  ["$round to no whole number of decimals", { $round: ["$n", 0.5] }, null],
  ["$concat", { $concat: ["a", "$s"] }, "ahéllo 😀"],
  ["$concat with null", { $concat: ["a", "$nothing"] }, null],
  ["$concat with a number", { $concat: ["a", "$n"] }, null],
  ["$split", { $split: ["a-b--c", "-"] }, ["a", "b", "", "c"]],
  ["$split by nothing", { $split: ["ab", ""] }, null],
  ["$replaceOne", { $replaceOne: { input: "a.b.c", find: ".", replacement: "$&" } }, null],
  ["$replaceOne, literal", { $replaceOne: { input: "a.b.c", find: ".", replacement: { $literal: "$&" } } }, "a$&b.c"],
  ["$replaceAll", { $replaceAll: { input: "a.b.c", find: ".", replacement: "-" } }, "a-b-c"],
  ["$replaceAll of missing", { $replaceAll: { input: "$none", find: ".", replacement: "-" } }, null],
  ["$trim", { $trim: { input: "$sp" } }, "x"],
  ["$ltrim", { $ltrim: { input: "$sp" } }, "x \t"],
  ["$rtrim", { $rtrim: { input: "$sp" } }, "  x"],
  ["$trim of chars", { $trim: { input: "😀ab😀", chars: "b😀" } }, "a"],
  ["$trim of a number", { $trim: { input: "$n" } }, null],
  ["$strLenBytes", { $strLenBytes: "$s" }, 11],
  ["$strLenCP", { $strLenCP: "$s" }, 7],
  ["$strLenCP of a number", { $strLenCP: "$n" }, null],
  ["$size", { $size: "$list" }, 3],
  ["$size of no array", { $size: "$n" }, null],
  ["$cond", { $cond: [{ $gt: ["$n", 5] }, "big", "small"] }, "big"],
  ["$cond by name", { $cond: { if: "$f", then: 1, else: 2 } }, 2],
  ["0 is false", { $cond: ["$zero", 1, 2] }, 2],
  ["null is false", { $cond: ["$nothing", 1, 2] }, 2],
  ["missing is false", { $cond: ["$none", 1, 2] }, 2],
  ['"" is true', { $cond: ["", 1, 2] }, 1],
  ["[] is true", { $cond: [[], 1, 2] }, 1],
  [
    "$switch",
    {
      $switch: {
        branches: [
          { case: "$f", then: 1 },
          { case: "$t", then: 2 },
        ],
        default: 3,
      },
    },
    2,
  ],
  ["$switch, default", { $switch: { branches: [{ case: "$f", then: 1 }], default: 3 } }, 3],
  ["$switch without a hit", { $switch: { branches: [{ case: "$f", then: 1 }] } }, null],
  ["$ifNull", { $ifNull: ["$none", "$nothing", "$n"] }, 7],
  ["$ifNull without a value", { $ifNull: ["$none", "$nothing"] }, null],
  ["$eq across types", { $eq: ["$n", "7"] }, false],
  ["$eq of null and missing", { $eq: ["$nothing", "$none"] }, true],
  ["$eq of dates of two spellings", { $eq: ["$when", date("2026-03-29T02:30:00+02:00")] }, true],
  ["$ne", { $ne: ["$n", 8] }, true],
  ["$gt across types follows the order", { $gt: ["$s", "$n"] }, true],
  ["$gte", { $gte: ["$n", 7] }, true],
  [
    "$lt of arrays",
    {
      $lt: [
        [1, 2],
        [1, 3],
      ],
    },
    true,
  ],
  ["$lte", { $lte: ["$n", 6] }, false],
  ["$cmp", { $cmp: ["b", "a"] }, 1],
  ["$cmp by code point", { $cmp: ["😀", "\uffff"] }, 1],
  ["$year", { $year: "$when" }, 2026],
  ["$year in a zone", { $year: { date: date("2026-12-31T23:30:00Z"), timezone: "Europe/Berlin" } }, 2027],
  ["$year of a string", { $year: "$s" }, null],
  ["$week 0", { $week: date("2026-01-03T00:00:00Z") }, 0],
  ["$week 1 begins on Sunday", { $week: date("2026-01-04T00:00:00Z") }, 1],
  ["$week 53", { $week: date("2000-12-31T00:00:00Z") }, 53],
  [
    "$dateAdd, a month too short",
    { $dateAdd: { startDate: date("2026-01-31T10:00:00Z"), unit: "month", amount: 1 } },
    date("2026-02-28T10:00:00.000Z"),
  ],
  [
    "$dateAdd, a leap day",
    { $dateAdd: { startDate: date("2024-02-29T00:00:00Z"), unit: "year", amount: 1 } },
    date("2025-02-28T00:00:00.000Z"),
  ],
  [
    "$dateAdd, quarters back",
    { $dateAdd: { startDate: date("2026-05-31T00:00:00Z"), unit: "quarter", amount: -1 } },
    date("2026-02-28T00:00:00.000Z"),
  ],
  [
    "$dateAdd, a day keeps the clock",
    { $dateAdd: { startDate: date("2026-03-28T11:00:00Z"), unit: "day", amount: 1, timezone: "Europe/Berlin" } },
    date("2026-03-29T10:00:00.000Z"),
  ],
  [
    "$dateAdd, hours are elapsed",
    { $dateAdd: { startDate: date("2026-03-28T11:00:00Z"), unit: "hour", amount: 24, timezone: "Europe/Berlin" } },
    date("2026-03-29T11:00:00.000Z"),
  ],
  [
    "$dateAdd, into the skipped hour",
    { $dateAdd: { startDate: date("2026-03-28T01:30:00Z"), unit: "day", amount: 1, timezone: "Europe/Berlin" } },
    date("2026-03-29T01:30:00.000Z"),
  ],
  ["$dateAdd, no whole amount", { $dateAdd: { startDate: "$when", unit: "day", amount: 0.5 } }, null],
  ["$dateAdd beyond the year 9999", { $dateAdd: { startDate: "$when", unit: "year", amount: 9000 } }, null],
  ["$dateAdd by far too much", { $dateAdd: { startDate: "$when", unit: "month", amount: 9007199254740991 } }, null],
  [
    "$dateDiff counts boundaries",
    { $dateDiff: { startDate: date("2025-12-31T23:59:59Z"), endDate: date("2026-01-01T00:00:00Z"), unit: "year" } },
    1,
  ],
  [
    "$dateDiff, not elapsed time",
    { $dateDiff: { startDate: date("2026-01-01T00:00:00Z"), endDate: date("2026-12-31T23:00:00Z"), unit: "year" } },
    0,
  ],
  ["$dateDiff, backwards", { $dateDiff: { startDate: "$later", endDate: "$when", unit: "month" } }, -7],
  [
    "$dateDiff, quarters",
    { $dateDiff: { startDate: date("2026-03-31T00:00:00Z"), endDate: date("2026-04-01T00:00:00Z"), unit: "quarter" } },
    1,
  ],
  [
    "$dateDiff, weeks from Sunday",
    { $dateDiff: { startDate: date("2026-01-03T00:00:00Z"), endDate: date("2026-01-04T00:00:00Z"), unit: "week" } },
    1,
  ],
  [
    "$dateDiff, weeks from Monday",
    {
      $dateDiff: {
        startDate: date("2026-01-03T00:00:00Z"),
        endDate: date("2026-01-04T00:00:00Z"),
        unit: "week",
        startOfWeek: "Mon",
      },
    },
    0,
  ],
  [
    "$dateDiff, days in a zone",
    {
      $dateDiff: {
        startDate: date("2026-01-01T22:30:00Z"),
        endDate: date("2026-01-01T23:30:00Z"),
        unit: "day",
        timezone: "Europe/Berlin",
      },
    },
    1,
  ],
  [
    "$dateDiff, hours over a change of clocks",
    {
      $dateDiff: {
        startDate: date("2026-03-29T00:30:00Z"),
        endDate: date("2026-03-29T01:30:00Z"),
        unit: "hour",
        timezone: "Europe/Berlin",
      },
    },
    1,
  ],
  [
    "$dateDiff, hours at half past",
    {
      $dateDiff: {
        startDate: date("2026-01-01T00:15:00Z"),
        endDate: date("2026-01-01T00:45:00Z"),
        unit: "hour",
        timezone: "+05:30",
      },
    },
    1,
  ],
  [
    "$dateDiff, milliseconds",
    { $dateDiff: { startDate: "$when", endDate: "$later", unit: "millisecond" } },
    18147600000,
  ],
  [
    "$dateTrunc to the month in a zone",
    { $dateTrunc: { date: date("2026-01-31T23:30:00Z"), unit: "month", timezone: "Europe/Berlin" } },
    date("2026-01-31T23:00:00.000Z"),
  ],
  [
    "$dateTrunc to the day at a change of clocks",
    { $dateTrunc: { date: date("2026-03-29T12:00:00Z"), unit: "day", timezone: "Europe/Berlin" } },
    date("2026-03-28T23:00:00.000Z"),
  ],
  [
    "$dateTrunc to the week",
    { $dateTrunc: { date: date("2026-01-31T12:00:00Z"), unit: "week" } },
    date("2026-01-25T00:00:00.000Z"),
  ],
  [
    "$dateTrunc to the week from Monday",
    { $dateTrunc: { date: date("2026-01-31T12:00:00Z"), unit: "week", startOfWeek: "monday" } },
    date("2026-01-26T00:00:00.000Z"),
  ],
  [
    "$dateTrunc to bins of quarters",
    { $dateTrunc: { date: date("2026-12-31T12:00:00Z"), unit: "quarter", binSize: 2 } },
    date("2026-07-01T00:00:00.000Z"),
  ],
  [
    "$dateTrunc to bins of hours, from 2000",
    { $dateTrunc: { date: date("2000-01-01T13:00:00Z"), unit: "hour", binSize: 5 } },
    date("2000-01-01T10:00:00.000Z"),
  ],
  [
    "$dateTrunc before 2000",
    { $dateTrunc: { date: date("1999-12-31T13:00:00Z"), unit: "year", binSize: 10 } },
    date("1990-01-01T00:00:00.000Z"),
  ],
  [
    "$dateTrunc to the hour at half past",
    { $dateTrunc: { date: date("2026-01-01T00:45:00Z"), unit: "hour", timezone: "Asia/Kolkata" } },
    date("2026-01-01T00:30:00.000Z"),
  ],
  ["$dateTrunc of missing", { $dateTrunc: { date: "$none", unit: "day" } }, null],
];

test.each(CASES)("[AGG-2] %s", (_what, expression, expected) => {
  const value = evaluate(expression);
  expect(value === undefined ? MISSING : value).toEqual(expected);
});

test("[AGG-2] local days of a year, in zones with and without summer time, tile it without gap or overlap", () => {
  for (const timezone of [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Casablanca",
  ]) {
    let at = Date.UTC(2026, 0, 1);
    let previous: string | undefined;
    for (let hour = 0; hour < 365 * 24; hour++, at += 3_600_000) {
      const day = evaluate({ $dateTrunc: { date: { $date: at }, unit: "day", timezone } }) as { $date: string };
      if (previous !== undefined && day.$date !== previous) {
        const next = evaluate({ $dateAdd: { startDate: { $date: previous }, unit: "day", amount: 1, timezone } });
        expect([timezone, next]).toEqual([timezone, day]);
      }
      previous = day.$date;
    }
  }
});

test("[AGG-7] a repeated value cannot grow without bound", () => {
  const long = "x".repeat(1 << 20);
  expect(evaluate({ $concat: Array(100).fill("$long") }, { long })).toBeNull();
  expect(evaluate({ $replaceAll: { input: "$long", find: "x", replacement: "y".repeat(100) } }, { long })).toBeNull();
  expect(evaluate({ $replaceAll: { input: "$long", find: "z", replacement: "y".repeat(100) } }, { long })).toBe(long);
});
