import { RE2JS } from "re2js";
import type { WindowQuery } from "./live-window.ts";

/** The same text for windows that are the same query. Different texts may still mean the same. */
export function windowKey({ filter, sort, limit, offset }: WindowQuery): string {
  const keys = sort.map(({ path, descending }) => (descending ? `-${path.text}` : path.text));
  return JSON.stringify([offset, Number.isFinite(limit) ? limit : null, keys, filter], exactly);
}

/** Keeps apart what JSON would write alike: compiled expressions, and numbers it has no text for. */
function exactly(_key: string, value: unknown): unknown {
  if (value instanceof RE2JS) return { $regex: value.pattern(), $flags: value.flags() };
  if (typeof value === "number" && !Number.isFinite(value)) return { $number: String(value) };
  return value;
}
