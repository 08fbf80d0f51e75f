/** The filter grammar end to end: MongoDB's semantics for the operators of the table, and every refusal. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { ErrorBody, JsonObject, Page } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace } from "../support/server/fixtures.ts";

const day = (text: string): JsonObject => ({ $date: `${text}T00:00:00.000Z` });

/** One document per kind of value that a filter can meet; the id says what `v` holds. */
const DOCUMENTS: Record<string, JsonObject> = {
  missing: {},
  null: { v: null },
  zero: { v: 0 },
  five: { v: 5 },
  half: { v: 5.5 },
  ten: { v: 10 },
  "text-5": { v: "5" },
  "text-a": { v: "alpha" },
  "text-B": { v: "Beta" },
  empty: { v: "" },
  astral: { v: "\u{1F9ED}" },
  bmp: { v: "\uFFFD" },
  true: { v: true },
  false: { v: false },
  date: { v: day("2026-01-31") },
  later: { v: day("2026-03-01") },
  "array-empty": { v: [] },
  "array-num": { v: [1, 5, 12] },
  "array-mixed": { v: ["alpha", 5, null] },
  "array-nested": { v: [[5], [1, 2]] },
  "array-docs": {
    v: [
      { k: 1, w: "x" },
      { k: 5, w: "y" },
    ],
  },
  object: { v: { k: 5, w: "x" } },
  "object-empty": { v: {} },
  deep: { v: { a: { b: { c: 5 } } } },
};

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id, { dynamic: true, fields: [] });
  await items.upsert(Object.entries(DOCUMENTS).map(([id, fields]) => ({ id, fields })));
});

const idsOf = async (filter: JsonObject): Promise<string[]> =>
  (await items.query({ filter })).records.map((row) => row.id).sort();

