import { describe, expect, test } from "bun:test";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { formatFault, impliedKind } from "./property-format.ts";
import { propertyLeafFault } from "./property-record.ts";

const SELECT: JsonObject = { format: { type: "select" } };
const LINKS: JsonObject = { format: { type: "links" } };
const PLAIN: JsonObject = {};

/** A patch of one leaf; an undefined value removes. */
type Patch = [property: JsonObject, path: string, value: Json | undefined];

const ALLOWED: Patch[] = [
  [PLAIN, "name", "x"],
  [PLAIN, "name", ""],
  [PLAIN, "description", "x"],
  [PLAIN, "description", undefined],
  [PLAIN, "xKey", "a:b/c.d"],
  [PLAIN, "xKey", undefined],
  [PLAIN, "meta.index", "none"],
  [PLAIN, "meta.index", undefined],
  [PLAIN, "meta", undefined],
  [SELECT, "format.ui", "multiselect"],
  [SELECT, "format.ui", undefined],
  [LINKS, "format.filter", { "svc.types": "page" }],
  [LINKS, "format.filter", undefined],
  [LINKS, "format.meta.a", "x"],
  [SELECT, "format.options.a.name", "x"],
  [SELECT, "format.options.a.color", undefined],
  [SELECT, "format.options.a.pos", "1"],
  [SELECT, "format.options.a.meta.k", "x"],
  [SELECT, "format.options.a", undefined],
  [SELECT, "format.options.a.meta", undefined],
  [SELECT, "format.options", undefined],
];
const REFUSED: [kind: "immutable" | "invalid" | "format", ...Patch][] = [
  ["immutable", PLAIN, "kind", "number"],
  ["immutable", PLAIN, "kind", undefined],
  ["immutable", PLAIN, "scope", "local"],
  ["immutable", PLAIN, "items", { kind: "string" }],
  ["immutable", PLAIN, "items.kind", "string"],
  ["immutable", PLAIN, "properties.a", undefined],
  ["immutable", PLAIN, "required", []],
  ["immutable", SELECT, "format", { type: "select" }],
  ["immutable", SELECT, "format", undefined],
  ["immutable", SELECT, "format.type", "links"],
  ["invalid", PLAIN, "name", undefined],
  ["invalid", PLAIN, "name", 5],
  ["invalid", PLAIN, "name.x", "x"],
  ["invalid", PLAIN, "description", null],
  ["invalid", PLAIN, "xKey", "a b"],
  ["invalid", PLAIN, "xKey", ""],
  ["invalid", PLAIN, "meta", { a: "b" }],
  ["invalid", PLAIN, "meta.a", 1],
  ["invalid", PLAIN, "meta.a.b", "x"],
  ["invalid", PLAIN, "meta.", "x"],
  ["invalid", PLAIN, "", "x"],
  ["invalid", PLAIN, "removed", true],
  ["invalid", PLAIN, "id", "x"],
  ["invalid", PLAIN, "nonsense", "x"],
  ["invalid", SELECT, "format.nonsense", "x"],
  ["invalid", SELECT, "format.options", {}],
  ["invalid", SELECT, "format.options.a", { name: "x" }],
  ["invalid", SELECT, "format.options.a.name", 5],
  ["invalid", SELECT, "format.options.a.weight", "x"],
  ["invalid", SELECT, "format.options.a.name.x", "x"],
  ["invalid", SELECT, "format.options..name", "x"],
  ["format", PLAIN, "format.ui", "select"],
  ["format", PLAIN, "format.options.a.name", "x"],
  ["format", SELECT, "format.ui", "links"],
  ["format", SELECT, "format.ui", 5],
  ["format", { format: { type: "date" } }, "format.ui", "select"],
  ["format", LINKS, "format.options.a.name", "x"],
  ["format", SELECT, "format.filter", {}],
  ["format", LINKS, "format.filter", "x"],
];

describe("[TYPE-2] leaves of a property", () => {
  for (const [property, path, value] of ALLOWED)
    test(`${path} ${value === undefined ? "can be removed" : `takes ${JSON.stringify(value)}`}`, () => {
      expect(propertyLeafFault(property, path.split("."), value)).toBeUndefined();
    });
  for (const [kind, property, path, value] of REFUSED)
    test(`${path || "(empty)"} ${value === undefined ? "cannot be removed" : `refuses ${JSON.stringify(value)}`}: ${kind}`, () => {
      expect(propertyLeafFault(property, path.split("."), value)?.kind).toBe(kind);
    });
});

describe("[TYPE-2] a format", () => {
  test("implies a kind and goes with few others", () => {
    expect(["links", "date", "datetime", "select", "multiselect"].map((type) => impliedKind(type as "links"))).toEqual([
      "array",
      "datetime",
      "datetime",
      "string",
      "array",
    ]);
    expect(formatFault({ type: "date" }, "string")).toBeUndefined();
    for (const [type, kind] of [
      ["links", "string"],
      ["select", "array"],
      ["multiselect", "string"],
      ["date", "number"],
    ] as const)
      expect(formatFault({ type }, kind)?.path).toBe("format.type");
  });

  test("says where it is wrong", () => {
    const WRONG: [Json, string][] = [
      [5, "format"],
      [{}, "format.type"],
      [{ type: "tags" }, "format.type"],
      [{ type: "select", color: "x" }, "format.color"],
      [{ type: "select", ui: "links" }, "format.ui"],
      [{ type: "select", filter: {} }, "format.filter"],
      [{ type: "select", options: [] }, "format.options"],
      [{ type: "select", options: { a: 5 } }, "format.options.a"],
      [{ type: "select", options: { "a.b": {} } }, "format.options.a.b"],
      [{ type: "select", options: { a: { name: 5 } } }, "format.options.a.name"],
      [{ type: "select", options: { a: { x: "y" } } }, "format.options.a.x"],
      [{ type: "select", options: { a: { meta: { k: 5 } } } }, "format.options.a.meta.k"],
      [{ type: "select", meta: { a: 5 } }, "format.meta.a"],
    ];
    for (const [format, path] of WRONG) expect([format, formatFault(format, "string")?.path]).toEqual([format, path]);
    expect(formatFault({ type: "date", ui: "date" }, "string")?.path).toBe("format.ui");
    expect(formatFault({ type: "links", options: {} }, "array")?.path).toBe("format.options");
    expect(formatFault({ type: "links", filter: [] }, "array")?.path).toBe("format.filter");
  });
});
