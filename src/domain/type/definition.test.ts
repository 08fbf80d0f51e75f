import { describe, expect, test } from "bun:test";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { decodeDeclaration } from "./declaration.ts";
import { byCreation, type Definition, readDefinition } from "./definition.ts";

const TYPE_ID = cidFromDigest(new Uint8Array(32).fill(1));
const record = (id: string, created: string, fields: JsonObject): JsonObject => ({
  id,
  ...fields,
  _ver: { id: created, "*": created },
});
const field = (id: string, created: string, more: JsonObject = {}): JsonObject =>
  record(id, created, { def: "d", key: id, kind: "string", scope: "synced", mutableBy: "any", ...more });
const read = (fields: JsonObject[], more: JsonObject = {}): Definition =>
  readDefinition(TYPE_ID, record("d", "v0", { name: "tasks", idRule: "user", deleteBy: "anyone", ...more }), fields);
const invalid = (definition: Definition) =>
  definition.def.fields.flatMap(({ id, invalid: bad, invalidReason }) => (bad ? [[id, invalidReason!]] : []));

describe("[TYPE-6] fields that devices added apart", () => {
  test("of one key or one stamp: the older stands, the other is marked and has no effect", () => {
    const stamp = { stamp: "creator", scope: "derived", mutableBy: "never" };
    const definition = read([
      field("f2", "v2", { key: "a", kind: "number" }),
      field("f1", "v1", { key: "a" }),
      field("f4", "v1", { key: "by2", ...stamp }),
      field("f3", "v1", { key: "by1", ...stamp }),
    ]);
    expect(definition.def.fields.map((each) => each.id)).toEqual(["f1", "f3", "f4", "f2"]);
    expect(invalid(definition)).toEqual([
      ["f4", "an older field has this stamp"],
      ["f2", "an older field has this key"],
    ]);
    expect(definition.declaration.fields.map((each) => each.id)).toEqual(["f1", "f3"]);
  });

  test("a field for its author alone has no effect once nobody stamps authors: it fails closed", () => {
    const definition = read([field("f1", "v1", { mutableBy: "author" }), field("f2", "v2")]);
    expect(invalid(definition)).toEqual([["f1", "mutableBy author needs a creator stamp"]]);
    expect(definition.declaration.fields.map((each) => each.id)).toEqual(["f2"]);
  });

  test("more than a definition holds: the older ones stand", () => {
    const many = Array.from({ length: LIMITS.datasetFields + 2 }, (_, i) =>
      field(`f${i}`, `v${String(i).padStart(5, "0")}`),
    );
    expect(invalid(read(many)).map(([id]) => id)).toEqual([`f${many.length - 2}`, `f${many.length - 1}`]);
    const wide = { name: "x".repeat(LIMITS.declarationChars) };
    const definition = read([field("f1", "v1"), field("f2", "v2", wide), field("f3", "v3")]);
    expect(invalid(definition).map(([id]) => id)).toEqual(["f2"]);
  });

  test("the version of whatever came out reads back, and is the same in any order of records", () => {
    const fields = [
      field("f2", "v2", { key: "a" }),
      field("f1", "v1", { key: "a" }),
      field("f3", "v3", { mutableBy: "author" }),
    ];
    const one = read(fields).version();
    expect(read(fields.toReversed()).version()).toEqual(one);
    expect(decodeDeclaration(one.text)?.fields.map((each) => each.id)).toEqual(["f1"]);
  });
});

test("what is displayed only makes no other version", () => {
  const plain = read([field("f1", "v1")]).version().id;
  const shown = read([field("f1", "v1", { name: "A", description: "x" })], {
    displayName: "Tasks",
    description: "x",
    search: { title: "f1" },
  });
  expect(shown.version().id).toBe(plain);
  expect(shown.def).toMatchObject({ displayName: "Tasks", search: { title: "f1" } });
});

test("records go by the version that created them, then by id", () => {
  const sorted = [record("b", "v1", {}), record("c", "v0", {}), record("a", "v1", {})].sort(byCreation);
  expect(sorted.map((each) => each["id"])).toEqual(["c", "a", "b"]);
});
