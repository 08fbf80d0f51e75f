/** Makes a string that two values share exactly when they are equal in the value order: the key of groups and sets. */
import type { Json } from "../../protocol/json.ts";
import { instantOf } from "./instant.ts";

export function valueKey(value: Json | undefined): string {
  switch (typeof value) {
    case "string":
      return `s${value}`;
    case "number":
      // -0 and 0 are equal, and String writes both as 0.
      return `n${value}`;
    case "boolean":
      return value ? "t" : "f";
    case "object":
      return value === null ? "z" : compoundKey(value);
    default:
      return "z";
  }
}

function compoundKey(value: Exclude<Json, null | boolean | number | string>): string {
  if (Array.isArray(value)) return `a[${value.map((part) => sized(valueKey(part))).join("")}]`;
  const instant = instantOf(value);
  if (instant !== undefined) return `d${instant}`;
  const parts = Object.entries(value).map(([key, part]) => sized(key) + sized(valueKey(part)));
  return `o{${parts.join("")}}`;
}

/** The length in front keeps neighbours apart, whatever they contain. */
function sized(text: string): string {
  return `${text.length}:${text}`;
}
