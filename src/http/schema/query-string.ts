import type { TObject, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { ValueErrorType as Kind } from "@sinclair/typebox/errors";
import { type SvcError, svcError } from "../../protocol/errors.ts";
import { refusalReason } from "./schema-check.ts";
import { describeSchema } from "./schema-describe.ts";
import "./schema-formats.ts";

export type QueryReader = (search: string) => Record<string, unknown>;

/**
 * Makes the reader of a route's query string: it converts declared parameters to their types and ignores others. Errors:
 * request.missing_field {field}, request.invalid_field {field, reason}.
 */
export function createQueryReader(schema: TObject): QueryReader {
  let compiled: TypeCheck<TObject> | undefined;
  const properties = Object.entries(schema.properties);
  return (search) => {
    const given = new URLSearchParams(search);
    const query: Record<string, unknown> = {};
    for (const [name, property] of properties) {
      const values = given.getAll(name);
      if (property["type"] === "array") {
        if (values.length > 0) query[name] = values.map((text) => convert(name, text, property["items"]));
      } else if (values.length > 1) {
        throw refusal(name, "given more than once");
      } else if (values.length === 1) {
        query[name] = convert(name, values[0] as string, property);
      }
    }
    compiled ??= TypeCompiler.Compile(schema);
    if (!compiled.Check(query)) throwQueryFault(compiled, query);
    return query;
  };
}

function convert(name: string, text: string, schema: TSchema): unknown {
  switch (schema["type"]) {
    case "integer":
    case "number": {
      const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
      if (Number.isNaN(value) || (schema["type"] === "integer" && !Number.isSafeInteger(value))) break;
      return value;
    }
    case "boolean":
      if (text === "true" || text === "1") return true;
      if (text === "false" || text === "0") return false;
      break;
    default:
      return text;
  }
  throw refusal(name, `expected ${describeSchema(schema)}`);
}

function refusal(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `The query parameter ${field} is refused: ${reason}`);
}

function throwQueryFault(compiled: TypeCheck<TObject>, query: Record<string, unknown>): never {
  for (const error of compiled.Errors(query)) {
    const field = error.path.split("/")[1] ?? "";
    if (error.type === Kind.ObjectRequiredProperty)
      throw svcError("request.missing_field", { field }, `The query parameter ${field} is required`);
    throw refusal(field, refusalReason(error));
  }
  throw svcError("request.schema", { path: "", expected: "a valid query string" });
}
