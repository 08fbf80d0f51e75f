import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { REPLY_LIMIT } from "../../query/run/reply-length.ts";
import { CallFailure } from "./call-error.ts";

export interface LocalCall {
  /** What the reply is; JSON by default. */
  readonly as?: "json" | "content";
  /** Ends a read. */
  readonly signal?: AbortSignal;
  /** A longer reply is host.reply_too_large; of records that are longer none is made. */
  readonly mostChars?: number;
}

/** The HTTP interface of this very server, called without a socket: the same checks, rights, codes and replies. */
export type LocalApi = (method: string, path: string, body?: JsonObject, call?: LocalCall) => Promise<Json>;

const mostCharsOf = new WeakMap<Request, number>();

/** How many characters the records of a reply may have together; undefined where whoever asks may have all there are. */
export function recordCharsFor(request: Request): number | undefined {
  return mostCharsOf.get(request);
}

/** Answers a request as the listener does; undefined until there is one. */
export type AnswerRequest = (request: Request) => Promise<Response>;

export function createLocalApi(answer: AnswerRequest): LocalApi {
  return async (method, path, body, { as = "json", signal, mostChars } = {}) => {
    const request = new Request(`http://127.0.0.1${path}`, {
      method,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    if (mostChars !== undefined) mostCharsOf.set(request, mostChars);
    const response = await answer(request);
    if (response.ok && as === "content") return toContent(await response.bytes());
    const text = await response.text();
    if (mostChars !== undefined && text.length > mostChars) throw tooLarge(path);
    if (response.ok) return text === "" ? null : (JSON.parse(text) as Json);
    const { error } = JSON.parse(text) as { error: { code: string; message: string; details?: Json } };
    if (isReplyTooLarge(error)) throw tooLarge(path);
    throw new CallFailure(error.code, error.message, error.details);
  };
}

function isReplyTooLarge({ code, details }: { code: string; details?: Json }): boolean {
  return code === "request.too_large" && isJsonObject(details) && details["limit"] === REPLY_LIMIT;
}

function tooLarge(path: string): CallFailure {
  return new CallFailure(
    "host.reply_too_large",
    `the reply of ${path} is too large for a program: ask for less at once`,
  );
}

/** Returns text as text, and bytes that are not UTF-8 as base64. */
function toContent(bytes: Uint8Array): Json {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { base64: Buffer.from(bytes).toString("base64") };
  }
}