/** [title, filter, ids expected] */
const MATCHES: [string, JsonObject, string[]][] = [
  ["a bare value equals, also inside arrays", { v: 5 }, ["array-mixed", "array-num", "five"]],
  ["$eq is the bare value spelled out", { v: { $eq: 5 } }, ["array-mixed", "array-num", "five"]],
  ["numbers and numeric strings are different", { v: "5" }, ["text-5"]],
  ["null equals null and missing", { v: null }, ["array-mixed", "missing", "null"]],
  ["booleans equal booleans alone", { v: true }, ["true"]],
  ["0 is not false", { v: 0 }, ["zero"]],
  ["an empty string is a value", { v: "" }, ["empty"]],
  ["a date equals its instant", { v: day("2026-01-31") }, ["date"]],
  ["a date may be written with an offset", { v: { $date: "2026-01-31T01:00:00+01:00" } }, ["date"]],
  ["a date may be written in Unix milliseconds", { v: { $date: Date.UTC(2026, 0, 31) } }, ["date"]],
  ["a whole object compares member by member", { v: { k: 5, w: "x" } }, ["object"]],
  ["a whole object with members in another order is another", { v: { w: "x", k: 5 } }, []],
  ["a whole array equals, or an element that is that array", { v: [5] }, ["array-nested"]],
  ["a whole array equals the array", { v: [1, 5, 12] }, ["array-num"]],
  ["$ne is the negation, missing included", { v: { $ne: 5 } }, without("array-mixed", "array-num", "five")],
  ["$gt compares numbers alone (type bracketing), elements too", { v: { $gt: 5 } }, ["array-num", "half", "ten"]],
  ["$gte", { v: { $gte: 5.5 } }, ["array-num", "half", "ten"]],
  ["$lt", { v: { $lt: 5 } }, ["array-num", "zero"]],
  ["$lte", { v: { $lte: 0 } }, ["zero"]],
  ["two bounds may be met by two elements", { v: { $gt: 10, $lt: 2 } }, ["array-num"]],
  ["strings compare by code point, not by UTF-16 unit", { v: { $gt: "\uFFFD" } }, ["astral"]],
  ["strings compare among strings", { v: { $gte: "a" } }, ["array-mixed", "astral", "bmp", "text-a"]],
  ["dates compare among dates", { v: { $gt: day("2026-01-31") } }, ["later"]],
  ["$lte null matches null and missing", { v: { $lte: null } }, ["array-mixed", "missing", "null"]],
  ["booleans compare among booleans", { v: { $lt: true } }, ["false"]],
  ["$in", { v: { $in: [0, "alpha", false] } }, ["array-mixed", "false", "text-a", "zero"]],
  ["$in with null matches missing", { v: { $in: [null] } }, ["array-mixed", "missing", "null"]],
  ["$in with nothing matches nothing", { v: { $in: [] } }, []],
  ["$nin", { v: { $nin: [5, null] } }, without("array-mixed", "array-num", "five", "missing", "null")],
  ["$nin with nothing matches all", { v: { $nin: [] } }, without()],
  ["$all", { v: { $all: [1, 12] } }, ["array-num"]],
  ["$all on a scalar", { v: { $all: [5] } }, ["array-mixed", "array-num", "five"]],
  ["$all with nothing matches nothing", { v: { $all: [] } }, []],
  ["$exists true", { v: { $exists: true } }, without("missing")],
  ["$exists false", { v: { $exists: false } }, ["missing"]],
  ["$exists takes 0 and 1", { v: { $exists: 0 } }, ["missing"]],
  ["$exists of a member", { "v.k": { $exists: true } }, ["array-docs", "object"]],
  ["$size", { v: { $size: 3 } }, ["array-mixed", "array-num"]],
  ["$size 0", { v: { $size: 0 } }, ["array-empty"]],
  ["$type string", { v: { $type: "string" } }, ["array-mixed", "astral", "bmp", "empty", "text-5", "text-B", "text-a"]],
  ["$type number", { v: { $type: "number" } }, ["array-mixed", "array-num", "five", "half", "ten", "zero"]],
  ["$type int", { v: { $type: "int" } }, ["array-mixed", "array-num", "five", "ten", "zero"]],
  ["$type bool", { v: { $type: "bool" } }, ["false", "true"]],
  ["$type date", { v: { $type: "date" } }, ["date", "later"]],
  ["$type null does not match missing", { v: { $type: "null" } }, ["array-mixed", "null"]],
  ["$type of a list of types", { v: { $type: ["bool", "date"] } }, ["date", "false", "later", "true"]],
  ["$mod", { v: { $mod: [5, 0] } }, ["array-mixed", "array-num", "five", "half", "ten", "zero"]],
  ["$elemMatch with operators", { v: { $elemMatch: { $gt: 1, $lt: 10 } } }, ["array-mixed", "array-num"]],
  ["$elemMatch with a filter", { v: { $elemMatch: { k: 5, w: "y" } } }, ["array-docs"]],
  ["$elemMatch needs one element to meet all", { v: { $elemMatch: { k: 1, w: "y" } } }, []],
  ["$and inside $elemMatch", { v: { $elemMatch: { $or: [{ k: 9 }, { w: "x" }] } } }, ["array-docs"]],
  ["$regex is unanchored and case-sensitive", { v: { $regex: "et" } }, ["text-B"]],
  ["$regex with $options i", { v: { $regex: "^beta$", $options: "i" } }, ["text-B"]],
  ["$regex over array elements", { v: { $regex: "^alph" } }, ["array-mixed", "text-a"]],
  ["$not", { v: { $not: { $gt: 5 } } }, without("array-num", "half", "ten")],
  ["$not with $regex", { v: { $not: { $regex: "a" }, $type: "string" } }, ["astral", "bmp", "empty", "text-5"]],
  ["a dotted path", { "v.k": 5 }, ["array-docs", "object"]],
  ["a deep dotted path", { "v.a.b.c": 5 }, ["deep"]],
  ["a numeric segment is an index", { "v.0": 1 }, ["array-num"]],
  ["an index inside nested arrays", { "v.1.0": 1 }, ["array-nested"]],
  ["an index and a member", { "v.1.k": 5 }, ["array-docs"]],
  ["several keys are ANDed", { v: { $exists: true }, "v.k": 5, "v.w": "x" }, ["array-docs", "object"]],
  ["$and", { $and: [{ v: { $gt: 1 } }, { v: { $lt: 6 } }] }, ["array-mixed", "array-num", "five", "half"]],
  ["$or", { $or: [{ v: 0 }, { v: "alpha" }] }, ["array-mixed", "text-a", "zero"]],
  ["$nor", { $nor: [{ v: { $exists: true } }] }, ["missing"]],
  ["$or beside a key", { id: { $in: ["zero", "ten"] }, $or: [{ v: 0 }, { v: 5 }] }, ["zero"]],
  ["the id is a path", { id: "zero" }, ["zero"]],
  ["a path that no record has", { "no.such.path": 1 }, []],
  ["a negation on a path that no record has", { "no.such.path": { $ne: 1 } }, without()],
  ["an empty filter is everything", {}, without()],
];

