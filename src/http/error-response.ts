import type { Log } from "../base/log.ts";
import { SvcError, svcError } from "../protocol/errors.ts";
import { jsonResponse } from "./reply.ts";

/** The one place where anything thrown becomes an answer: what is not an `SvcError` is `internal`, told to the log alone. */
export function errorResponse(thrown: unknown, log: Log): Response {
  const error = toSvcError(thrown);
  if (error.status >= 500) logServerError(error, thrown, log);
  const headers: Record<string, string> = {};
  if (error.code === "request.method_not_allowed" && Array.isArray(error.details?.["allowed"])) {
    headers["allow"] = error.details["allowed"].join(", ");
  }
  // The rest of a body that is too large is not read: the connection cannot be used again.
  if (error.code === "request.too_large") headers["connection"] = "close";
  return jsonResponse(error.status, JSON.stringify(error.toBody()), headers);
}

function toSvcError(thrown: unknown): SvcError {
  if (thrown instanceof SvcError) return thrown;
  if (isAbort(thrown)) return svcError("server.unavailable");
  return new SvcError("internal", { cause: thrown });
}

function isAbort(thrown: unknown): boolean {
  const { name, code } = (thrown ?? {}) as { name?: unknown; code?: unknown };
  return name === "AbortError" || code === "ABORT_ERR";
}

function logServerError(error: SvcError, thrown: unknown, log: Log): void {
  // A client that went away needs no attention; nobody reads the answer.
  log[isAbort(thrown) ? "debug" : "error"]("request failed", {
    code: error.code,
    status: error.status,
    err: thrown,
  });
}
