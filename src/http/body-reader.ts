import { exceedsDepth } from "../base/json-depth.ts";
import { type SvcError, svcError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Reads a JSON body, at most `LIMITS.bodyBytes` of it. Resolves to `undefined` when there is none. Errors:
 * request.too_large, request.bad_json (syntax, UTF-8), request.schema (nesting, a `__proto__` key below the top, a number
 * that cannot be stored).
 */
export async function readJsonBody(request: Request): Promise<unknown> {
  const bytes = await readCapped(request, LIMITS.bodyBytes);
  if (bytes.length === 0) return undefined;
  if (request.headers.get("content-type") === null) throw svcError("request.unsupported_media_type", { got: "" });
  return parseJson(bytes);
}

async function readCapped(request: Request, limitBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > limitBytes) throw tooLarge(limitBytes);
    // The HTTP parser makes sure that the sender sends the length it declared.
    return declared === "0" ? new Uint8Array() : request.bytes();
  }
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let total = 0;
  // What it is left at when this throws is read, and thrown away, before the request is answered.
  for await (const chunk of request.body.values({ preventCancel: true })) {
    total += chunk.length;
    if (total > limitBytes) throw tooLarge(limitBytes);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}

function tooLarge(limitBytes: number): SvcError {
  return svcError(
    "request.too_large",
    { limitBytes },
    `A request body is at most ${limitBytes} bytes; send it in parts`,
  );
}

function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw svcError("request.bad_json", undefined, "The request body is not valid UTF-8");
  }
  const tooDeep = exceedsDepth(text, LIMITS.bodyDepth);
  let value: unknown;
  try {
    // A body that nests too deeply is not parsed, because it could exhaust the parser's stack.
    if (!tooDeep) value = JSON.parse(text);
  } catch (cause) {
    throw svcError("request.bad_json", undefined, `The request body is not valid JSON: ${(cause as Error).message}`);
  }
  if (tooDeep) {
    const expected = `at most ${LIMITS.bodyDepth} levels of nesting`;
    throw svcError("request.schema", { path: "", expected }, `The body takes ${expected}`);
  }
  if (mayHoldProto(text)) refuseNestedProto(value, "", true);
  if (ODD_NUMBERS.some((odd) => odd.test(text))) checkNumbers(value, "");
  return value;
}

function mayHoldProto(text: string): boolean {
  return text.includes("__proto__") || text.includes("\\u00");
}

/**
 * Refuses a `__proto__` key anywhere below the top level: assigning through such a key would replace a prototype and
 * silently lose the value. At the top level the endpoint's strict schema refuses it.
 */
function refuseNestedProto(value: unknown, path: string, top: boolean): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      refuseNestedProto(item, `${path}[${index}]`, false);
    });
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    const childPath = path === "" ? key : `${path}.${key}`;
    if (key === "__proto__" && !top) {
      const expected = "a key other than __proto__";
      throw svcError("request.schema", { path: childPath, expected }, `${childPath} must be ${expected}`);
    }
    refuseNestedProto(item, childPath, false);
  }
}

/**
 * One of them matches every text in which a number may parse to an infinity or to minus zero; they match other texts too. As one
 * expression they took twice as long.
 */
const ODD_NUMBERS = [/[:,[\s]-0/, /\d[eE][+-]?\d{2}/, /\d{200}/];

/**
 * Refuses numbers beyond a double, which no record can hold and JSON would write as null. Replaces minus zero by zero in
 * place, because JSON writes it as zero: what is read back then equals what was sent.
 */
function checkNumbers(value: unknown, path: string): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    const expected = `a number from -${Number.MAX_VALUE} to ${Number.MAX_VALUE}`;
    throw svcError("request.schema", { path, expected }, `${path} must be ${expected}`);
  }
  if (typeof value !== "object" || value === null) return;
  const parts = value as Record<string, unknown>;
  for (const key of Object.keys(parts)) {
    const part = parts[key];
    if (part === 0) parts[key] = 0;
    else checkNumbers(part, Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`);
  }
}
