import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import type { AccountId, PeerId } from "../base/ids.ts";
import { silentLog } from "../base/log.ts";
import type { AccountHost } from "../engine/account/account-host.ts";
import type { Engine } from "../engine/boot/engine.ts";
import { svcError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { oneOf, strict } from "../protocol/schema.ts";
import { createApp } from "./app.ts";
import { reply } from "./reply/reply.ts";
import { openRoute, type Route, route } from "./route.ts";
import { ROUTES } from "./routes/route-table.ts";
import { createStreamRegistry } from "./stream/stream-registry.ts";

const engine = {
  accountId: "A1" as AccountId,
  peerId: "P1" as PeerId,
  bootstrapping: () => false,
  deviceCopied: () => undefined,
  unfinishedSpaces: () => [],
  close: async () => {},
} as unknown as Engine;

const testRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/:objectId/things",
    id: "postSpacesSpaceIdObjectsObjectIdThings",
    tag: "Test",
    summary: "Echo",
    body: strict({
      name: Type.String({ minLength: 1 }),
      count: Type.Optional(Type.Integer()),
      mode: Type.Optional(oneOf(["a", "b"])),
      scope: Type.Optional(oneOf(["x", "y"], { fault: "request.schema" })),
      records: Type.Optional(
        Type.Array(Type.Object({ id: Type.String(), ops: Type.Array(Type.Object({ type: Type.String() })) })),
      ),
      free: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    }),
    responses: {
      201: {
        description: "Echo",
        schema: strict({ space: Type.String(), object: Type.String(), name: Type.String() }),
      },
    },
    errors: ["space.exists"],
    handler: async ({ params, body }) => {
      if (body.name === "taken") throw svcError("space.exists", { spaceId: params.spaceId });
      if (body.name === "boom") throw new TypeError("secret /path");
      return reply(201, { space: params.spaceId, object: params.objectId, name: body.name });
    },
  }),
  route({
    method: "GET",
    path: "/v1/things",
    id: "getThings",
    tag: "Test",
    summary: "List",
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 0 })),
      tag: Type.Optional(Type.Array(Type.String())),
      must: Type.String(),
    }),
    responses: { 200: { description: "Query", schema: Type.Unknown() } },
    handler: async ({ query }) => query,
  }),
  openRoute({
    method: "POST",
    path: "/v1/loose",
    id: "postLoose",
    tag: "Test",
    summary: "Loose",
    body: Type.Object({ objectId: Type.String() }),
    objectIdFields: ["objectId"],
    responses: { 200: { description: "ok", schema: Type.Unknown() } },
    handler: async ({ body }) => body,
  }),
];

function shell(authorized = true) {
  const host: AccountHost = {
    engine: authorized ? engine : undefined,
    listAccounts: async () => [],
    authorize: async () => ({ accountId: "A1" as AccountId, created: true }),
  };
  const app = createApp({
    routes: [...ROUTES, ...testRoutes],
    host,
    server: {
      clock: { nowMs: () => 0 },
      startedAt: new Date(0),
      mobile: false,
      controlAddress: () => undefined,
      streams: createStreamRegistry(),
      stopping: new AbortController().signal,
      requestShutdown: () => {},
      disableIdleTimeout: () => {},
    },
    log: silentLog,
    allowedOrigins: ["tauri://localhost"],
    port: () => 7001,
    checkResponses: true,
  });
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const raw = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    const response = await app.fetch(
      new Request(`http://127.0.0.1:7001${path}`, {
        method,
        headers: {
          host: "127.0.0.1:7001",
          ...(raw === undefined
            ? {}
            : { "content-type": "application/json", "content-length": String(Buffer.byteLength(raw)) }),
          ...headers,
        },
        ...(raw === undefined ? {} : { body: raw }),
      }),
    );
    const text = await response.text();
    const json = text === "" ? undefined : JSON.parse(text);
    return {
      status: response.status,
      json,
      code: json?.error?.code,
      details: json?.error?.details,
      headers: response.headers,
    };
  };
}

