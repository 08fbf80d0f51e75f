/**
 * A small HTTP client for scenarios: it knows the error envelope and nothing of the server's sources. Every
 * response outside 2xx is checked against that envelope in passing, and against the server's own document where the client
 * has been given it.
 */

import type { Json, JsonObject } from "../hostile/wire-types.ts";
import { openStream, type SseStream } from "./sse-stream.ts";

export type { Json, JsonObject, Page, Row } from "../hostile/wire-types.ts";

export interface Rejection {
  recordIndex: number;
  recordId?: string;
  opIndex: number;
  reason: string;
}
export interface WriteResult {
  versionId: string;
  changeId: string;
  recordIds: string[];
  rejections?: Rejection[];
}
export interface UpsertRejection {
  index: number;
  id: string;
  code: string;
  reason: string;
}
export interface UpsertResult {
  pages: { versionId: string; changeId: string; recordIds: string[] }[];
  created: number;
  updated: number;
  skipped: number;
  rejections?: UpsertRejection[];
}
export interface SpaceInfo {
  id: string;
  name?: string;
  description?: string;
  iconCid?: string;
  spaceIndexObjectId?: string;
  createdAt: { $date: string };
  spaceType: string;
  author?: string;
  ownRole: string;
  status: string;
  settings?: JsonObject;
  derived?: boolean;
}
export interface ErrorBody {
  code: string;
  message: string;
  details?: JsonObject;
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined when it is empty or not JSON. */
  json: Json | undefined;
}

export interface RequestOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it stands; wins over `body`. */
  raw?: string | Uint8Array | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  timeoutMs?: number;
  redirect?: "manual" | "follow";
}

