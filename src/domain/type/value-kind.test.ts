import { describe, expect, test } from "bun:test";
import type { Json } from "../../protocol/json.ts";
import { canonicalShape, keyFault, kindAlong, type Shape, shapeDraftFault } from "./value-kind.ts";

const deep = (levels: number): Json => {
  let shape: Json = { kind: "string" };
  for (let i = 1; i < levels; i++) shape = { kind: "array", items: shape };
  return shape;
};

describe("shapes", () => {
  test("are checked to the last level and say where they are wrong", () => {
    const WRONG: [Json, string][] = [
      [null, "s"],
      ["string", "s"],
      [{}, "s.kind"],
      [{ kind: "money" }, "s.kind"],
      [{ kind: "string", items: { kind: "string" } }, "s.items"],
      [{ kind: "array", items: {} }, "s.items.kind"],
      [{ kind: "array", properties: {} }, "s.properties"],
      [{ kind: "object", properties: [] }, "s.properties"],
      [{ kind: "object", properties: { "a.b": { kind: "string" } } }, "s.properties.a.b"],
      [{ kind: "object", properties: { a: { kind: "x" } } }, "s.properties.a.kind"],
      [{ kind: "object", required: "a" }, "s.required"],
      [{ kind: "array", required: [] }, "s.required"],
      [{ kind: "string", format: "date" }, "s.format"],
    ];
    for (const [draft, path] of WRONG) expect([draft, shapeDraftFault(draft, "s")?.path]).toEqual([draft, path]);
    expect(shapeDraftFault(deep(16), "s")).toBeUndefined();
    expect(shapeDraftFault(deep(17), "s")?.why.code).toBe("shape.depth");
  });

  test("have one form", () => {
    const shape = {
      kind: "object",
      required: ["b", "a", "b"],
      properties: { b: { kind: "array", items: { kind: "number" } } },
    };
    expect(JSON.stringify(canonicalShape(shape as Shape))).toBe(
      '{"kind":"object","properties":{"b":{"kind":"array","items":{"kind":"number"}}},"required":["a","b"]}',
    );
    expect(canonicalShape({ kind: "object", properties: {}, required: [] })).toEqual({ kind: "object" });
  });

  test("tell the kind that a filter's path leads to, through arrays as filters walk them", () => {
    const shape: Shape = {
      kind: "object",
      properties: { list: { kind: "array", items: { kind: "object", properties: { at: { kind: "datetime" } } } } },
    };
    expect(kindAlong(shape, ["list", "at"])).toBe("datetime");
    expect(kindAlong(shape, ["list", "0", "at"])).toBe("datetime");
    expect(kindAlong(shape, ["list"])).toBe("object");
    expect(kindAlong(shape, ["list", "nope"])).toBeUndefined();
    expect(kindAlong(shape, ["constructor"])).toBeUndefined();
    expect(kindAlong({ kind: "array", items: { kind: "datetime" } }, [])).toBe("datetime");
    expect(kindAlong({ kind: "datetime" }, [])).toBe("datetime");
    expect(kindAlong({ kind: "string" }, ["x"])).toBeUndefined();
  });
});

test("keys that paths lead through have no dots and are no operators or prototypes", () => {
  for (const key of ["a", "A b", "ключ", "0", "constructor"]) expect([key, keyFault(key)]).toEqual([key, undefined]);
  for (const key of ["", "a.b", "*", "$set", "__proto__", "x".repeat(129)]) expect(keyFault(key)).toBeDefined();
});
