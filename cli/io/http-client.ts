import type { Json } from "../../src/protocol/json.ts";
import { ApiError, CliError, EXIT, UsageError } from "./exit.ts";
import { say } from "./output.ts";
import { redact } from "./redaction.ts";
import { DEFAULT_ADDR, type Target } from "./target.ts";

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+$/;

export interface ApiRequest {
  readonly method: string;
  /** Percent-encoded already, by {@link fillPath}. */
  readonly path: string;
  readonly query?: readonly (readonly [string, string])[];
  readonly json?: Json | undefined;
  /** Bytes instead of JSON, with their media type. */
  readonly raw?: { readonly bytes: BodyInit; readonly mediaType: string };
  readonly headers?: Readonly<Record<string, string>>;
  /** Set for streams and transfers of any length, which have no time limit. */
  readonly untimed?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Makes one HTTP call. Resolves to a 2xx answer with its body unread; otherwise throws {@link ApiError} or {@link
 * CliError}.
 */
export async function send(target: Target, request: ApiRequest): Promise<Response> {
  // A proxy configured for the web must not see calls to the user's own machine.
  process.env["NO_PROXY"] = "*";
  const query = new URLSearchParams(request.query?.map(([key, value]) => [key, value])).toString();
  const url = `http://${target.addr}${request.path}${query && `?${query}`}`;
  const headers: Record<string, string> = { ...request.headers };
  if (request.raw) headers["content-type"] = request.raw.mediaType;
  else if (request.json !== undefined) headers["content-type"] = "application/json";
  if (target.verbose) logRequest(request, url, headers);

  const startedMs = performance.now();
  const response = await guarded(target, () =>
    fetch(url, {
      method: request.method,
      headers,
      body: request.raw?.bytes ?? (request.json === undefined ? null : JSON.stringify(request.json)),
      redirect: "manual",
      signal: signalOf(target, request),
      // This turns off Bun's own limit of five minutes; our limit is the signal.
      timeout: false,
    } as RequestInit),
  );
  if (target.verbose) logResponse(response, performance.now() - startedMs);
  if (response.ok) return response;
  throw await apiErrorOf(target, response);
}

/** Reads the JSON of an answer; resolves to undefined when it has no content. */
export async function readJson(target: Target, response: Response): Promise<Json | undefined> {
  const text = await guarded(target, () => response.text());
  if (text === "") return undefined;
  const body = parsed(text);
  if (target.verbose) say(`< ${body === undefined ? text : redact(body)}`);
  if (body === undefined)
    throw new CliError(`${target.addr} does not answer in JSON; is it an svc server?`, EXIT.server);
  return body;
}

/** Runs a step of the exchange and rewords its failure: the server is not there, is too slow, or broke off. */
export async function guarded<T>(target: Target, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw transportError(target, error as Error);
  }
}

/**
 * Fills ids into a path template, each as one encoded segment. Refuses an empty id, `.` and `..`, because they would name
 * another route (the URL standard folds dot segments even when encoded).
 */
export function fillPath(template: string, ids: Readonly<Record<string, string | undefined>>): string {
  return template.replace(/:([a-zA-Z]+)/g, (_, name: string) => {
    const id = ids[name];
    if (id === undefined || id === "" || id === "." || id === "..") {
      throw new UsageError(`<${name}> cannot be ${JSON.stringify(id ?? "")}: it names nothing`);
    }
    return encodeURIComponent(id);
  });
}

function signalOf(target: Target, request: ApiRequest): AbortSignal | null {
  const signals: AbortSignal[] = [];
  if (request.signal) signals.push(request.signal);
  if (!request.untimed) signals.push(AbortSignal.timeout(target.timeoutMs));
  return signals.length === 0 ? null : AbortSignal.any(signals);
}

function transportError(target: Target, error: Error): Error {
  if (error instanceof CliError || error.name === "AbortError") return error;
  if (error.name === "TimeoutError") {
    return new CliError(
      `${addressOf(target)} did not answer within ${target.timeoutMs / 1000} s; --timeout sets how long to wait`,
      EXIT.unreachable,
      { cause: error },
    );
  }
  if ((error as NodeJS.ErrnoException).code === "ECONNRESET") {
    return new CliError(`${target.addr} broke off the connection`, EXIT.unreachable, { cause: error });
  }
  const message = `no server answers at ${addressOf(target)}\n${adviceFor(target)}`;
  return new CliError(message, EXIT.unreachable, { cause: error });
}

/** How to have a server there; `svc run` listens on this machine alone. */
function adviceFor({ addr, source }: Target): string {
  if (source !== undefined || addr === DEFAULT_ADDR) return "start one with: svc run";
  return LOOPBACK.test(addr)
    ? `start one with: svc run --addr ${addr}`
    : "a server listens on its own machine alone (127.0.0.0/8, localhost or [::1])";
}

/** The address, and which setting it came from where it was not typed. */
const addressOf = ({ addr, source }: Target): string => (source === undefined ? addr : `${addr}, from ${source}`);

async function apiErrorOf(target: Target, response: Response): Promise<ApiError> {
  const text = await guarded(target, () => response.text());
  const body = parsed(text) as { error?: { code?: unknown; message?: unknown; details?: unknown } } | undefined;
  if (target.verbose) say(`< ${body === undefined ? text : redact(body as Json)}`);
  const error = body?.error;
  if (typeof error?.code !== "string" || typeof error.message !== "string") {
    return new ApiError(response.status, "unexpected answer", `${text.slice(0, 200) || response.statusText}`);
  }
  return new ApiError(response.status, error.code, error.message, (error.details ?? {}) as Record<string, unknown>);
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function logRequest(request: ApiRequest, url: string, headers: Record<string, string>): void {
  say(`> ${request.method} ${url}`);
  for (const [name, value] of Object.entries(headers)) say(`> ${name}: ${value}`);
  if (request.raw) say("> (bytes)");
  else if (request.json !== undefined) say(`> ${redact(request.json)}`);
}

function logResponse(response: Response, elapsedMs: number): void {
  say(`< ${response.status} ${response.statusText} in ${elapsedMs.toFixed(0)} ms`);
  for (const [name, value] of response.headers) say(`< ${name}: ${value}`);
}
