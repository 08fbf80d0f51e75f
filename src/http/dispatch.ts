import type { Log } from "../base/log.ts";
import type { AccountHost } from "../engine/account/account-host.ts";
import type { Engine } from "../engine/boot/engine.ts";
import { svcError } from "../protocol/errors.ts";
import { readJsonBody } from "./body-reader.ts";
import { refuseNilId } from "./nil-id.ts";
import { errorResponse } from "./reply/error-response.ts";
import { recordsResponse } from "./reply/records-response.ts";
import { JsonRecords, JsonText, jsonResponse, Reply } from "./reply/reply.ts";
import { createReplyCheck } from "./reply-check.ts";
import type { OpenRouteContext, Route, RouteContext } from "./route.ts";
import { createQueryReader } from "./schema/query-string.ts";
import { createBodyCheck } from "./schema/schema-check.ts";
import type { ServerHandle } from "./server-handle.ts";
import type { InnerStreams, OuterStream } from "./stream/inner-streams.ts";

export interface DispatchDeps {
  readonly host: AccountHost;
  readonly server: ServerHandle;
  /** Checks replies against their schemas and errors against the declared ones; for tests. */
  readonly checkResponses: boolean;
}

/** What the shell knows of a request before its route runs. */
export interface RequestInfo {
  readonly requestId: string;
  readonly log: Log;
  readonly inner: InnerStreams;
  readonly outer?: OuterStream;
}

type Dispatch = (request: Request, params: Record<string, string>, info: RequestInfo) => Promise<Response>;

/** Makes the function that answers a request matched to `route`: authorization, input, handler, reply, errors. */
export function createDispatch(route: Route, deps: DispatchDeps): Dispatch {
  const { host, server } = deps;
  const readQuery = route.query ? createQueryReader(route.query) : undefined;
  const bodyCheck = route.body ? createBodyCheck(route.body) : undefined;
  const replyCheck = deps.checkResponses ? createReplyCheck(route) : undefined;
  const successStatus = firstSuccess(route);
  const idFields = route.objectIdFields ?? [];

  async function readBody(request: Request): Promise<unknown> {
    if (!bodyCheck) return undefined;
    let body = await readJsonBody(request);
    if (body === undefined) {
      if (!bodyCheck.strict) throw svcError("request.bad_json", undefined, "The request needs a JSON body");
      body = {};
    }
    bodyCheck.check(body);
    for (const field of idFields) refuseNilId(field, (body as Record<string, unknown>)[field]);
    return body;
  }

  return async (request, params, info) => {
    try {
      const engine = host.engine;
      if (!route.open && engine === undefined) throw svcError("auth.required");
      checkParams(params);
      const query = readQuery ? readQuery(searchOf(request.url)) : {};
      const body = await readBody(request);
      const result = await route.handler(
        new HandlerContext(params, query, body, request, info, server, host, engine) as never,
      );
      replyCheck?.result(result, successStatus);
      return toResponse(result, successStatus);
    } catch (thrown) {
      return errorResponse(replyCheck ? replyCheck.error(thrown) : thrown, info.log);
    }
  };
}

/** What handlers get. `signal` and what the shell knows are made only when a handler asks for them, which most never do. */
class HandlerContext implements RouteContext<unknown, unknown, unknown>, OpenRouteContext<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly request: Request;
  readonly server: ServerHandle;
  readonly host: AccountHost;
  /** Present unless the route is open: otherwise `createDispatch` has answered 401. */
  readonly engine: Engine;
  readonly #info: RequestInfo;

  constructor(
    params: unknown,
    query: unknown,
    body: unknown,
    request: Request,
    info: RequestInfo,
    server: ServerHandle,
    host: AccountHost,
    engine: Engine | undefined,
  ) {
    this.params = params;
    this.query = query;
    this.body = body;
    this.request = request;
    this.#info = info;
    this.server = server;
    this.host = host;
    this.engine = engine as Engine;
  }

  get requestId(): string {
    return this.#info.requestId;
  }

  get log(): Log {
    return this.#info.log;
  }

  get outer(): OuterStream | undefined {
    return this.#info.outer;
  }

  get inner(): InnerStreams {
    return this.#info.inner;
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }
}

function checkParams(params: Record<string, string | null | undefined>): void {
  for (const name in params) {
    const value = params[name];
    if (value === null || value === undefined) {
      const reason = "the path segment is not valid percent-encoding";
      throw svcError("request.invalid_field", { field: name, reason }, `${name} is refused: ${reason}`);
    }
    if (name === "objectId") refuseNilId(name, value);
  }
}

function toResponse(result: unknown, status: number): Response {
  if (result instanceof Response) return result;
  if (result instanceof JsonText) return jsonResponse(result.status ?? status, result.text);
  if (result instanceof JsonRecords) return recordsResponse(status, result);
  if (result instanceof Reply) return toResponse(result.value, result.status);
  if (result === undefined) return new Response(null, { status });
  return jsonResponse(status, JSON.stringify(result));
}

function firstSuccess(route: Route): number {
  const status = Object.keys(route.responses)
    .map(Number)
    .find((code) => code >= 200 && code < 300);
  if (status === undefined) throw new Error(`${route.method} ${route.path} declares no success response`);
  return status;
}

function searchOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at + 1);
}
