import { RE2JS } from "re2js";
import type { WindowQuery } from "./live-window.ts";

/** Returns the same text for windows that are the same query. Different texts may still mean the same. */
export function windowKey({ filter, sort, limit, offset }: WindowQuery): string {
  const keys = sort.map(({ path, descending }) => (descending ? `-${path.text}` : path.text));
  return JSON.stringify([offset, Number.isFinite(limit) ? limit : null, keys, filter], exactly);
}

/** Distinguishes values that JSON would write alike: compiled expressions, and numbers for which it has no text. */
function exactly(_key: string, value: unknown): unknown {
  if (value instanceof RE2JS) return { $regex: value.pattern(), $flags: value.flags() };
  if (typeof value === "number" && !Number.isFinite(value)) return { $number: String(value) };
  return value;
}