export interface Client {
  readonly base: string;
  request(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  /** Each of these throws, with body and server log, when the status differs. */
  get<T>(path: string, status?: number): Promise<T>;
  post<T>(path: string, body?: unknown, status?: number): Promise<T>;
  put<T>(path: string, body?: unknown, status?: number): Promise<T>;
  patch<T>(path: string, body?: unknown, status?: number): Promise<T>;
  del<T>(path: string, status?: number): Promise<T>;
  /** Expects the error envelope with this status and code; returns it. */
  fails(method: string, path: string, body: unknown, status: number, code: string): Promise<ErrorBody>;
  /** Opens an SSE stream; throws when the answer is no stream. */
  stream(method: string, path: string, body?: unknown): Promise<SseStream>;
  untilBootstrapped(timeoutMs?: number): Promise<void>;
}

export interface ClientOptions {
  serverLog?: () => string;
  /** What is wrong with a refusal beyond its form. */
  faultOfRefusal?: (method: string, path: string, status: number, error: ErrorBody) => Promise<string | undefined>;
}

export function createClient(base: string, options: ClientOptions = {}): Client {
  const logTail = (): string => {
    const text = options.serverLog?.().trimEnd() ?? "";
    return text === "" ? "" : `\n── server log\n${text.split("\n").slice(-20).join("\n")}`;
  };

  const request = async (method: string, path: string, requestOptions: RequestOptions = {}): Promise<Reply> => {
    const { body, raw, headers = {}, timeoutMs = 20_000, redirect = "manual" } = requestOptions;
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const given = Object.keys(headers).some((name) => name.toLowerCase() === "content-type");
    const contentType = payload === undefined || given ? {} : { "Content-Type": "application/json" };
    let response: Response;
    try {
      response = await fetch(base + path, {
        method,
        redirect,
        headers: { ...contentType, ...headers },
        ...(payload === undefined ? {} : { body: payload as BodyInit }),
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (cause) {
      throw new Error(`${method} ${path}: ${String(cause)}${logTail()}`, { cause });
    }
    const text = await response.text();
    const reply: Reply = { status: response.status, headers: response.headers, text, json: parseJson(text) };
    if (reply.status >= 400 && method !== "HEAD") {
      const error = envelopeOf(reply, `${method} ${path}`);
      const fault = await options.faultOfRefusal?.(method, path, reply.status, error);
      if (fault !== undefined) throw new Error(`${fault}: ${clip(reply.text)}`);
    }
    return reply;
  };

  const expectStatus = async <T>(method: string, path: string, body: unknown, status: number): Promise<T> => {
    const reply = await request(method, path, { body });
    if (reply.status !== status) {
      const sent = body === undefined ? "" : ` ${clip(JSON.stringify(body))}`;
      throw new Error(
        `${method} ${path}${sent}\nexpected ${status}, got ${reply.status} ${clip(reply.text)}${logTail()}`,
      );
    }
    if (status === 204 && reply.text !== "")
      throw new Error(`${method} ${path}: a 204 carries a body: ${clip(reply.text)}`);
    return reply.json as T;
  };

  const client: Client = {
    base,
    request,
    get: (path, status = 200) => expectStatus("GET", path, undefined, status),
    post: (path, body, status = 200) => expectStatus("POST", path, body, status),
    put: (path, body, status = 204) => expectStatus("PUT", path, body, status),
    patch: (path, body, status = 204) => expectStatus("PATCH", path, body, status),
    del: (path, status = 204) => expectStatus("DELETE", path, undefined, status),
    fails: async (method, path, body, status, code) => {
      const reply = await request(method, path, { body });
      const sent = body === undefined ? "" : ` ${clip(JSON.stringify(body))}`;
      if (reply.status < 400)
        throw new Error(
          `${method} ${path}${sent}\nexpected ${status} ${code}, got ${reply.status} ${clip(reply.text)}`,
        );
      const error = envelopeOf(reply, `${method} ${path}`);
      if (reply.status !== status || error.code !== code) {
        throw new Error(
          `${method} ${path}${sent}\nexpected ${status} ${code}, got ${reply.status} ${clip(reply.text)}${logTail()}`,
        );
      }
      return error;
    },
    stream: (method, path, body) => openStream(base + path, method, body),
    untilBootstrapped: async (timeoutMs = 20_000) => {
      await until(
        async () => !(await client.get<{ bootstrapping: boolean }>("/v1/health")).bootstrapping,
        "bootstrapping to end",
        timeoutMs,
      );
    },
  };
  return client;
}

/** The error envelope of a reply; throws when the body is anything else. */
export function envelopeOf(reply: Reply, what: string): ErrorBody {
  const fault = (reason: string): never => {
    throw new Error(`${what}: ${reply.status} without the error envelope (${reason}): ${clip(reply.text)}`);
  };
  const body = reply.json;
  if (body === null || typeof body !== "object" || Array.isArray(body)) return fault("no JSON object");
  const error = body["error"];
  if (error === null || typeof error !== "object" || Array.isArray(error) || error === undefined)
    return fault("no error");
  if (Object.keys(body).join() !== "error") fault("keys beside error");
  const { code, message, details, ...rest } = error as { code?: Json; message?: Json; details?: Json };
  if (typeof code !== "string" || !/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$/.test(code)) return fault("code");
  if (typeof message !== "string" || message === "") return fault("message");
  if (details !== undefined && (details === null || typeof details !== "object" || Array.isArray(details)))
    return fault("details");
  if (Object.keys(rest).length > 0) fault(`unknown keys ${Object.keys(rest).join()}`);
  if (!/^application\/json\b/.test(reply.headers.get("content-type") ?? "")) fault("content type");
  return details === undefined ? { code, message } : { code, message, details: details as JsonObject };
}

/** A condition is looked at after so long, and again after a tenth of what was waited: most ask a server, which costs it work. */
const LOOK_MS = 15;
const LONGEST_LOOK_MS = 100;

/** Polls until the condition holds; throws, naming it, after `timeoutMs`. What is there for less than 100 ms it may miss. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 10_000,
  everyMs = LOOK_MS,
): Promise<void> {
  const startedAt = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await Bun.sleep(Math.min(LONGEST_LOOK_MS, Math.max(everyMs, waitedMs / 10)));
  }
}

/** Until what happens now has a later time than an instant of the server's. */
export const untilAfter = (instant: Json | undefined): Promise<void> =>
  until(() => Date.now() > Date.parse(String((instant as JsonObject)["$date"])), "the clock to go on", 1_000, 1);

function parseJson(text: string): Json | undefined {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // envelopeOf and the status checks report it with the text itself
  }
}

export function clip(text: string | undefined, length = 600): string {
  if (text === undefined) return "";
  return text.length <= length ? text : `${text.slice(0, length)}… (${text.length} characters)`;
}
