/**
 * How to add routes
 * =================
 * 1. Write `src/http/routes/<resource>.ts`. It exports one list: `export const widgetRoutes: Route[] = [ route({...}), … ]`.
 * 2. Add the list to `src/http/routes/route-table.ts` (one import, one line). That registers the routes on Elysia AND puts them
 *    into `/v1/openapi.json`; there is no other place to declare anything.
 *
 *     route({
 *       method: "POST",
 *       path: "/v1/spaces/:spaceId/widgets/:widgetId",     // `:name` segments arrive decoded in ctx.params, typed
 *       id: "turnWidget",                                  // a method name; test/vectors/operation-ids.json holds it
 *       tag: "Widgets",
 *       summary: "Turn a widget",
 *       body: strict({ angle: Type.Number({ maximum: 360 }), note: Type.Optional(Type.String()) }),
 *       query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 0 })), tag: Type.Optional(Type.Array(Type.String())) }),
 *       responses: { 200: { description: "The turned widget", schema: WidgetSchema } },
 *       errors: ["identity.not_found", ["type.not_found", 400]],   // every code of its own that it answers with
 *       example: { angle: 90 },
 *       handler: async (ctx) => ctx.engine.widgets.turn(ctx.params.spaceId, ctx.params.widgetId, ctx.body.angle),
 *     })
 *
 * Rules
 * - Handlers are always `async` functions and throw `svcError(code, details?, message?)`; nothing else is ever caught here.
 * - `ctx.engine` is there because an unauthorized server answers 401 before the handler. A route that also works
 *   unauthorized is an `openRoute({...})`: no engine, but `ctx.host` (account host) and `ctx.server`.
 * - Wire schemas (TypeBox, from "@sinclair/typebox") live in `src/protocol/`; `strict({...})` and `oneOf([...])` are in
 *   `src/protocol/schema.ts`. What recurs or is worth a type in a generated client gets `named("Widget", …)`; what the
 *   domain checks with an error of its own, `describedAs(shape, schema)`. A strict body answers `request.unknown_field` for unknown top-level keys and takes an
 *   absent body as `{}`; a `Type.Object` body lets unknown keys through (drop them) and needs a body (`request.bad_json`).
 * - Which 400 is decided for you from the schema, in the order of API-1: not JSON → `request.bad_json`; a wrong JSON
 *   type anywhere, or anything missing or unknown below the top level → `request.schema {path, expected}`; unknown
 *   top-level key → `request.unknown_field`; absent required top-level key → `request.missing_field {field}`; right type
 *   but refused (length, pattern, range, a string outside `oneOf`) → `request.invalid_field {field, reason}`. Give
 *   `oneOf([...], { fault: "request.schema" })` where an unlisted string must answer `request.schema`. Put
 *   `errorMessage: "…"` on a schema to say the reason better.
 * - Query strings: declare a `Type.Object` of (optional) String, Integer, Number, Boolean, `oneOf` or Array of String
 *   (repeatable). Values are converted; faults are `request.missing_field` / `request.invalid_field {field, reason}`.
 *   Unknown query parameters are ignored.
 * - Automatic, do not declare: auth.required, the request.* family, object.id_required for `:objectId` segments and for
 *   body fields named in `objectIdFields`, the space resolution errors for `:spaceId` routes (thrown by the engine),
 *   server.unavailable, internal.
 * - What a handler returns: the value of the first (lowest) 2xx status in `responses`; `reply(202, value)` for another;
 *   `jsonText(text, status?)` for text that is JSON already; nothing for 204; or a whole `Response` (SSE, bytes).
 * - Streams: describe frames with `responses: { 200: { description, frames: { snapshot: Schema, … } } }` and return what
 *   `openStream(ctx, …)` of `src/http/sse.ts` gives. Check everything that can fail before opening it.
 * - Raw bodies (file attach): `rawBody: true`, then read `ctx.request.body` yourself; no size limit, no JSON rule.
 * - With `checkResponses` (on in tests) a reply that does not match its schema and an undeclared error code are failures.
 */
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { ObjectId, SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { AccountHost } from "../engine/account/account-host.ts";
import type { Engine } from "../engine/boot/engine.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { JsonRecords, JsonText, Reply } from "./reply/reply.ts";
import type { ServerHandle } from "./server-handle.ts";
import type { InnerStreams, OuterStream } from "./stream/inner-streams.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One documented answer. Without schema, frames and bytes, its body is empty (204). */
export interface ResponseSpec {
  readonly description: string;
  /** JSON body. */
  readonly schema?: TSchema;
  /** An event stream: payload schema by event name. `ready` and `closed` are added. */
  readonly frames?: Readonly<Record<string, TSchema>>;
  /** Name of the events' schema where several streams share it; otherwise the name comes from the route's id. */
  readonly framesName?: string;
  /** Its stream also has `frame` events, each of which holds an event of another stream of the API. */
  readonly carries?: true;
  /** Raw bytes of this media type. */
  readonly bytes?: string;
  readonly example?: unknown;
  /** Response headers worth documenting: name → meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type Responses = Readonly<Record<number, ResponseSpec>>;
/** An error code, with a status where it differs from the table's. */
type DeclaredError = ErrorCode | readonly [code: ErrorCode, status: number];

type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;
type ParamType<Name extends string> = Name extends "spaceId" ? SpaceId : Name extends "objectId" ? ObjectId : string;
export type ParamsOf<Path extends string> = { readonly [Name in ParamNames<Path>]: ParamType<Name> };

type SchemaValue<S> = S extends { schema: infer T extends TSchema } ? Static<T> : never;
type EmptyValue<S> = S extends { schema: TSchema } ? never : undefined;
type ReplyValue<R extends Responses> = { [Status in keyof R]: SchemaValue<R[Status]> | EmptyValue<R[Status]> }[keyof R];
type Written = JsonText | JsonRecords | Response;
/** What a handler may return: see the head of this file. */
// biome-ignore lint/suspicious/noConfusingVoidType: an async handler without `return` gives void.
export type HandlerResult<R extends Responses> = ReplyValue<R> | Reply<ReplyValue<R>> | Written | void;

/** What every handler gets. */
export interface BaseContext<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly request: Request;
  readonly requestId: string;
  /** Aborted when the client disconnects or the shutdown deadline passes. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly server: ServerHandle;
  /** Where the frames of a stream go that was requested inside another one; `openStream` uses it. */
  readonly outer: OuterStream | undefined;
  /** The streams that a stream of this request may carry. */
  readonly inner: InnerStreams;
}
export interface RouteContext<Params, Query, Body> extends BaseContext<Params, Query, Body> {
  readonly engine: Engine;
}
export interface OpenRouteContext<Params, Query, Body> extends BaseContext<Params, Query, Body> {
  readonly host: AccountHost;
}

interface SpecBase<Path extends string, Q extends TObject, B extends TSchema, R extends Responses> {
  readonly method: Method;
  readonly path: Path;
  /**
   * The operationId, which is the method name in a generated client: a verb and an object. It never changes once
   * released.
   */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** The meaning of path parameters whose names do not say it. */
  readonly params?: Partial<Record<ParamNames<Path>, string>>;
  readonly query?: Q;
  readonly body?: B;
  readonly rawBody?: boolean;
  /** Top-level body keys that hold object ids: a serialized nil there gives `object.id_required`. */
  readonly objectIdFields?: readonly string[];
  readonly responses: R;
  readonly errors?: readonly DeclaredError[];
  /** Example request body. */
  readonly example?: unknown;
  /** Omitted from the OpenAPI document. */
  readonly hidden?: boolean;
}

/** A registered route; its generic parameters are erased once `route()` has checked them. */
export interface Route extends SpecBase<string, TObject, TSchema, Responses> {
  readonly open: boolean;
  /** Called with the context that `route()` or `openRoute()` typed it for. */
  readonly handler: (ctx: never) => Promise<unknown>;
}

/** Declares a route of the booted account. See the head of this file. */
export function route<
  const Path extends string,
  const R extends Responses,
  Q extends TObject = TObject<Record<never, never>>,
  B extends TSchema = TSchema & { static: undefined },
>(
  spec: SpecBase<Path, Q, B, R> & {
    readonly handler: (ctx: RouteContext<ParamsOf<Path>, Static<Q>, Static<B>>) => Promise<HandlerResult<R>>;
  },
): Route {
  return { ...spec, open: false };
}

/** Declares a route that also answers while the server is unauthorized. */
export function openRoute<
  const Path extends string,
  const R extends Responses,
  Q extends TObject = TObject<Record<never, never>>,
  B extends TSchema = TSchema & { static: undefined },
>(
  spec: SpecBase<Path, Q, B, R> & {
    readonly handler: (ctx: OpenRouteContext<ParamsOf<Path>, Static<Q>, Static<B>>) => Promise<HandlerResult<R>>;
  },
): Route {
  return { ...spec, open: true };
}
