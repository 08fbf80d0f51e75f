import { toOpenAPIPath } from "@elysiajs/swagger/utils";
import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { PRODUCT_VERSION } from "../../base/version.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { named, strict } from "../../protocol/schema.ts";
import { ClosedFrame } from "../../protocol/sse-frames.ts";
import type { ResponseSpec, Route } from "../route.ts";
import { anyErrorBody, createErrorWriter, type ErrorWriter } from "./openapi-errors.ts";
import { createSchemaWriter, type SchemaWriter } from "./openapi-schema.ts";

const INTRODUCTION = [
  "The local workspace service: spaces, objects, typed records, documents, chat, history, members and events of one account, over JSON and event streams.",
  "Every request runs as the one account the server has open; there is no authentication on the socket, which only listens on loopback.",
  "A body whose schema says `additionalProperties: false` is strict: unknown top-level keys answer `request.unknown_field`, and an absent body counts as `{}`.",
  "Errors carry `{error: {code, message, details?}}`; `code` is what programs should look at. Every answer has an `X-Request-Id`; the log names those of 5xx answers at its default level and those of 4xx answers at `debug` (`svc run --log-level debug`).",
].join("\n\n");

/** The meaning of path parameters, wherever they occur. */
const PARAMETERS: Readonly<Record<string, string>> = {
  spaceId: "Id of the space",
  objectId: "Id of the object",
  typeId: "Id or key of the type",
  propId: "Id of the property",
  defId: "Id of the dataset definition",
  fieldId: "Id of the field definition",
  identity: "Account id",
  recordId: "Id of the record",
  fileId: "Id of the file",
  peerId: "Peer id of the device",
  blockId: "Id of the block",
  msgId: "Id of the message",
  emoji: "The emoji, URL-encoded",
  bundleId: "Id of the bundle, URL-encoded",
  version: "A change id",
  dataset: "Name of the dataset",
  name: "The name",
  id: "The id",
};

/** The OpenAPI 3.1 description of the routes: what `GET /v1/openapi.json` serves. */
export function buildOpenApi(routes: readonly Route[]): JsonObject {
  const schemas = createSchemaWriter();
  const errors = createErrorWriter();
  const frame = innerFrame(routes);
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    if (route.hidden) continue;
    const path = toOpenAPIPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, { schemas, errors, frame }) };
  }
  const tags = [...new Set(routes.filter((route) => !route.hidden).map((route) => route.tag))];
  return {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version: PRODUCT_VERSION,
      summary: "A local-first workspace server",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "This server" }],
    security: [],
    tags: tags.map((name) => ({ name })),
    paths,
    components: {
      schemas: { ErrorBody: anyErrorBody(), ...schemas.components },
      responses: { ...errors.components },
      headers: {
        RequestId: { description: "Id of this request, as in the log", required: true, schema: { type: "string" } },
      },
    },
  };
}

interface Parts {
  readonly schemas: SchemaWriter;
  readonly errors: ErrorWriter;
  /** A `frame` event of a stream that carries others. */
  readonly frame: TSchema;
}

function operation(route: Route, parts: Parts): JsonObject {
  const { schemas, errors } = parts;
  const parameters = [...pathParameters(route), ...queryParameters(route, schemas)];
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBody(route, schemas),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.responses).map(([status, spec]) => [status, response(spec, route.id, parts)]),
      ),
      ...errors.write(route),
    },
  };
}

function pathParameters(route: Route): JsonObject[] {
  return [...route.path.matchAll(/:([A-Za-z]+)/g)].map((match) => {
    const name = match[1] as string;
    const description = (route.params as Record<string, string> | undefined)?.[name] ?? PARAMETERS[name];
    return { name, in: "path", required: true, ...(description ? { description } : {}), schema: { type: "string" } };
  });
}

