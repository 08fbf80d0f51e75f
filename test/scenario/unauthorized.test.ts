/** The unauthorized server: what it answers before an account is there (section 5, rule 5). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";

const shared = useServer({ account: false });
const OPEN_PATHS = new Set(["/v1/health", "/v1/shutdown", "/v1/openapi.json", "/v1/auth"]);

const REFUSED: [string, string, unknown?][] = [
  ["GET", "/v1/account"],
  ["PUT", "/v1/account/metadata", { name: "x" }],
  ["GET", "/v1/spaces"],
  ["POST", "/v1/spaces", { name: "x" }],
  ["POST", "/v1/spaces/query", {}],
  ["POST", "/v1/spaces/query/subscribe", {}],
  ["GET", "/v1/spaces/derived"],
  ["POST", "/v1/spaces/derived/agent"],
  ["GET", "/v1/spaces/some-space"],
  ["DELETE", "/v1/spaces/some-space"],
  ["GET", "/v1/datasets"],
  ["POST", "/v1/spaces/some-space/objects", {}],
  ["POST", "/v1/spaces/some-space/objects/query", {}],
  ["POST", "/v1/spaces/some-space/query", { objectId: "a", dataset: "b" }],
  ["POST", "/v1/spaces/some-space/modify", {}],
  ["POST", "/v1/spaces/some-space/upsert", {}],
  ["GET", "/v1/spaces/some-space/types"],
  ["GET", "/v1/spaces/some-space/properties/some-object"],
];

describe("unauthorized", () => {
  runScenarios(
    () => ({ client: shared.client, vars: {} }),
    [
      ...REFUSED.map(
        ([method, path, body]): Scenario => ({
          title: `[ACC-5] ${method} ${path} is 401 auth.required`,
          method,
          path,
          ...(body === undefined ? {} : { body }),
          status: 401,
          code: "auth.required",
        }),
      ),
      {
        title: "[ACC-5] health answers",
        method: "GET",
        path: "/v1/health",
        status: 200,
        match: { status: "ok", account: "", bootstrapping: false },
      },
      {
        title: "[ACC-5] [ACC-7] GET /v1/auth answers {authorized: false, accounts}",
        method: "GET",
        path: "/v1/auth",
        status: 200,
        match: { authorized: false, accounts: [] },
      },
      {
        title: "[ACC-5] the OpenAPI document is served",
        method: "GET",
        path: "/v1/openapi.json",
        status: 200,
        mustContain: ['"openapi"'],
      },
      {
        title: "[API-2] an unmatched /v1 path is 404 even unauthorized",
        method: "GET",
        path: "/v1/no/such/route",
        status: 404,
        code: "request.not_found",
      },
      {
        title: "[API-2] an unmatched path below a known one is 404 even unauthorized",
        method: "POST",
        path: "/v1/spaces/x/nope",
        body: {},
        status: 404,
        code: "request.not_found",
      },
      {
        title: "[API-2] a path outside /v1 is 404 with the envelope",
        method: "GET",
        path: "/v2/health",
        status: 404,
        code: "request.not_found",
      },
      {
        title: "[API-2] the version segment is part of every path",
        method: "GET",
        path: "/health",
        status: 404,
        code: "request.not_found",
      },
    ],
  );

  rule("[ACC-5] every documented route but the open four is 401", async () => {
    const document = await shared.client.get<{ paths: Record<string, JsonObject> }>("/v1/openapi.json");
    const wrong: string[] = [];
    for (const [path, item] of Object.entries(document.paths)) {
      if (OPEN_PATHS.has(path)) continue;
      for (const method of Object.keys(item)) {
        if (!["get", "post", "put", "patch", "delete"].includes(method)) continue;
        const reply = await shared.client.request(method.toUpperCase(), path.replace(/\{[^}]+\}/g, "x"), {
          ...(method === "get" || method === "delete" ? {} : { body: {} }),
        });
        if (reply.status !== 401 || !reply.text.includes('"auth.required"')) {
          wrong.push(`${method} ${path}: ${reply.status} ${reply.text.slice(0, 120)}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(Object.keys(document.paths).length).toBeGreaterThan(OPEN_PATHS.size);
  });
});
