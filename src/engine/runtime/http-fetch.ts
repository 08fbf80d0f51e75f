import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { CallFailure } from "./call-error.ts";
import type { HostAllowList } from "./host-allow-list.ts";

/** `{url, method?, headers?, body?}` → `{status, headers, body}`; the body is text. */
export type HttpFetch = (input: JsonObject, signal: AbortSignal) => Promise<Json>;

export interface HttpFetchDeps {
  readonly allow: HostAllowList;
  /** The value of a secret, by its name in the configuration. */
  secret(name: string): string | undefined;
  /** All addresses of a name; the system's resolver unless a test brings its own. */
  readonly resolve?: (host: string) => Promise<string[]>;
  /** Certificates to trust besides the system's, for tests. */
  readonly ca?: string;
}

const MAX_BODY_BYTES = 2 << 20;
const MAX_REDIRECTS = 5;
const TIMEOUT_MS = 60_000;
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
/** Headers that the connection sets itself, or that would address another host. */
const REFUSED_HEADERS = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "upgrade",
  "te",
  "trailer",
]);
const SECRET = /\{\{secret:([A-Za-z0-9_]{1,64})\}\}/g;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

interface Wanted {
  readonly url: URL;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

/**
 * Calls listed hosts for programs. A name is resolved once, its address is checked, and the connection goes to that very address,
 * so a name that resolves differently the second time reaches nothing. Redirects stay on the host. `{{secret:NAME}}` in a header
 * is replaced by a secret of the configuration, which the program never sees.
 */
export function createHttpFetch(deps: HttpFetchDeps): HttpFetch {
  const { allow, resolve = resolveName } = deps;

  const once = async (wanted: Wanted, signal: AbortSignal): Promise<{ message: IncomingMessage; body: string }> => {
    const { url } = wanted;
    const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
    const name = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    if (!allow.allowsHost(name, port))
      throw forbidden(`${url.host} is not listed; runtime.http.allow lists the hosts that programs may call`);
    const addresses = isIP(name) === 0 ? await resolve(name).catch(() => []) : [name];
    if (addresses.length === 0) throw new CallFailure("http.failed", `${name} has no address`);
    const address = addresses.find((one) => allow.allowsAddress(one));
    if (address === undefined)
      throw forbidden(
        `${name} is at an address of a private network; runtime.http.allow has to list the address itself`,
      );
    return send(wanted, { address, port, name, ...(deps.ca === undefined ? {} : { ca: deps.ca }) }, signal);
  };

  return async (input, signal) => {
    let wanted = readWanted(input, (name) => deps.secret(name));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    for (let redirects = 0; ; redirects++) {
      const { message, body } = await once(wanted, limit);
      const status = message.statusCode as number;
      const location = REDIRECTS.has(status) ? message.headers.location : undefined;
      if (location === undefined) return { status, headers: toHeaders(message), body };
      const next = new URL(location, wanted.url);
      if (next.host !== wanted.url.host || next.protocol !== wanted.url.protocol)
        throw forbidden(`${wanted.url.host} redirects to ${next.host}, which is another host`);
      if (redirects >= MAX_REDIRECTS) throw new CallFailure("http.failed", "too many redirects");
      const asGet = status === 303 || (status < 303 && wanted.method === "POST");
      wanted = { ...wanted, url: next, ...(asGet ? { method: "GET", body: undefined } : {}) };
    }
  };
}

function readWanted(input: JsonObject, secret: (name: string) => string | undefined): Wanted {
  const { url, method = "GET", headers = {}, body } = input;
  if (typeof url !== "string" || !URL.canParse(url)) throw invalid("url", "a URL");
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") throw invalid("url", "an http or https URL");
  if (parsed.username !== "" || parsed.password !== "") throw invalid("url", "without a user and a password");
  if (typeof method !== "string" || !METHODS.has(method.toUpperCase()))
    throw invalid("method", [...METHODS].join(", "));
  if (!isJsonObject(headers)) throw invalid("headers", "an object of texts");
  const sent: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string" || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) || /[\r\n\0]/.test(value))
      throw invalid("headers", "an object of header names and texts");
    if (REFUSED_HEADERS.has(name.toLowerCase())) throw invalid("headers", `without ${name}`);
    sent[name] = value.replace(SECRET, (_, key: string) => {
      const found = secret(key);
      if (found === undefined)
        throw invalid("headers", `without the secret ${key}, which runtime.secrets does not name`);
      return found;
    });
  }
  if (body !== undefined && body !== null && typeof body !== "string") throw invalid("body", "a text");
  return { url: parsed, method: method.toUpperCase(), headers: sent, body: body ?? undefined };
}

interface Target {
  readonly address: string;
  readonly port: number;
  readonly name: string;
  readonly ca?: string;
}

/** One exchange with an address that was checked; the name goes into the Host header and the TLS handshake. */
function send(wanted: Wanted, place: Target, signal: AbortSignal): Promise<{ message: IncomingMessage; body: string }> {
  const { url, method, headers, body } = wanted;
  const { promise, resolve, reject } = Promise.withResolvers<{ message: IncomingMessage; body: string }>();
  const failed = (error: Error): void =>
    reject(error instanceof CallFailure ? error : new CallFailure("http.failed", `${url.host}: ${error.message}`));
  const secure = url.protocol === "https:";
  const request = (secure ? requestHttps : requestHttp)(
    {
      host: place.address,
      port: place.port,
      path: `${url.pathname}${url.search}`,
      method,
      headers: {
        ...headers,
        host: url.host,
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
      agent: false,
      signal,
      ...(secure
        ? { servername: isIP(place.name) === 0 ? place.name : "", ...(place.ca ? { ca: place.ca } : {}) }
        : {}),
    },
    (message) => {
      const chunks: Buffer[] = [];
      let size = 0;
      message.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_BODY_BYTES) {
          failed(new CallFailure("http.too_large", `the answer is longer than ${MAX_BODY_BYTES >> 20} MiB`));
          message.destroy();
        } else chunks.push(chunk);
      });
      message.on("error", failed);
      message.on("end", () => resolve({ message, body: Buffer.concat(chunks).toString("utf8") }));
    },
  );
  request.on("error", failed);
  request.end(body);
  return promise;
}

async function resolveName(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function toHeaders(message: IncomingMessage): JsonObject {
  return Object.fromEntries(
    Object.entries(message.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  );
}

function forbidden(message: string): CallFailure {
  return new CallFailure("http.forbidden", message);
}

function invalid(field: string, reason: string): CallFailure {
  return new CallFailure("request.invalid_field", `${field} must be ${reason}`, { field, reason });
}
