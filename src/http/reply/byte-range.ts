/** First and last byte, inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SPEC = /^(\d*)-(\d*)$/;
/** A header with more ranges is not an honest request (RFC 9110 § 14.2), so the whole is sent. */
const SPECS_MAX = 16;

/**
 * Reads which part of a representation of `size` bytes a Range header asks for (RFC 9110 § 14). Undefined: send the
 * whole, because the header is absent, malformed, of another unit, or asks for several ranges. `unsatisfiable`: the range
 * is outside (416).
 */
export function parseRange(header: string | null, size: number): ByteRange | "unsatisfiable" | undefined {
  const specs = header === null ? undefined : /^bytes\s*=(.*)$/i.exec(header.trim())?.[1]?.split(",");
  if (!specs || specs.length > SPECS_MAX) return undefined;
  const ranges: (ByteRange | "outside")[] = [];
  for (const spec of specs.map((each) => each.trim()).filter((each) => each !== "")) {
    const range = toRange(spec, size);
    if (range === undefined) return undefined;
    ranges.push(range);
  }
  if (ranges.length === 0) return undefined;
  const inside = ranges.filter((range) => range !== "outside");
  if (inside.length === 0) return "unsatisfiable";
  // For several ranges we send the whole, which RFC 9110 § 14.2 lets the server do.
  return ranges.length === 1 ? inside[0] : undefined;
}

function toRange(spec: string, size: number): ByteRange | "outside" | undefined {
  const [, first = "", last = ""] = SPEC.exec(spec) ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const suffix = Number(last);
    return suffix === 0 || size === 0 ? "outside" : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "outside" : { start, end: last === "" ? size - 1 : Math.min(size - 1, Number(last)) };
}
