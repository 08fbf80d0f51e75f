/** The server's sort order, by which a live window stays sorted as records come and go. */

import type { Json } from "../../src/protocol/json.ts";
import type { AnyRecord } from "../api/api-client.ts";
import { isInstant } from "../api/instant.ts";

/** Compares by the sort keys (dotted paths, `-` descends), then by id ascending. */
export function compareRecords(sort: readonly string[]): (a: AnyRecord, b: AnyRecord) => number {
  const keys = sort.map((key) => ({ path: key.replace(/^-/, "").split("."), sign: key.startsWith("-") ? -1 : 1 }));
  return (a, b) => {
    for (const { path, sign } of keys) {
      const order = compareValues(valueAt(a, path), valueAt(b, path));
      if (order !== 0) return sign * order;
    }
    return compareText(a.id, b.id);
  };
}

function valueAt(record: AnyRecord, path: readonly string[]): Json {
  let value: Json = record;
  for (const key of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
    value = value[key] ?? null;
  }
  return value;
}

function compareValues(a: Json, b: Json): number {
  const ranks = rankOf(a) - rankOf(b);
  if (ranks !== 0) return ranks;
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (typeof a === "string" && typeof b === "string") return compareText(a, b);
  if (isInstant(a) && isInstant(b)) return compareText(a.$date, b.$date);
  return compareText(JSON.stringify(a), JSON.stringify(b));
}

/** The order of kinds: missing and null, numbers, strings, objects, arrays, booleans, dates. */
function rankOf(value: Json): number {
  if (value === null) return 0;
  if (typeof value === "number") return 1;
  if (typeof value === "string") return 2;
  if (Array.isArray(value)) return 4;
  if (typeof value === "boolean") return 5;
  return isInstant(value) ? 6 : 3;
}

/** Compares by code point, which differs from the order of UTF-16 units. */
function compareText(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}
