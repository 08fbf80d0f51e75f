import type { Json, JsonObject } from "../../protocol/json.ts";
import { setAt } from "./apply-op.ts";

/** The row that readers see: the folded record with this device's own fields laid over it. */
export function overlayLocal(base: string, fields: Readonly<Record<string, Json>>): string {
  const doc = JSON.parse(base) as JsonObject;
  for (const [path, value] of Object.entries(fields)) setAt(doc, path.split("."), value);
  return JSON.stringify(doc);
}
