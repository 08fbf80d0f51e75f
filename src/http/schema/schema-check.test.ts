import { expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { strict } from "../../protocol/schema.ts";
import { createBodyCheck } from "./schema-check.ts";

const CASES: [what: string, schema: TSchema, value: unknown, reason: string][] = [
  ["an empty list", Type.Array(Type.String(), { minItems: 1 }), [], "must not be empty"],
  ["a short list", Type.Array(Type.String(), { minItems: 2 }), ["a"], "must have at least 2 elements"],
  [
    "a list with an element twice",
    Type.Array(Type.String(), { uniqueItems: true }),
    ["a", "a"],
    "must not have an element twice",
  ],
  ["an empty object", Type.Record(Type.String(), Type.String(), { minProperties: 1 }), {}, "must not be empty"],
  ["a text of another form", Type.String({ pattern: "^a+$" }), "b", "must match ^a+$"],
  ["a number on the bound", Type.Number({ exclusiveMinimum: 0 }), 0, "must be greater than 0"],
  ["an uneven number", Type.Integer({ multipleOf: 2 }), 3, "must be a multiple of 2"],
];

for (const [what, schema, value, reason] of CASES)
  test(`[API-1] ${what} is refused in plain words`, () => {
    const { check } = createBodyCheck(strict({ field: schema }));
    expect(() => check({ field: value })).toThrow(`The field field is refused: ${reason}`);
  });
