import type { Json } from "../protocol/json.ts";
import { instantOf, toInstant } from "./instant.ts";

/**
 * The value with every well-formed instant inside it (`{$date}` with RFC 3339 text or Unix milliseconds) in the form
 * that records hold: UTC with milliseconds. What looks like an instant and is none stays as it is. A value without
 * instants is given back itself.
 */
export function canonicalInstants(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(canonicalInstants);
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  const ms = instantOf(value);
  if (ms !== undefined) {
    const instant = toInstant(ms);
    return value["$date"] === instant.$date ? value : instant;
  }
  let changed = false;
  const entries = Object.entries(value).map(([key, part]): [string, Json] => {
    const canonical = canonicalInstants(part);
    changed ||= canonical !== part;
    return [key, canonical];
  });
  return changed ? Object.fromEntries(entries) : value;
}
