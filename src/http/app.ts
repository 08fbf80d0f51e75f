import { Elysia } from "elysia";
import type { Log } from "../base/log.ts";
import type { AccountHost } from "../engine/account/account-host.ts";
import { svcError } from "../protocol/errors.ts";
import { STREAMS_PATH, type SubscriptionRequest } from "../protocol/stream.ts";
import { addCorsHeaders, preflightResponse } from "./cors.ts";
import { createDispatch, type RequestInfo } from "./dispatch.ts";
import { type GuardRules, guardRequest } from "./guard.ts";
import { createPathMatcher, type PathMatcher } from "./path-match.ts";
import { createRefusedOrigins } from "./refused-origins.ts";
import { errorResponse } from "./reply/error-response.ts";
import { JSON_CONTENT_TYPE } from "./reply/reply.ts";
import type { Route } from "./route.ts";
import type { ServerHandle } from "./server-handle.ts";
import type { InnerStreams } from "./stream/inner-streams.ts";
import { readUnread } from "./unread-body.ts";

const PAGE_METHODS = ["GET", "HEAD", "OPTIONS"];

export interface AppDeps {
  readonly routes: readonly Route[];
  readonly host: AccountHost;
  readonly server: ServerHandle;
  readonly log: Log;
  readonly allowedOrigins: readonly string[];
  /** The port on which the app is served; the guard needs it. */
  port(): number;
  /** Pages and assets beside the API; resolves to undefined where there is none at the path. */
  page?(request: Request, pathname: string): Promise<Response | undefined>;
  /** Checks routes against what they declare; for tests. */
  readonly checkResponses?: boolean;
}

export interface App {
  /** Answers a request. Never rejects. */
  fetch(request: Request): Promise<Response>;
}

/** The same as `createApp`, made with its first request: a start does not wait until two hundred routes are registered. */
export function createAppLater(deps: AppDeps): App {
  let app: App | undefined;
  return {
    fetch(request) {
      app ??= createApp(deps);
      return app.fetch(request);
    },
  };
}

/** Makes the HTTP shell around the routes: guard, CORS, HEAD and OPTIONS, routing, the error envelope, request ids. */
export function createApp(deps: AppDeps): App {
  const { routes, server } = deps;
  const matcher = createPathMatcher(routes);
  const rawRoutes = createPathMatcher(routes.filter((route) => route.rawBody));
  const rules: GuardRules = {
    port: deps.port,
    allowedOrigins: new Set(deps.allowedOrigins),
    takesRawBody: (method, pathname) => rawRoutes.find(method, pathname) !== undefined,
  };
  const infoByRequest = new WeakMap<Request, RequestInfo>();
  const streams = createPathMatcher(routes.filter((route) => isStream(route) && route.path !== STREAMS_PATH));
  const router = createRouter(deps, infoByRequest);
  const nextRequestId = createRequestIds();
  const shell: Shell = { log: deps.log, innerStreams };
  const refusedOrigins = createRefusedOrigins(deps.log);

  async function answer(request: Request, pathname: string, info: RequestInfo): Promise<Response> {
    const refusal = guardRequest(request, pathname, rules);
    if (refusal) {
      const origin = refusal.code === "request.forbidden_origin" ? request.headers.get("origin") : null;
      if (origin !== null) refusedOrigins.note(origin);
      return errorResponse(refusal, info.log);
    }
    if (server.stopping.aborted) return errorResponse(svcError("server.unavailable"), info.log);
    switch (request.method) {
      case "OPTIONS":
        return options(request, pathname, info);
      case "HEAD":
        return head(request, pathname, info);
      default:
        return routed(request, pathname, info);
    }
  }

  /** The streams that `request` may carry. The request gets their replies. */
  function innerStreams(request: Request, requestId: string, log: Log): InnerStreams {
    const inner: InnerStreams = {
      fault: (asked) => streamFault(asked, request.url, streams),
      open(asked, outer, signal) {
        const { href, pathname } = new URL(asked.path, request.url);
        const sent = asked.method === "GET" || asked.body === undefined ? {} : jsonBody(asked.body);
        const opening = new Request(href, { method: asked.method, signal, ...sent });
        return routed(opening, pathname, { requestId, log, inner, outer }).catch((thrown: unknown) =>
          errorResponse(thrown, log),
        );
      },
    };
    return inner;
  }

  async function routed(request: Request, pathname: string, info: RequestInfo): Promise<Response> {
    infoByRequest.set(request, info);
    return (await router.fetch(request)) ?? unmatched(request, pathname, info);
  }

  async function unmatched(request: Request, pathname: string, info: RequestInfo): Promise<Response> {
    const { method } = request;
    const page = await deps.page?.(request, pathname);
    if (page && method === "GET") return page;
    const allowed = page ? PAGE_METHODS : matcher.methods(pathname);
    if (allowed.length === 0) return errorResponse(svcError("request.not_found", { path: pathname }), info.log);
    const message = `This route takes ${allowed.join(", ")}, not ${method}`;
    return errorResponse(svcError("request.method_not_allowed", { method, allowed }, message), info.log);
  }

  async function options(request: Request, pathname: string, info: RequestInfo): Promise<Response> {
    const allowed = (await deps.page?.(request, pathname)) ? PAGE_METHODS : matcher.methods(pathname);
    if (allowed.length === 0) return errorResponse(svcError("request.not_found", { path: pathname }), info.log);
    const origin = request.headers.get("origin");
    if (origin !== null && request.headers.has("access-control-request-method")) {
      return preflightResponse(request, origin, allowed);
    }
    return new Response(null, { status: 204, headers: { allow: allowed.join(", ") } });
  }

  /** HEAD is GET without the body; a stream is not opened for it. */
  async function head(request: Request, pathname: string, info: RequestInfo): Promise<Response> {
    const route = matcher.find("GET", pathname);
    if (route && isStream(route) && (route.open || deps.host.engine)) {
      return new Response(null, { status: 200, headers: { "content-type": "text/event-stream" } });
    }
    const get = new Request(request.url, { method: "GET", headers: request.headers, signal: request.signal });
    get.headers.delete("range"); // RFC 9110 § 14.2 defines it for GET alone
    const full = await routed(get, pathname, info);
    const headers = new Headers(full.headers);
    const isJson = headers.get("content-type") === JSON_CONTENT_TYPE;
    // The length is computed only for what is in memory anyway; a file's handler sets the header itself.
    if (isJson) headers.set("content-length", String((await full.arrayBuffer()).byteLength));
    else await full.body?.cancel();
    return new Response(null, { status: full.status, headers });
  }

  return {
    async fetch(request) {
      const info = new ShellInfo(nextRequestId(), request, shell);
      const pathname = pathOf(request.url);
      const startedMs = performance.now();
      const response = await answer(request, pathname, info).catch((thrown: unknown) =>
        errorResponse(thrown, info.log),
      );
      // Bun gives a GET no body, so it has none that was left.
      const hasRest = request.method !== "GET" && (response.status >= 400 || !request.bodyUsed);
      if (hasRest && !(await readUnread(request, server.stopping))) response.headers.set("connection", "close");
      response.headers.set("x-request-id", info.requestId);
      const origin = request.headers.get("origin");
      if (origin !== null && rules.allowedOrigins.has(origin) && !response.headers.has("access-control-allow-origin")) {
        addCorsHeaders(response.headers, origin);
      }
      if (deps.log.enabled("debug")) {
        const ms = Math.round((performance.now() - startedMs) * 100) / 100;
        info.log.debug("request", { method: request.method, path: pathname, status: response.status, ms });
      }
      return response;
    },
  };
}