function queryParameters({ query }: Route, schemas: SchemaWriter): JsonObject[] {
  if (!query) return [];
  const { properties, required = [] } = query as TObject;
  return Object.entries(properties).map(([name, schema]: [string, TSchema]) => {
    const { description, ...rest } = schemas.write(schema);
    return {
      name,
      in: "query",
      required: required.includes(name),
      ...(description ? { description } : {}),
      schema: rest,
    };
  });
}

function requestBody({ body, rawBody, example }: Route, schemas: SchemaWriter): JsonObject {
  if (rawBody) {
    return {
      requestBody: { required: true, description: "The bytes", content: { "application/octet-stream": {}, "*/*": {} } },
    };
  }
  if (!body) return {};
  const content = { schema: schemas.write(body), ...(example === undefined ? {} : { example: toJson(example) }) };
  // A strict body may be absent, which means `{}`, unless `{}` could never be valid.
  const required = body["additionalProperties"] !== false || ((body as TObject).required ?? []).length > 0;
  return { requestBody: { required, content: { "application/json": content } } };
}

function response(spec: ResponseSpec, routeId: string, parts: Parts): JsonObject {
  const headers = Object.fromEntries(
    Object.entries(spec.headers ?? {}).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } },
    ]),
  );
  return {
    description: spec.description,
    headers: { "X-Request-Id": { $ref: "#/components/headers/RequestId" }, ...headers },
    ...responseContent(spec, routeId, parts),
  };
}

function responseContent(spec: ResponseSpec, routeId: string, { schemas, frame }: Parts): JsonObject {
  const { schema, frames, carries, bytes, example } = spec;
  const exampleOf = example === undefined ? {} : { example: toJson(example) };
  if (schema) return { content: { "application/json": { schema: schemas.write(schema), ...exampleOf } } };
  if (bytes) return { content: { [bytes]: {} } };
  if (!frames) return {};
  const all = carries ? { ...frames, frame } : frames;
  const events = eventsSchema(all, spec.framesName ?? `${routeId.charAt(0).toUpperCase()}${routeId.slice(1)}Event`);
  return { content: { "text/event-stream": { schema: schemas.write(events), ...exampleOf } } };
}

/**
 * The events of a stream as one schema, a union by `event`, because OpenAPI 3.1 cannot describe what a stream carries
 * otherwise: `event` is the field of that name, `data` the JSON in the field of that name.
 */
function eventsSchema(frames: Readonly<Record<string, TSchema>>, name: string): TSchema {
  const payloads = { ready: strict({}), ...frames, closed: ClosedFrame };
  const events = Object.entries(payloads).map(([event, data]) => strict({ event: Type.Literal(event), data }));
  const description =
    "One event of the stream: its name and its parsed data. `ready` comes first, comments while idle, `closed` last";
  return named(name, Type.Union(events, { description }));
}

/** What a stream that carries others sends for them: any event of any of them, with the id of its subscription. */
function innerFrame(routes: readonly Route[]): TSchema {
  const payloadsByEvent = new Map<string, Set<TSchema>>([["ready", new Set([strict({})])]]);
  for (const { frames, carries } of routes.flatMap((route) => Object.values(route.responses))) {
    if (!frames || carries) continue;
    for (const [event, data] of Object.entries(frames)) {
      payloadsByEvent.set(event, (payloadsByEvent.get(event) ?? new Set()).add(data));
    }
  }
  payloadsByEvent.set("closed", new Set([ClosedFrame])).set("error", new Set([Type.Ref("ErrorBody")]));
  const id = Type.String({ description: "Of the subscription" });
  const frames = [...payloadsByEvent].map(([event, payloads]) =>
    strict({ id, event: Type.Literal(event), data: Type.Union([...payloads]) }),
  );
  const description =
    "A frame of one subscription, as the endpoint at its path sends it: `ready` first, `closed` last; or `error`, with which it ends without having begun";
  return named("SubscriptionFrame", Type.Union(frames, { description }));
}

function toJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}
