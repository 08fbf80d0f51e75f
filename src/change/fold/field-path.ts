const MAX_PATH_CHARS = 1024;
const MAX_SEGMENTS = 32;

/** What is wrong with a dotted path that a client may write to, or undefined (DATA-2). `segments`: the path's, where they are at hand. */
export function pathFault(path: string, segments = segmentsOf(path)): string | undefined {
  if (path === "") return "the path is empty";
  if (path.length > MAX_PATH_CHARS) return `the path is longer than ${MAX_PATH_CHARS} characters`;
  if (segments.length > MAX_SEGMENTS) return `the path has more than ${MAX_SEGMENTS} segments`;
  if (segments[0] === "id") return "id cannot be written";
  if (segments[0]!.startsWith("_")) return "names that begin with _ are the system's";
  for (const segment of segments) {
    if (segment === "") return "a segment of the path is empty";
    if (segment === "*") return "* is no name of a field";
    if (segment === "__proto__") return "__proto__ is no name of a field";
  }
  return undefined;
}

/** The segments of a dotted path; most paths are one field's name. */
export function segmentsOf(path: string): string[] {
  return path.includes(".") ? path.split(".") : [path];
}