interface Shell {
  readonly log: Log;
  innerStreams(request: Request, requestId: string, log: Log): InnerStreams;
}

/** Makes a request's log and the streams that it may carry only when they are asked for, which hardly any request does. */
class ShellInfo implements RequestInfo {
  readonly requestId: string;
  readonly #request: Request;
  readonly #shell: Shell;
  #log: Log | undefined;

  constructor(requestId: string, request: Request, shell: Shell) {
    this.requestId = requestId;
    this.#request = request;
    this.#shell = shell;
  }

  get log(): Log {
    this.#log ??= this.#shell.log.child({ requestId: this.requestId });
    return this.#log;
  }

  get inner(): InnerStreams {
    return this.#shell.innerStreams(this.#request, this.requestId, this.log);
  }
}

/** Elysia only routes. Everything around it is ours, so that one order of checks holds for every path. */
function createRouter(deps: AppDeps, infoByRequest: WeakMap<Request, RequestInfo>) {
  const unmatched = new WeakSet<Request>();
  const app = new Elysia({ normalize: false, strictPath: true, handler: { standardHostname: false } });
  app.onError(async ({ code, error, request }) => {
    if (code === "NOT_FOUND") {
      unmatched.add(request);
      return new Response(null, { status: 404 });
    }
    return errorResponse(error, infoByRequest.get(request)?.log ?? deps.log);
  });
  const dispatchDeps = { host: deps.host, server: deps.server, checkResponses: deps.checkResponses ?? false };
  for (const route of deps.routes) {
    const dispatch = createDispatch(route, dispatchDeps);
    app.route(
      route.method,
      route.path,
      async ({ request, params }) =>
        dispatch(request, params as Record<string, string>, infoByRequest.get(request) as RequestInfo),
      // dispatch reads, bounds and checks the bodies.
      { parse: "none" },
    );
  }
  return {
    async fetch(request: Request): Promise<Response | undefined> {
      const response = await app.fetch(request);
      return unmatched.has(request) ? undefined : response;
    },
  };
}

function isStream(route: Route): boolean {
  return Object.values(route.responses).some((response) => response.frames !== undefined);
}

/** Why a subscription does not name a stream that another one may carry. */
function streamFault(asked: SubscriptionRequest, base: string, streams: PathMatcher): string | undefined {
  const { method, path, body } = asked;
  if (method === "GET" && body !== undefined) return "a GET takes no body";
  const target = path.startsWith("/") ? URL.parse(path, base) : null;
  if (target?.origin !== new URL(base).origin) return "the path begins with /v1/";
  if (streams.find(method, target.pathname)) return undefined;
  const others = streams.methods(target.pathname).filter((other) => other === "GET" || other === "POST");
  return others.length > 0 ? `this stream is a ${others.join(" or ")}` : "no event stream has this path";
}

function jsonBody(body: unknown): { body: string; headers: Record<string, string> } {
  return { body: JSON.stringify(body), headers: { "content-type": JSON_CONTENT_TYPE } };
}

/** Makes request ids. Their random head keeps them unique over restarts, their counter makes them cheap. */
function createRequestIds(): () => string {
  const boot = Math.floor(Math.random() * 36 ** 6).toString(36);
  let count = 0;
  return () => `${boot}-${(++count).toString(36)}`;
}

/** The path of an absolute URL, not decoded. */
function pathOf(url: string): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  if (from === -1) return "/";
  for (let end = from; end < url.length; end++) {
    const code = url.charCodeAt(end);
    if (code === 0x3f || code === 0x23) return url.slice(from, end);
  }
  return url.slice(from);
}