const THINGS = "/v1/spaces/s1/objects/o%2F1/things";

test("[SRV-8] health works and names the account", async () => {
  const { status, json } = await shell()("GET", "/v1/health");
  expect(status).toBe(200);
  expect(json).toMatchObject({ status: "ok", account: "A1", bootstrapping: false });
});

test("[API-1] [API-6] faults of a body, in their order", async () => {
  const call = shell();
  const cases: [body: unknown, code: string, details: unknown][] = [
    ["{", "request.bad_json", undefined],
    ["[]", "request.schema", { path: "", expected: "an object" }],
    [{ name: 5, bogus: 1 }, "request.schema", { path: "name", expected: "a string" }],
    [{ name: "n", count: 1.5 }, "request.schema", { path: "count", expected: "an integer" }],
    [{ name: "n", scope: "z" }, "request.schema", { path: "scope", expected: "one of x, y" }],
    [
      {
        name: "n",
        records: [
          { id: "a", ops: [] },
          { id: "b", ops: [{}] },
        ],
      },
      "request.schema",
      { path: "records[1].ops[0].type", expected: "a string" },
    ],
    [
      { bogus: 1, other: 2 },
      "request.unknown_field",
      { fields: ["bogus", "other"], accepted: ["name", "count", "mode", "scope", "records", "free"] },
    ],
    [{ count: 1 }, "request.missing_field", { field: "name" }],
    ["", "request.missing_field", { field: "name" }],
    [{ name: "" }, "request.invalid_field", { field: "name", reason: "must not be empty" }],
    [{ name: "n", mode: "c" }, "request.invalid_field", { field: "mode", reason: "expected one of a, b" }],
    ['{"name":"n","__proto__":{}}', "request.unknown_field", undefined],
    [
      '{"name":"n","free":{"a":{"\\u005f_proto__":1}}}',
      "request.schema",
      { path: "free.a.__proto__", expected: "a key other than __proto__" },
    ],
    [
      `{"name":"n","free":{"a":${"[".repeat(130)}${"]".repeat(130)}}}`,
      "request.schema",
      { path: "", expected: "at most 128 levels of nesting" },
    ],
    ['{"name":"taken"}', "space.exists", { spaceId: "s1" }],
    ['{"name":"boom"}', "internal", undefined],
  ];
  for (const [body, code, details] of cases) {
    const got = await call("POST", THINGS, body);
    expect({ body, code: got.code }).toEqual({ body, code });
    if (details !== undefined) expect(got.details).toEqual(details);
    expect(JSON.stringify(got.json)).not.toContain("secret");
  }
  const done = await call("POST", THINGS, { name: "n" });
  expect(done.status).toBe(201);
  expect(done.json).toEqual({ space: "s1", object: "o/1", name: "n" });
  expect(done.headers.get("x-request-id")).toBeTruthy();
});

