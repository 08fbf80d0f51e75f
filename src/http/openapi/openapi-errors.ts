import { ERROR_RULES, type ErrorCode } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { declaredErrors } from "../declared-errors.ts";
import type { Route } from "../route.ts";

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

/** Writes the error answers of routes as components, because most routes share most of them. */
export interface ErrorWriter {
  /** The error answers of a route by status, each with the codes it may carry. */
  write(route: Route): Record<string, JsonObject>;
  readonly components: Readonly<Record<string, JsonObject>>;
}

export function createErrorWriter(): ErrorWriter {
  const components: Record<string, JsonObject> = {};
  const nameByCodes = new Map<string, string>();

  function nameOf(status: number, codes: ErrorCode[], route: Route): string {
    const key = `${status} ${codes.join(" ")}`;
    const known = nameByCodes.get(key);
    if (known !== undefined) return known;
    const name = answerName(status, codes, route);
    if (components[name]) throw new Error(`two different error answers are called ${name}`);
    nameByCodes.set(key, name);
    components[name] = answer(codes);
    return name;
  }

  return {
    components,
    write(route) {
      const codesByStatus = Map.groupBy(declaredErrors(route), ([, status]) => status);
      const refs = [...codesByStatus].map(([status, errors]): [string, JsonObject] => {
        const name = nameOf(
          status,
          errors.map(([code]) => code),
          route,
        );
        return [String(status), { $ref: `#/components/responses/${name}` }];
      });
      return Object.fromEntries(refs);
    },
  };
}

function answer(codes: ErrorCode[]): JsonObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_RULES[code].message}.`).join("\n\n"),
    headers: { "X-Request-Id": { $ref: "#/components/headers/RequestId" } },
    content: { "application/json": { schema: envelope(codes) } },
  };
}

/** Codes that the shell adds together, named by their common meaning. */
const FAMILIES: readonly (readonly [name: string, codes: readonly ErrorCode[]])[] = [
  [
    "BadBody",
    ["request.invalid_field", "request.missing_field", "request.bad_json", "request.schema", "request.unknown_field"],
  ],
  ["BadOpenBody", ["request.invalid_field", "request.missing_field", "request.bad_json", "request.schema"]],
  ["BadQuery", ["request.invalid_field", "request.missing_field"]],
  ["ForbiddenCaller", ["request.forbidden_host", "request.forbidden_origin"]],
  ["SpaceNotReady", ["space.not_accepted", "space.deleted"]],
  ["BadFilter", ["filter.invalid", "filter.unknown_operator", "filter.too_complex"]],
];
/** An answer with more codes of its own than this is named after its route. */
const NAMED_CODES = 3;

/**
 * `ForbiddenCallerOrSpaceReadOnly`: made of families and codes, so that the same answer has the same name in every
 * version.
 */
function answerName(status: number, codes: readonly ErrorCode[], route: Route): string {
  let rest = codes;
  const names: string[] = [];
  for (const [name, family] of FAMILIES) {
    if (!family.every((code) => rest.includes(code))) continue;
    rest = rest.filter((code) => !family.includes(code));
    names.push(name);
  }
  if (rest.length > NAMED_CODES) return `${pascal(route.id)}Refused${status}`;
  const defaults = codes.every((code) => ERROR_RULES[code].status === status);
  return [...names, ...rest.map(pascal)].join("Or") + (defaults ? "" : status);
}

/** `space.not_found` → `SpaceNotFound`. */
function pascal(text: string): string {
  return text.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The common shape of every error answer, for code that handles all of them. */
export function anyErrorBody(): JsonObject {
  const description = "What every answer but 2xx carries";
  return { ...envelope(Object.keys(ERROR_RULES) as ErrorCode[]), description };
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
