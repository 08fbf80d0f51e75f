import type { Json, JsonObject } from "../../protocol/json.ts";
import { CallFailure } from "./call-error.ts";

/** The HTTP interface of this very server, called without a socket: the same checks, rights, codes and replies. */
export type LocalApi = (method: string, path: string, body?: JsonObject, as?: "json" | "content") => Promise<Json>;

/** Answers a request as the listener does; undefined until there is one. */
export type AnswerRequest = (request: Request) => Promise<Response>;

export function createLocalApi(answer: AnswerRequest): LocalApi {
  return async (method, path, body, as = "json") => {
    const response = await answer(
      new Request(`http://127.0.0.1${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
      }),
    );
    if (response.ok && as === "content") return toContent(await response.bytes());
    const text = await response.text();
    if (response.ok) return text === "" ? null : (JSON.parse(text) as Json);
    const { error } = JSON.parse(text) as { error: { code: string; message: string; details?: Json } };
    throw new CallFailure(error.code, error.message, error.details);
  };
}

/** Returns text as text, and bytes that are not UTF-8 as base64. */
function toContent(bytes: Uint8Array): Json {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { base64: Buffer.from(bytes).toString("base64") };
  }
}
