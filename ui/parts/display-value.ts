import type { Json } from "../../src/protocol/json.ts";
import { isInstant } from "../api/instant.ts";

/** A value as text for people: strings bare, instants as local time, the rest as JSON. */
export function displayValue(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  return isInstant(value) ? new Date(value.$date).toLocaleString() : JSON.stringify(value);
}
