import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { Effect } from "./apply-op.ts";

/** The `$set` and `$unset` that lead from one state of a record to another, by leaf; system fields are left out. */
export function diffDocs(before: JsonObject, after: JsonObject): Effect[] {
  const effects: Effect[] = [];
  walk(before, after, [], effects);
  return effects;
}

function walk(before: JsonObject, after: JsonObject, path: string[], effects: Effect[]): void {
  for (const key of Object.keys(before)) {
    if (skipped(key, path)) continue;
    if (!Object.hasOwn(after, key)) effects.push({ type: "$unset", path: [...path, key] });
  }
  for (const [key, value] of Object.entries(after)) {
    if (skipped(key, path)) continue;
    const old = Object.hasOwn(before, key) ? before[key] : undefined;
    if (isJsonObject(old) && isJsonObject(value) && Object.keys(value).length > 0)
      walk(old, value, [...path, key], effects);
    else if (!Bun.deepEquals(old, value, true)) effects.push({ type: "$set", path: [...path, key], payload: value });
  }
}

function skipped(key: string, path: readonly string[]): boolean {
  return path.length === 0 && (key === "id" || key.startsWith("_"));
}
