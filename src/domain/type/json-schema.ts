import type { JsonObject } from "../../protocol/json.ts";
import type { FieldDef } from "../../protocol/type.ts";
import type { Definition } from "./definition.ts";
import type { Shape } from "./value-kind.ts";

/** JSON Schema (2020-12) of a value of a shape. An instant is an object with the one key `$date`. */
export function shapeSchema(shape: Shape): JsonObject {
  switch (shape.kind) {
    case "datetime":
      return {
        type: "object",
        properties: { $date: { type: "string", format: "date-time" } },
        required: ["$date"],
        additionalProperties: false,
      };
    case "array":
      return { type: "array", ...(shape.items ? { items: shapeSchema(shape.items) } : {}) };
    case "object":
      return {
        type: "object",
        ...(shape.properties
          ? {
              properties: Object.fromEntries(
                Object.entries(shape.properties).map(([key, part]) => [key, shapeSchema(part)]),
              ),
            }
          : {}),
        ...(shape.required ? { required: [...shape.required] } : {}),
      };
    default:
      return { type: shape.kind };
  }
}

/** JSON Schema of the records of a declared dataset, with its `x-` keys (TYPE-4). */
export function definitionSchema({ def, declaration }: Definition): JsonObject {
  const fields = def.fields.filter((field) => !field.invalid);
  const required = fields.filter((field) => field.required).map((field) => field.key);
  const { idRule, idPattern, idMaxLen, deleteBy } = declaration;
  return {
    type: "object",
    ...(def.displayName ? { title: def.displayName } : {}),
    ...(def.description ? { description: def.description } : {}),
    properties: Object.fromEntries(fields.map((field) => [field.key, fieldSchema(field)])),
    additionalProperties: declaration.dynamic === true,
    ...(required.length > 0 ? { required } : {}),
    ...(deleteBy === "author" ? { "x-delete-by": deleteBy } : {}),
    ...(idRule === "user" ? { "x-id": idRule } : {}),
    ...(idPattern === undefined ? {} : { "x-id-pattern": idPattern }),
    ...(idMaxLen === undefined ? {} : { "x-id-max-length": idMaxLen }),
    ...(def.search ? { "x-search": { ...def.search } } : {}),
  };
}

function fieldSchema(field: FieldDef): JsonObject {
  return {
    ...shapeSchema((field.shape as Shape | undefined) ?? { kind: field.kind }),
    ...(field.name ? { title: field.name } : {}),
    ...(field.description ? { description: field.description } : {}),
    "x-scope": field.scope,
    ...(field.mutableBy === "never" ? {} : { "x-mutable-by": field.mutableBy }),
    ...(field.stamp ? { "x-stamp": field.stamp } : {}),
  };
}