function without(...ids: string[]): string[] {
  return Object.keys(DOCUMENTS).filter((id) => !ids.includes(id));
}

describe("semantics", () => {
  for (const [title, filter, expected] of MATCHES) {
    rule(`[QUERY-2] ${title}: ${JSON.stringify(filter)}`, async () => {
      expect(await idsOf(filter)).toEqual([...expected].sort());
    });
  }

  rule("[QUERY-1] absent and null mean everything", async () => {
    for (const body of [{}, { filter: null }]) {
      expect((await items.query(body)).records).toHaveLength(Object.keys(DOCUMENTS).length);
    }
  });

  rule("[QUERY-2] _ver.id is a path that compares", async () => {
    const { records } = await items.query({});
    const version = (records[0]!["_ver"] as JsonObject)["id"] as string;
    expect(await idsOf({ "_ver.id": version })).toHaveLength(Object.keys(DOCUMENTS).length); // one page: one change
    expect(await idsOf({ "_ver.id": { $gt: version } })).toEqual([]);
  });
});

/** [title, filter, code, expected details] */
const FAULTS: [string, unknown, string, JsonObject][] = [
  [
    "an unknown operator",
    { tags: { $sizee: 1 } },
    "filter.unknown_operator",
    { operator: "$sizee", path: "tags.$sizee" },
  ],
  ["$contains", { v: { $contains: 1 } }, "filter.unknown_operator", { operator: "$contains" }],
  ["$where at the top", { $where: "1" }, "filter.unknown_operator", { operator: "$where" }],
  ["$expr", { $expr: { $eq: [1, 1] } }, "filter.unknown_operator", { operator: "$expr" }],
  ["$text", { $text: { $search: "x" } }, "filter.unknown_operator", { operator: "$text" }],
  ["$near", { v: { $near: [0, 0] } }, "filter.unknown_operator", { operator: "$near" }],
  [
    "an unknown operator inside $and",
    { $and: [{ a: 1 }, { price: { $gtt: 1 } }] },
    "filter.unknown_operator",
    { operator: "$gtt", path: "$and.1.price.$gtt" },
  ],
  [
    "a regex as a bound",
    { $and: [{ a: 1 }, { price: { $gt: { $regex: "a" } } }] },
    "filter.invalid",
    { path: "$and.1.price.$gt" },
  ],
  ["an operator at the top", { $eq: 1 }, "filter.invalid", { path: "$eq" }],
  ["$and inside a field", { v: { $and: [{ $gt: 1 }] } }, "filter.invalid", { path: "v.$and" }],
  ["operators mixed with plain keys", { v: { $gt: 1, k: 2 } }, "filter.invalid", {}],
  ["$in that is no array", { v: { $in: 5 } }, "filter.invalid", { path: "v.$in" }],
  ["$nin that is no array", { v: { $nin: { a: 1 } } }, "filter.invalid", { path: "v.$nin" }],
  ["$all that is no array", { v: { $all: "x" } }, "filter.invalid", { path: "v.$all" }],
  ["$exists of a string", { v: { $exists: "yes" } }, "filter.invalid", { path: "v.$exists" }],
  ["$size negative", { v: { $size: -1 } }, "filter.invalid", { path: "v.$size" }],
  ["$size fractional", { v: { $size: 1.5 } }, "filter.invalid", { path: "v.$size" }],
  ["$type unknown", { v: { $type: "objectId" } }, "filter.invalid", { path: "v.$type" }],
  ["$mod with divisor 0", { v: { $mod: [0, 0] } }, "filter.invalid", { path: "v.$mod" }],
  ["$mod with one entry", { v: { $mod: [2] } }, "filter.invalid", { path: "v.$mod" }],
  ["$mod with fractions", { v: { $mod: [2.5, 0] } }, "filter.invalid", { path: "v.$mod" }],
  ["$elemMatch of a scalar", { v: { $elemMatch: 5 } }, "filter.invalid", { path: "v.$elemMatch" }],
  ["$not of a scalar", { v: { $not: 5 } }, "filter.invalid", { path: "v.$not" }],
  ["$or empty", { $or: [] }, "filter.invalid", { path: "$or" }],
  ["$and of no array", { $and: { a: 1 } }, "filter.invalid", { path: "$and" }],
  ["$nor of scalars", { $nor: [1] }, "filter.invalid", {}],
  ["$regex that does not compile", { v: { $regex: "(" } }, "filter.invalid", { path: "v.$regex" }],
  ["$regex with a backreference (no linear time)", { v: { $regex: "(a)\\1" } }, "filter.invalid", { path: "v.$regex" }],
  ["$regex of a number", { v: { $regex: 5 } }, "filter.invalid", { path: "v.$regex" }],
  ["$options without $regex", { v: { $options: "i" } }, "filter.invalid", {}],
  ["$options unknown", { v: { $regex: "a", $options: "x" } }, "filter.invalid", {}],
  ["a malformed $date", { v: { $date: "yesterday" } }, "filter.invalid", {}],
  ["a malformed $date as a bound", { v: { $gt: { $date: "2026-13-01T00:00:00Z" } } }, "filter.invalid", {}],
  [
    "more than 1,000 entries in $in",
    { v: { $in: Array.from({ length: 1001 }, (_, i) => i) } },
    "filter.too_complex",
    {},
  ],
  ["more than 200 nodes", { $or: Array.from({ length: 201 }, (_, i) => ({ v: i })) }, "filter.too_complex", {}],
  ["more than 32 levels", deepFilter(40), "filter.too_complex", {}],
  ["more than 32 levels of $and", deepAnd(33), "filter.too_complex", {}],
  [
    "a regex of more than 1,000 characters",
    { v: { $regex: "a".repeat(1001) } },
    "filter.invalid|filter.too_complex",
    {},
  ],
];

