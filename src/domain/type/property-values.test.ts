import { describe, expect, test } from "bun:test";
import { faultOf } from "../../../test/support/errors-of.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { PropertyDef } from "../../protocol/type.ts";
import { checkPropertyValues } from "./property-values.ts";

const OBJECT = cidFromDigest(new Uint8Array(32).fill(3));
const property = (more: Partial<PropertyDef>): PropertyDef => ({
  id: "p",
  name: "P",
  kind: "string",
  scope: "synced",
  ...more,
});
const check = (values: JsonObject, ...properties: PropertyDef[]) =>
  checkPropertyValues("t", new Map(properties.map((each) => [each.id, each])), values, 400);
const day = (text: string) => ({ $date: text });

interface Case {
  what: string;
  property: Partial<PropertyDef>;
  good: Json[];
  /** Refused as property.kind_mismatch. */
  kind: Json[];
  /** Refused as property.format_violation. */
  format?: Json[];
}

const CASES: Case[] = [
  {
    what: "string",
    property: { kind: "string" },
    good: ["", "x"],
    kind: [1, true, [], {}, day("2026-01-31T00:00:00.000Z")],
  },
  { what: "number", property: { kind: "number" }, good: [0, -1.5], kind: ["1", true, [1]] },
  { what: "boolean", property: { kind: "boolean" }, good: [true, false], kind: [0, "true"] },
  { what: "array", property: { kind: "array" }, good: [[], [1, "x", null]], kind: ["x", {}] },
  {
    what: "array of numbers",
    property: { kind: "array", items: { kind: "number" } },
    good: [[], [1]],
    kind: [["x"], [1, null]],
  },
  {
    what: "object",
    property: { kind: "object" },
    good: [{}, { a: 1 }],
    kind: [[], "x", day("2026-01-31T00:00:00.000Z")],
  },
  {
    what: "object with a shape",
    property: { kind: "object", properties: { a: { kind: "number" } }, required: ["a"] },
    good: [{ a: 1, b: "free" }],
    kind: [{}, { a: "1" }],
  },
  {
    what: "datetime",
    property: { kind: "datetime" },
    good: [day("2026-01-31T09:30:00.000Z")],
    kind: ["2026-01-31T09:30:00.000Z", 5, day("yesterday"), { $date: "2026-01-31T09:30:00.000Z", x: 1 }],
  },
  {
    what: "links",
    property: { kind: "array", format: { type: "links" } },
    good: [[], [`svc://${OBJECT}`]],
    kind: [`svc://${OBJECT}`, {}],
    format: [
      [OBJECT],
      [5],
      ["svc://"],
      ["svc://nope"],
      [`svc://${OBJECT}/x`],
      [`svc://${OBJECT}#x`],
      [`svc://m/${OBJECT}/A`],
      [`SVC://${OBJECT}`],
      [`svc://${OBJECT}`, "x"],
    ],
  },
  {
    what: "date of kind datetime",
    property: { kind: "datetime", format: { type: "date" } },
    good: [day("2026-01-31T00:00:00.000Z")],
    kind: ["2026-01-31", day("2026-02-30T00:00:00.000Z")],
    format: [day("2026-01-31T00:00:00.001Z"), day("2026-01-31T09:30:00.000Z")],
  },
  {
    what: "date of kind string",
    property: { kind: "string", format: { type: "date" } },
    good: ["2026-01-31", "2024-02-29"],
    kind: [5, day("2026-01-31T00:00:00.000Z")],
    format: ["", "2026-1-31", "2026-02-30", "2026-01-31T00:00:00Z", "31.01.2026"],
  },
  {
    what: "datetime format of kind datetime",
    property: { kind: "datetime", format: { type: "datetime" } },
    good: [day("2026-01-31T09:30:00.000Z")],
    kind: ["2026-01-31T09:30:00Z"],
  },
  {
    what: "datetime format of kind string",
    property: { kind: "string", format: { type: "datetime" } },
    good: ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00.5+01:00"],
    kind: [5],
    format: ["", "2026-01-31", "2026-01-31 09:30", "2026-01-31T25:00:00Z"],
  },
  {
    what: "select",
    property: { kind: "string", format: { type: "select", options: { open: {} } } },
    good: ["open", "an option that is not there"],
    kind: [5, ["open"]],
    format: [""],
  },
  {
    what: "multiselect",
    property: { kind: "array", format: { type: "multiselect" } },
    good: [[], ["open", "other"]],
    kind: ["open"],
    format: [[5], ["open", null], [""]],
  },
];

describe("[TYPE-7] values", () => {
  for (const { what, property: more, good, kind, format } of CASES) {
    const declared = property(more);
    test(`${what}: what fits passes, null removes, the rest is refused for its own reason`, () => {
      for (const value of [...good, null]) expect(check({ p: value }, declared)).toBe("synced");
      for (const value of kind) {
        const fault = faultOf(() => check({ p: value }, declared));
        expect([value, fault?.code, fault?.status]).toEqual([value, "property.kind_mismatch", 400]);
        expect(fault?.details).toMatchObject({ propId: "p", kind: declared.kind, reason: expect.any(String) });
      }
      for (const value of format ?? []) {
        const fault = faultOf(() => check({ p: value }, declared));
        expect([value, fault?.code, fault?.status]).toEqual([value, "property.format_violation", 400]);
        expect(fault?.details).toMatchObject({
          propId: "p",
          format: declared.format!.type,
          reason: expect.any(String),
        });
      }
    });
  }

  test("a value under an unknown property names it; prototypes hold no properties", () => {
    for (const propId of ["nope", "constructor", "__proto__", "toString"]) {
      const fault = faultOf(() => check(JSON.parse(`{${JSON.stringify(propId)}: 1}`) as JsonObject, property({})));
      expect([fault?.code, fault?.details]).toEqual(["property.not_found", { propId, typeId: "t" }]);
    }
    const inPath = faultOf(() => checkPropertyValues("t", new Map(), { x: null }, 404));
    expect(inPath?.status).toBe(404);
  });

  test("one write has one scope; what the server derives takes no values", () => {
    const local = property({ id: "l", scope: "local" });
    const account = property({ id: "a", scope: "account" });
    expect(check({ l: "x" }, local)).toBe("local");
    expect(check({ a: null }, account)).toBe("account");
    expect(faultOf(() => check({ l: "x", p: "x" }, local, property({})))?.code).toBe("request.invalid_field");
    expect(faultOf(() => check({ l: "x", a: null }, local, account))?.code).toBe("request.invalid_field");
    expect(faultOf(() => check({ p: "x" }, property({ scope: "derived" })))?.code).toBe("request.invalid_field");
    expect(check({})).toBe("synced");
  });
});
