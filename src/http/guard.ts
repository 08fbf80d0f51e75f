import { type SvcError, svcError } from "../protocol/errors.ts";
import { allowingSetting } from "./refused-origins.ts";

/** The rules that a listener applies to every request before routing (API-9). */
export interface GuardRules {
  /** The port on which this listener answers. */
  port(): number;
  /** Origins allowed besides the listener's own (`http.allowedOrigins`). Never `null`, never `*`. */
  readonly allowedOrigins: ReadonlySet<string>;
  /** Routes that take bodies of any media type. */
  takesRawBody(method: string, pathname: string): boolean;
}

/** Loopback names that a Host header may carry, including 127.0.0.0/8. */
const LOOPBACK_NAME = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/i;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/**
 * Refuses requests that a web page elsewhere, or a name rebound to this machine, can make: being reachable only over
 * loopback does not keep browsers out. Returns the refusal: request.forbidden_host, request.forbidden_origin,
 * request.unsupported_media_type.
 */
export function guardRequest(request: Request, pathname: string, rules: GuardRules): SvcError | undefined {
  const headers = request.headers;
  const host = headers.get("host");
  if (host === null || !isOurHost(host, rules.port())) return forbiddenHost(host, rules.port());

  const origin = headers.get("origin");
  if (origin !== null && !isAllowedOrigin(origin, host, rules)) return forbiddenOrigin(origin);
  if (origin === null && headers.get("sec-fetch-site") === "cross-site") return forbiddenOrigin("");

  if (request.method === "GET" || request.method === "HEAD") return undefined;
  return checkMediaType(request, pathname, rules);
}

/** Whether the request comes from a page of an allowed origin (its own included). */
function isAllowedOrigin(origin: string, host: string, rules: GuardRules): boolean {
  return origin === `http://${host}` || rules.allowedOrigins.has(origin);
}

function isOurHost(host: string, port: number): boolean {
  const colon = host.lastIndexOf(":");
  const hasPort = colon > host.lastIndexOf("]");
  const name = hasPort ? host.slice(0, colon) : host;
  const given = hasPort ? host.slice(colon + 1) : "80";
  return given === String(port) && LOOPBACK_NAME.test(name);
}

function checkMediaType(request: Request, pathname: string, rules: GuardRules): SvcError | undefined {
  const declared = request.headers.get("content-length");
  const chunked = request.headers.has("transfer-encoding");
  if (!chunked && (declared === null || declared === "0")) return undefined;
  const type = request.headers.get("content-type");
  // A chunked body may turn out to be empty and then needs no type, so the body reader decides.
  if (type === null ? chunked : JSON_TYPE.test(type)) return undefined;
  if (rules.takesRawBody(request.method, pathname)) return undefined;
  return svcError("request.unsupported_media_type", { got: type ?? "" });
}

function forbiddenHost(host: string | null, port: number): SvcError {
  return svcError(
    "request.forbidden_host",
    { host: host ?? "" },
    `The Host header must name this server by a loopback name and its port, such as 127.0.0.1:${port}; listen.addr sets the port`,
  );
}

function forbiddenOrigin(origin: string): SvcError {
  const setting = allowingSetting(origin);
  const message = setting
    ? `Refused origin ${origin}; ${setting} would allow it (in the configuration file, or SVC_HTTP_ALLOWED_ORIGINS=${origin})`
    : "Requests from other web origins are refused; http.allowedOrigins lists the origins that are allowed";
  return svcError("request.forbidden_origin", { origin }, message);
}