test("[API-1] depth counts brackets outside strings only", async () => {
  const call = shell();
  const nested = (depth: number) => `{"name":"n","free":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
  const inString = JSON.stringify({ name: `${'["\\'.repeat(100)}${"{".repeat(100)}`, free: { 'k"[': "\\" } });
  expect((await call("POST", THINGS, nested(LIMITS.bodyDepth - 2))).status).toBe(201);
  expect((await call("POST", THINGS, nested(LIMITS.bodyDepth - 1))).code).toBe("request.schema");
  expect((await call("POST", THINGS, nested(300_000))).code).toBe("request.schema");
  expect((await call("POST", THINGS, inString)).status).toBe(201);
  expect((await call("POST", THINGS, `{"name":"${"[".repeat(200)}`)).code).toBe("request.bad_json");
});

test("[API-4] serialized nils are no object ids", async () => {
  const call = shell();
  expect((await call("POST", "/v1/spaces/s/objects/NULL/things", { name: "n" })).details).toEqual({
    field: "objectId",
    got: "NULL",
  });
  expect((await call("POST", "/v1/loose", { objectId: "[object Object]" })).code).toBe("object.id_required");
  expect((await call("POST", "/v1/loose", "")).code).toBe("request.bad_json");
  expect((await call("POST", "/v1/loose", { objectId: "x", extra: 1 })).status).toBe(200);
});

test("[API-5] query strings are converted and refused", async () => {
  const call = shell();
  expect((await call("GET", "/v1/things?limit=3&tag=a&tag=b&must=1&other=x")).json).toEqual({
    limit: 3,
    tag: ["a", "b"],
    must: "1",
  });
  expect((await call("GET", "/v1/things")).details).toEqual({ field: "must" });
  expect((await call("GET", "/v1/things?must=1&limit=x")).details).toMatchObject({
    field: "limit",
    reason: "expected an integer",
  });
  expect((await call("GET", "/v1/things?must=1&limit=-1")).code).toBe("request.invalid_field");
});

test("[ACC-5] unauthorized: 401 on known routes, 404 on unknown ones, open routes work", async () => {
  const call = shell(false);
  expect((await call("GET", "/v1/things?must=1")).code).toBe("auth.required");
  expect((await call("GET", "/v1/nothing")).code).toBe("request.not_found");
  expect((await call("GET", "/v1/auth")).json).toEqual({ authorized: false, accounts: [] });
  expect((await call("POST", "/v1/shutdown")).status).toBe(204);
});

test("[API-2] wrong methods say which are right; HEAD and OPTIONS answer", async () => {
  const call = shell();
  const wrong = await call("PUT", "/v1/health");
  expect([wrong.status, wrong.code, wrong.headers.get("allow")]).toEqual([
    405,
    "request.method_not_allowed",
    "GET, HEAD, OPTIONS",
  ]);
  expect((await call("HEAD", "/v1/health")).status).toBe(200);
  expect((await call("OPTIONS", "/v1/auth")).headers.get("allow")).toBe("GET, HEAD, OPTIONS, POST");
  expect((await call("GET", "/v1/spaces/%ZZ/objects/x/things")).status).toBe(405);
  expect((await call("POST", "/v1/spaces/%ZZ/objects/x/things", { name: "n" })).code).toBe("request.invalid_field");
});

test("[API-9] the guard: Host, Origin, Sec-Fetch-Site, media type", async () => {
  const call = shell();
  const cases: [headers: Record<string, string>, code: string | undefined][] = [
    [{ host: "evil.example" }, "request.forbidden_host"],
    [{ host: "127.0.0.1:7002" }, "request.forbidden_host"],
    [{ host: "localhost" }, "request.forbidden_host"],
    [{ host: "localhost:7001" }, undefined],
    [{ host: "[::1]:7001" }, undefined],
    [{ origin: "null" }, "request.forbidden_origin"],
    [{ origin: "http://evil.example" }, "request.forbidden_origin"],
    [{ origin: "http://127.0.0.1:7001" }, undefined],
    [{ origin: "tauri://localhost", "sec-fetch-site": "cross-site" }, undefined],
    [{ "sec-fetch-site": "cross-site" }, "request.forbidden_origin"],
    [{ "sec-fetch-site": "same-origin" }, undefined],
  ];
  for (const [headers, code] of cases) {
    for (const path of ["/v1/health", "/v1/nothing"]) {
      const got = await call("GET", path, undefined, headers);
      expect({ headers, code: got.code }).toEqual({
        headers,
        code: code ?? (path === "/v1/health" ? undefined : "request.not_found"),
      });
    }
  }
  expect((await call("POST", "/v1/loose", "{}", { "content-type": "text/plain" })).code).toBe(
    "request.unsupported_media_type",
  );
  const allowed = await call("GET", "/v1/health", undefined, { origin: "tauri://localhost" });
  expect(allowed.headers.get("access-control-allow-origin")).toBe("tauri://localhost");
  const preflight = await call("OPTIONS", "/v1/auth", undefined, {
    origin: "tauri://localhost",
    "access-control-request-method": "POST",
  });
  expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([
    204,
    "Content-Type, Accept, Range",
  ]);
});
