import { describe, expect, test } from "bun:test";
import { cidFromDigest } from "../../crypto/cid.ts";
import {
  type Declaration,
  type DeclaredField,
  decodeDeclaration,
  definitionName,
  encodeDeclaration,
  parseDefinitionName,
  versionIdOf,
} from "./declaration.ts";

const TYPE_ID = cidFromDigest(new Uint8Array(32).fill(1));
const field = (id: string, key: string, more: Partial<DeclaredField> = {}): DeclaredField => ({
  id,
  key,
  shape: { kind: "string" },
  scope: "synced",
  mutableBy: "never",
  ...more,
});
const declaration = (more: Partial<Declaration> = {}): Declaration => ({
  typeId: TYPE_ID,
  defId: "d1",
  name: "tasks",
  idRule: "user",
  deleteBy: "anyone",
  fields: [field("f1", "a"), field("f2", "b")],
  ...more,
});

describe("version of a definition", () => {
  test("two devices that merged the same parts have the same version, whatever order they came in", () => {
    const shape = {
      kind: "object",
      properties: { y: { kind: "number" }, x: { kind: "string" } },
      required: ["y", "x"],
    };
    const turned = {
      kind: "object",
      required: ["x", "y", "x"],
      properties: { x: { kind: "string" }, y: { kind: "number" } },
    };
    const one = declaration({
      fields: [field("f1", "a"), field("f2", "b", { shape: shape as DeclaredField["shape"] })],
    });
    const two = declaration({
      fields: [field("f2", "b", { shape: turned as DeclaredField["shape"] }), field("f1", "a")],
    });
    expect(encodeDeclaration(one)).toBe(encodeDeclaration(two));
  });

  test("whatever decides how records fold makes another version", () => {
    const base = versionIdOf(encodeDeclaration(declaration()));
    const others: Partial<Declaration>[] = [
      { name: "notes" },
      { defId: "d2" },
      { idRule: "auto" },
      { idPattern: "[a-z]+" },
      { idMaxLen: 5 },
      { deleteBy: "author" },
      { dynamic: true },
      { skipHistory: true },
      { fields: [field("f1", "a")] },
      { fields: [field("f1", "a"), field("f2", "b", { mutableBy: "any" })] },
      { fields: [field("f1", "a"), field("f2", "b", { scope: "local" })] },
      { fields: [field("f1", "a"), field("f2", "b", { required: true })] },
      { fields: [field("f1", "a"), field("f2", "b", { stamp: "creator", scope: "derived" })] },
      { fields: [field("f1", "a"), field("f2", "b", { shape: { kind: "number" } })] },
    ];
    const ids = others.map((more) => versionIdOf(encodeDeclaration(declaration(more))));
    expect(new Set([base, ...ids]).size).toBe(others.length + 1);
    expect(base).toMatch(/^[1-9A-HJ-NP-Za-km-z]{20,28}$/);
  });

  test("its text reads back, and no other text of the same content does", () => {
    const text = encodeDeclaration(declaration({ dynamic: true, idPattern: "[a-z]+" }));
    expect(encodeDeclaration(decodeDeclaration(text)!)).toBe(text);
    const parsed = JSON.parse(text) as Record<string, unknown>;
    const refused = [
      "",
      "null",
      "[]",
      `${text} `,
      JSON.stringify({ ...parsed, extra: 1 }),
      JSON.stringify(Object.fromEntries(Object.entries(parsed).reverse())),
      JSON.stringify({ ...parsed, name: "No Name" }),
      JSON.stringify({ ...parsed, typeId: "t" }),
      JSON.stringify({ ...parsed, idRule: "any" }),
      JSON.stringify({ ...parsed, dynamic: false }),
      JSON.stringify({ ...parsed, idMaxLen: 0 }),
      JSON.stringify({ ...parsed, fields: [field("f1", "a"), field("f2", "a")] }),
      JSON.stringify({ ...parsed, fields: [field("f1", "id")] }),
      JSON.stringify({ ...parsed, fields: [field("f1", "_ver")] }),
      JSON.stringify({ ...parsed, fields: [field("f1", "a.b")] }),
      JSON.stringify({ ...parsed, fields: [{ ...field("f1", "a"), shape: { kind: "money" } }] }),
      JSON.stringify({ ...parsed, fields: [{ ...field("f1", "a"), scope: "derived" }] }),
    ];
    for (const other of refused) expect([other, decodeDeclaration(other)]).toEqual([other, undefined]);
  });

  test("its name says where it is written down", () => {
    const name = definitionName(TYPE_ID, "3Abc");
    expect(parseDefinitionName(name)).toEqual({ typeId: TYPE_ID as never, versionId: "3Abc" });
    for (const other of ["", "/", "x/3Abc", TYPE_ID, `${TYPE_ID}/`, `${TYPE_ID}/0`, `${TYPE_ID}/a/b`])
      expect([other, parseDefinitionName(other)]).toEqual([other, undefined]);
  });
});
