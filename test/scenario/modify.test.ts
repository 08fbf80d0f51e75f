/** `POST {S}/modify`: every op. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { content } from "../support/server/fixtures.ts";
import { op, useItems } from "../support/worlds/items.ts";

const world = useItems();

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
    rule(`[DATA-10] ${title}`, async () => {
      const id = await world.record(before);
      const result = await world.apply(id, ...ops);
      expect(content(await world.items.find(id))).toEqual({ id, ...after });
      expect((result.rejections ?? []).map((entry) => entry.opIndex)).toEqual(rejected);
      for (const entry of result.rejections ?? []) expect(entry).toMatchObject({ recordIndex: 0, recordId: id });
      if (rejected.length === 0) expect(result).not.toHaveProperty("rejections");
    });
  }

  rule("[API-15] keys that mean something to JavaScript are ordinary keys", async () => {
    const id = await world.record();
    const reply = await world.client.request("POST", `${world.items.path}/modify`, {
      raw: JSON.stringify({
        ...world.items.target,
        records: [{ id, ops: [{ type: "$set", path: "constructor", value: 1 }] }],
      }),
    });
    expect(reply.status).toBeLessThan(500);
    const row = await world.items.find(id);
    if (reply.status === 200) expect(row).toHaveProperty("constructor", 1);
    expect(({} as JsonObject)["polluted"]).toBeUndefined();
  });
});
