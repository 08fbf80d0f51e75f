import type { Json, JsonObject } from "../../protocol/json.ts";
import { instantOf, isCanonicalInstant, isDateShaped, toInstant } from "./instant.ts";

/**
 * Returns the value with every well-formed instant inside it (`{$date}` with RFC 3339 text or Unix milliseconds) in the form that
 * records hold: UTC with milliseconds. An object that looks like an instant but is none stays as it is. A value without instants
 * is returned itself, not copied.
 */
export function canonicalInstants(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return canonicalItems(value);
  if (!isDateShaped(value)) return canonicalParts(value);
  if (isCanonicalInstant(value["$date"])) return value;
  const ms = instantOf(value);
  return ms === undefined ? canonicalParts(value) : toInstant(ms);
}

function canonicalItems(items: Json[]): Json[] {
  let copy: Json[] | undefined;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (typeof item !== "object" || item === null) continue;
    const canonical = canonicalInstants(item);
    if (canonical === item) continue;
    copy ??= [...items];
    copy[i] = canonical;
  }
  return copy ?? items;
}

function canonicalParts(value: JsonObject): JsonObject {
  let changed: Map<string, Json> | undefined;
  for (const key of Object.keys(value)) {
    const part = value[key]!;
    if (typeof part !== "object" || part === null) continue;
    const canonical = canonicalInstants(part);
    if (canonical === part) continue;
    changed ??= new Map();
    changed.set(key, canonical);
  }
  return changed
    ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, changed.get(key) ?? part]))
    : value;
}
