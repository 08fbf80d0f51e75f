import type { TObject, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { ValueErrorType as Kind, type ValueError } from "@sinclair/typebox/errors";
import { type SvcError, svcError } from "../../protocol/errors.ts";
import { describeSchema, isLiteralUnion } from "./schema-describe.ts";
import "./schema-formats.ts";

/** Most faults of one body that are examined, and most unknown keys that are listed. */
const MAX_FAULTS = 10_000;
const MAX_LISTED_KEYS = 100;

/**
 * Checks a body against its schema. The schema is compiled at first use; the fault is determined only when the check
 * fails.
 */
export interface BodyCheck {
  readonly strict: boolean;
  /** Throws request.schema, request.unknown_field, request.missing_field or request.invalid_field, in that order. */
  check(body: unknown): void;
}

export function createBodyCheck(schema: TSchema): BodyCheck {
  let compiled: TypeCheck<TSchema> | undefined;
  return {
    strict: schema["additionalProperties"] === false,
    check(body) {
      compiled ??= TypeCompiler.Compile(schema);
      if (!compiled.Check(body)) throw bodyFault(schema, compiled, body);
    },
  };
}

/** The one fault that is reported for a body that does not match: the first in the order of API-1. */
function bodyFault(schema: TSchema, compiled: TypeCheck<TSchema>, body: unknown): SvcError {
  const fields: string[] = [];
  let missing: string | undefined;
  let invalid: { field: string; reason: string } | undefined;
  let seen = 0;
  for (const error of compiled.Errors(body)) {
    if (++seen > MAX_FAULTS) break;
    const segments = pointerSegments(error.path);
    const top = segments.length === 1;
    if (error.type === Kind.ObjectRequiredProperty) {
      if (!top) return shapeFault(error, body, segments);
      missing ??= segments[0] as string;
    } else if (error.type === Kind.ObjectAdditionalProperties) {
      if (!top) return strangeKey(renderPath(body, segments));
      if (fields.length < MAX_LISTED_KEYS) fields.push(segments[0] as string);
    } else if (error.value === undefined) {
      // The absent value of a required property is reported a second time, by its type.
    } else if (isRefusal(error)) {
      invalid ??= { field: renderPath(body, segments), reason: refusalReason(error) };
    } else {
      return shapeFault(error, body, segments);
    }
  }
  if (fields.length > 0) {
    const accepted = Object.keys((schema as TObject).properties);
    const message = `Unknown field ${fields.slice(0, 5).join(", ")}; this endpoint accepts ${accepted.join(", ") || "none"}`;
    return svcError("request.unknown_field", { fields, accepted }, message);
  }
  if (missing !== undefined)
    return svcError("request.missing_field", { field: missing }, `The field ${missing} is required`);
  if (invalid)
    return svcError("request.invalid_field", invalid, `The field ${invalid.field} is refused: ${invalid.reason}`);
  return svcError("request.schema", { path: "", expected: describeSchema(schema) });
}

function strangeKey(path: string): SvcError {
  return svcError("request.schema", { path, expected: "no such key" }, `${path} is no key that this endpoint takes`);
}

function shapeFault(error: ValueError, body: unknown, segments: string[]): SvcError {
  const path = renderPath(body, segments);
  const expected = describeSchema(error.schema);
  return svcError("request.schema", { path, expected }, `${path === "" ? "The body" : path} must be ${expected}`);
}

/** Whether the value has the right JSON type and a rule refuses it, rather than having the wrong type. */
function isRefusal(error: ValueError): boolean {
  switch (error.type) {
    case Kind.ArrayContains:
    case Kind.ArrayMaxContains:
    case Kind.ArrayMaxItems:
    case Kind.ArrayMinContains:
    case Kind.ArrayMinItems:
    case Kind.ArrayUniqueItems:
    case Kind.IntegerExclusiveMaximum:
    case Kind.IntegerExclusiveMinimum:
    case Kind.IntegerMaximum:
    case Kind.IntegerMinimum:
    case Kind.IntegerMultipleOf:
    case Kind.NumberExclusiveMaximum:
    case Kind.NumberExclusiveMinimum:
    case Kind.NumberMaximum:
    case Kind.NumberMinimum:
    case Kind.NumberMultipleOf:
    case Kind.ObjectMaxProperties:
    case Kind.ObjectMinProperties:
    case Kind.StringFormat:
    case Kind.StringMaxLength:
    case Kind.StringMinLength:
    case Kind.StringPattern:
      return true;
    case Kind.Literal:
      return typeof error.value === typeof error.schema["const"] && error.schema["fault"] !== "request.schema";
    case Kind.Union:
      return (
        isLiteralUnion(error.schema) && typeof error.value === "string" && error.schema["fault"] !== "request.schema"
      );
    default:
      return false;
  }
}

export function refusalReason(error: ValueError): string {
  const own: unknown = error.schema["errorMessage"];
  if (typeof own === "string") return own;
  const { schema } = error;
  switch (error.type) {
    case Kind.Union:
    case Kind.Literal:
      return `expected ${describeSchema(schema)}`;
    case Kind.StringMinLength:
      return schema["minLength"] === 1 ? "must not be empty" : `must have at least ${schema["minLength"]} characters`;
    case Kind.StringMaxLength:
      return `must have at most ${schema["maxLength"]} characters`;
    case Kind.StringPattern:
      return `must match ${schema["pattern"]}`;
    case Kind.StringFormat:
      return `must be a ${schema["format"]}`;
    case Kind.ArrayMinItems:
      return schema["minItems"] === 1 ? "must not be empty" : `must have at least ${schema["minItems"]} elements`;
    case Kind.ArrayUniqueItems:
      return "must not have an element twice";
    case Kind.ObjectMinProperties:
      return schema["minProperties"] === 1 ? "must not be empty" : `must have at least ${schema["minProperties"]} keys`;
    case Kind.ObjectMaxProperties:
      return `must have at most ${schema["maxProperties"]} keys`;
    case Kind.IntegerMultipleOf:
    case Kind.NumberMultipleOf:
      return `must be a multiple of ${schema["multipleOf"]}`;
    case Kind.IntegerExclusiveMinimum:
    case Kind.NumberExclusiveMinimum:
      return `must be greater than ${schema["exclusiveMinimum"]}`;
    case Kind.IntegerExclusiveMaximum:
    case Kind.NumberExclusiveMaximum:
      return `must be less than ${schema["exclusiveMaximum"]}`;
    case Kind.ArrayMaxItems:
      return `must have at most ${schema["maxItems"]} elements`;
    case Kind.IntegerMinimum:
    case Kind.NumberMinimum:
      return `must be at least ${schema["minimum"]}`;
    case Kind.IntegerMaximum:
    case Kind.NumberMaximum:
      return `must be at most ${schema["maximum"]}`;
    default:
      return error.message.charAt(0).toLowerCase() + error.message.slice(1);
  }
}

function pointerSegments(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** `records[2].ops[0].type`: array positions in brackets, keys after dots. */
function renderPath(body: unknown, segments: string[]): string {
  let value: unknown = body;
  let path = "";
  for (const segment of segments) {
    if (Array.isArray(value)) path += `[${segment}]`;
    else path += path === "" ? segment : `.${segment}`;
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[segment] : undefined;
  }
  return path;
}