function deepFilter(levels: number): JsonObject {
  let condition: JsonObject = { $gt: 1 };
  for (let i = 0; i < levels; i++) condition = { $not: condition };
  return { v: condition };
}

function deepAnd(levels: number): JsonObject {
  let filter: JsonObject = { v: 1 };
  for (let i = 0; i < levels; i++) filter = { $and: [filter] };
  return filter;
}

describe("refusals", () => {
  for (const [title, filter, codes, details] of FAULTS) {
    rule(`[QUERY-1] ${title} is 400 ${codes}`, async () => {
      const reply = await shared.client.request("POST", `${items.path}/query`, { body: { ...items.target, filter } });
      expect(reply.status).toBe(400);
      const { error } = reply.json as unknown as { error: ErrorBody };
      expect(codes.split("|")).toContain(error.code);
      expect(error.details ?? {}).toMatchObject(details);
      expect(error.message.length).toBeGreaterThan(10);
    });
  }

  rule("[QUERY-1] the unknown_operator message lists what is supported", async () => {
    const error = await shared.client.fails(
      "POST",
      `${items.path}/query`,
      { ...items.target, filter: { v: { $near: 1 } } },
      400,
      "filter.unknown_operator",
    );
    for (const operator of ["$elemMatch", "$regex", "$nin"]) expect(error.message).toContain(operator);
  });

  rule("[QUERY-1] the same refusals stand on every endpoint that takes a filter", async () => {
    const filter = { v: { $near: 1 } };
    for (const [path, body] of [
      ["/v1/spaces/query", {}],
      ["/v1/spaces/query/subscribe", {}],
      [`${items.path}/objects/query`, {}],
      [`${items.path}/objects/query/subscribe`, {}],
      [`${items.path}/query/subscribe`, items.target],
    ] as const) {
      await shared.client.fails("POST", path, { ...body, filter }, 400, "filter.unknown_operator");
    }
  });

  rule("[QUERY-1] a filter of another JSON type is request.schema", async () => {
    for (const filter of [[], "v=5", 5, true]) {
      await shared.client.fails("POST", `${items.path}/query`, { ...items.target, filter }, 400, "request.schema");
    }
  });

  rule(
    "[QUERY-6] a declared datetime compared with a bare number or string is filter.invalid and shows a $date",
    async () => {
      const dated = await createCollection(shared.client, items.spaceId, {
        fields: [{ key: "at", kind: "datetime", mutableBy: "any" }],
      });
      for (const operand of [5, "2026-01-31", { $gt: "2026-01-31T00:00:00Z" }, { $in: [1] }]) {
        const body = { ...dated.target, filter: { at: operand } };
        const error = await shared.client.fails("POST", `${dated.path}/query`, body, 400, "filter.invalid");
        expect(error.message).toContain("$date");
      }
    },
  );

  rule("[QUERY-6] so is an instant of a built-in dataset, in queries, live queries and $match", async () => {
    const { client } = shared;
    const S = `/v1/spaces/${items.spaceId}`;
    const chat = await createObject(client, items.spaceId, { types: ["chat"] });
    const of = (dataset: string, filter: JsonObject): JsonObject => ({ objectId: chat.id, dataset, filter });
    const refusals: [string, (filter: JsonObject) => JsonObject, string[]][] = [
      [`${S}/query`, (filter) => of("chat_messages", filter), ["createdAt", "modifiedAt"]],
      [`${S}/query/subscribe`, (filter) => of("chat_messages", filter), ["createdAt", "modifiedAt"]],
      [`${S}/objects/query/subscribe`, (filter) => ({ filter }), ["createdAt", "modifiedAt"]],
      ["/v1/spaces/query", (filter) => ({ filter }), ["createdAt", "ended.at"]],
      ["/v1/spaces/query/subscribe", (filter) => ({ filter }), ["createdAt"]],
    ];
    for (const [path, bodyOf, instants] of refusals) {
      for (const instant of instants) {
        for (const operand of [5, "2026-01-31", { $gte: "2026-01-31" }]) {
          const error = await client.fails("POST", path, bodyOf({ [instant]: operand }), 400, "filter.invalid");
          expect([path, error.message.includes(`${instant} is a datetime`)]).toEqual([path, true]);
        }
      }
    }
    const pipeline = [{ $match: { createdAt: { $gt: 1 } } }];
    const body = { objectId: chat.id, dataset: "chat_messages", pipeline };
    const refused = await client.fails("POST", `${S}/aggregate`, body, 400, "filter.invalid");
    expect(refused.message).toContain("createdAt is a datetime");
    const dated = of("chat_messages", { createdAt: { $gt: { $date: 0 } } });
    expect((await client.post<Page>(`${S}/query`, dated)).records).toEqual([]);
  });
});
