import type { Json } from "../../src/protocol/json.ts";

/** An instant in the form that rows use. */
export type Instant = { $date: string };

export function isInstant(value: Json | undefined): value is Instant {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length === 1 &&
    typeof value["$date"] === "string"
  );
}
