import { ERROR_RULES, type ErrorCode } from "../protocol/errors.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { declaredErrors } from "./declared-errors.ts";
import type { Route } from "./route.ts";

const TEXT: JsonObject = { type: "string" };
const TEXTS: JsonObject = { type: "array", items: TEXT };
const NUMBER: JsonObject = { type: "integer" };

/** The keys of `details` that are not plain strings. */
const DETAIL_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  fields: TEXTS,
  accepted: TEXTS,
  allowed: TEXTS,
  identities: TEXTS,
  editIndices: { type: "array", items: NUMBER },
  limitBytes: NUMBER,
  size: NUMBER,
  recordIndex: NUMBER,
  opIndex: NUMBER,
  editIndex: NUMBER,
  occurrences: NUMBER,
  limit: { type: ["string", "integer"] },
};

/** The error answers of a route by status, each with the codes it may carry. */
export function errorResponses(route: Route): Record<string, JsonObject> {
  const codesByStatus = Map.groupBy(declaredErrors(route), ([, status]) => status);
  const responses: Record<string, JsonObject> = {};
  for (const [status, errors] of codesByStatus) {
    const codes = errors.map(([code]) => code);
    responses[String(status)] = {
      description: codes.map((code) => `\`${code}\`: ${ERROR_RULES[code].message}.`).join("\n\n"),
      headers: { "X-Request-Id": { $ref: "#/components/headers/RequestId" } },
      content: { "application/json": { schema: envelope(codes) } },
    };
  }
  return responses;
}

function envelope(codes: ErrorCode[]): JsonObject {
  const details = detailsSchema(codes);
  return strictObject(
    {
      error: strictObject({ code: { type: "string", enum: codes }, message: TEXT, ...(details ? { details } : {}) }, [
        "code",
        "message",
      ]),
    },
    ["error"],
  );
}

/** `details` with the keys that some of the codes may carry; undefined when none carries any. */
function detailsSchema(codes: ErrorCode[]): JsonObject | undefined {
  const keys = new Set(codes.flatMap((code) => (ERROR_RULES[code] as { details?: readonly string[] }).details ?? []));
  if (keys.size === 0) return undefined;
  return strictObject(Object.fromEntries([...keys].map((key) => [key, DETAIL_SCHEMAS[key] ?? TEXT])), []);
}

function strictObject(properties: JsonObject, required: Json[]): JsonObject {
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false };
}
