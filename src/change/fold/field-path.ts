import { type Refusal, refusal } from "../../protocol/refusals.ts";

const MAX_PATH_CHARS = 1024;
const MAX_SEGMENTS = 32;

/** What is wrong with a dotted path that a client may write to, or undefined (DATA-2). `segments`: the path's, where they are at hand. */
export function pathFault(path: string, segments = segmentsOf(path)): Refusal | undefined {
  if (path === "") return refusal("path.empty");
  if (path.length > MAX_PATH_CHARS) return refusal("path.too_long", { limitChars: MAX_PATH_CHARS });
  if (segments.length > MAX_SEGMENTS) return refusal("path.too_deep", { limit: MAX_SEGMENTS });
  if (segments[0] === "id") return refusal("path.id");
  if (segments[0]!.startsWith("_")) return refusal("path.reserved");
  for (const segment of segments) {
    if (segment === "") return refusal("path.empty_segment");
    if (segment === "*" || segment === "__proto__") return refusal("path.no_name", { segment });
  }
  return undefined;
}

/** The segments of a dotted path; most paths are one field's name. */
export function segmentsOf(path: string): string[] {
  return path.includes(".") ? path.split(".") : [path];
}
