import type { TSchema } from "@sinclair/typebox";

/** Whether the schema is a choice of literal strings (`oneOf`). */
export function isLiteralUnion(schema: TSchema): boolean {
  const members: unknown = schema["anyOf"];
  return Array.isArray(members) && members.every((member: TSchema) => typeof member["const"] === "string");
}

/** What a schema expects, in a few words: `an array`, `one of a, b`. */
export function describeSchema(schema: TSchema): string {
  const constant: unknown = schema["const"];
  if (constant !== undefined) return JSON.stringify(constant);
  const members: unknown = schema["anyOf"];
  if (Array.isArray(members)) {
    return isLiteralUnion(schema)
      ? `one of ${members.map((member: TSchema) => String(member["const"])).join(", ")}`
      : members.map((member: TSchema) => describeSchema(member)).join(" or ");
  }
  switch (schema["type"]) {
    case "array":
      return "an array";
    case "object":
      return "an object";
    case "integer":
      return "an integer";
    case "string":
      return "a string";
    case "number":
      return "a number";
    case "boolean":
      return "a boolean";
    case "null":
      return "null";
    default:
      return "a JSON value";
  }
}
