import type { Log } from "../../base/log.ts";
import { SvcError, svcError } from "../../protocol/errors.ts";
import { storageFault } from "../../protocol/storage-fault.ts";
import { jsonResponse } from "./reply.ts";

/**
 * The one place where anything thrown becomes an answer. Whatever is not an `SvcError` becomes `internal`, and only the
 * log says more.
 */
export function errorResponse(thrown: unknown, log: Log): Response {
  const error = toSvcError(thrown);
  logRefusal(error, thrown, log);
  const headers: Record<string, string> = {};
  if (error.code === "request.method_not_allowed" && Array.isArray(error.details?.["allowed"])) {
    headers["allow"] = error.details["allowed"].join(", ");
  }
  return jsonResponse(error.status, JSON.stringify(error.toBody()), headers);
}

function toSvcError(thrown: unknown): SvcError {
  if (thrown instanceof SvcError) return thrown;
  if (isAbort(thrown)) return svcError("server.unavailable");
  return storageFault(thrown) ?? new SvcError("internal", { cause: thrown });
}

function isAbort(thrown: unknown): boolean {
  const { name, code } = (thrown ?? {}) as { name?: unknown; code?: unknown };
  return name === "AbortError" || code === "ABORT_ERR";
}

/** Logs every refusal with its request id: a 5xx at the default level, a 4xx at debug. */
function logRefusal(error: SvcError, thrown: unknown, log: Log): void {
  const { code, status } = error;
  if (status < 500) log.debug("request refused", { code, status });
  // A feature that the specification does not offer is not a fault.
  else if (status === 501) log.info("request refused", { code, status });
  // When the client has disconnected nobody reads the answer, so it is only logged at debug.
  else log[isAbort(thrown) ? "debug" : "error"]("request failed", { code, status, err: thrown });
}
