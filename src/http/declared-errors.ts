import { ERROR_RULES, type ErrorCode } from "../protocol/errors.ts";
import type { Route } from "./route.ts";

/** Any request can fail on a file. */
const STORAGE_CODES = [
  "storage.full",
  "storage.damaged",
  "storage.read_only",
  "storage.version",
  "storage.failed",
] as const satisfies ErrorCode[];

/** Every [code, status] with which a route may answer: its own and those that the shell adds. */
export function declaredErrors(route: Route): [code: ErrorCode, status: number][] {
  const codes = new Map<string, [ErrorCode, number]>();
  const add = (code: ErrorCode, status: number = ERROR_RULES[code].status) =>
    codes.set(`${code} ${status}`, [code, status]);

  add("request.forbidden_host");
  add("request.forbidden_origin");
  if (!route.open) add("auth.required");
  // A path segment that is not valid percent-encoding is an invalid field.
  if (route.body || route.query || route.path.includes("/:")) add("request.invalid_field");
  if (route.body || route.query) add("request.missing_field");
  if (route.method !== "GET" && !route.rawBody) add("request.unsupported_media_type");
  if (route.body) {
    add("request.bad_json");
    add("request.schema");
    add("request.too_large");
    if (route.body["additionalProperties"] === false) add("request.unknown_field");
  }
  if (route.path.includes("/:objectId") || route.objectIdFields?.length) add("object.id_required");
  if (route.path.includes("/:spaceId")) {
    add("space.not_found");
    add("space.not_accepted");
    add("space.deleted");
  }
  for (const declared of route.errors ?? []) {
    if (typeof declared === "string") add(declared);
    else add(declared[0], declared[1]);
  }
  for (const code of STORAGE_CODES) add(code);
  add("server.unavailable");
  add("internal");
  return [...codes.values()].sort((a, b) => a[1] - b[1]);
}
