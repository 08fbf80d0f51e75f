/** HEAD, OPTIONS and methods that a path does not have. */
import { describe, expect } from "bun:test";
import { fillPath, loadDocument } from "../support/api/openapi.ts";
import { rule, useServer } from "../support/rule.ts";
import { envelopeOf } from "../support/server/client.ts";
import { runScenarios } from "../support/server/scenario.ts";

const shared = useServer();
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const listOf = (header: string | null): string[] =>
  (header ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

describe("methods", () => {
  rule("[API-2] OPTIONS of every documented path names the methods that it has", async () => {
    const { operations } = await loadDocument(shared.client);
    for (const { path, method } of operations) {
      const reply = await shared.client.request("OPTIONS", fillPath(path, {}, "x"));
      expect([path, reply.status, reply.text]).toEqual([path, 204, ""]);
      expect([path, listOf(reply.headers.get("allow")).includes(method)]).toEqual([path, true]);
    }
  });

  rule("[API-2] every method that a documented path lacks is 405 with Allow naming those it has", async () => {
    const { operations } = await loadDocument(shared.client);
    const wrong: string[] = [];
    for (const path of new Set(operations.map((operation) => operation.path))) {
      const url = fillPath(path, {}, "x");
      // A literal path such as /v1/spaces/query is also a case of /v1/spaces/{spaceId}, whose methods it then has too.
      const has = operations.filter((operation) => matches(operation.path, url)).map((operation) => operation.method);
      for (const method of METHODS.filter((name) => !has.includes(name))) {
        const reply = await shared.client.request(method, url);
        const allow = listOf(reply.headers.get("allow"));
        const missing = has.filter((name) => !allow.includes(name));
        const surplus = allow.filter((name) => !has.includes(name) && name !== "HEAD" && name !== "OPTIONS");
        if (reply.status !== 405 || missing.length > 0 || surplus.length > 0) {
          wrong.push(`${method} ${path}: ${reply.status}, Allow: ${allow.join(", ")}`);
        } else if (envelopeOf(reply, url).code !== "request.method_not_allowed") {
          wrong.push(`${method} ${path}: ${reply.text}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  runScenarios(
    () => ({ client: shared.client, vars: {} }),
    [
      {
        title: "[API-2] HEAD of a GET route: its status, no body",
        method: "HEAD",
        path: "/v1/health",
        status: 200,
        after: (reply) => {
          expect(reply.text).toBe("");
          expect(reply.headers.get("content-type")).toStartWith("application/json");
        },
      },
      {
        title: "[API-2] HEAD of what is not there: 404, no body",
        method: "HEAD",
        path: "/v1/spaces/unknown",
        status: 404,
        after: (reply) => expect(reply.text).toBe(""),
      },
      {
        title: "[API-2] HEAD of a route without GET is 405",
        method: "HEAD",
        path: "/v1/shutdown",
        status: 405,
      },
      {
        title: "[API-2] OPTIONS without an Origin names the methods",
        method: "OPTIONS",
        path: "/v1/spaces",
        status: 204,
        after: (reply) => {
          expect(listOf(reply.headers.get("allow"))).toEqual(
            expect.arrayContaining(["GET", "POST", "HEAD", "OPTIONS"]),
          );
          expect(reply.text).toBe("");
        },
      },
      {
        title: "[API-2] an unknown path is 404 whatever the method",
        method: "DELETE",
        path: "/v1/nope",
        status: 404,
        code: "request.not_found",
      },
      {
        title: "[API-2] an unknown method is refused without a 5xx",
        method: "PROPFIND",
        path: "/v1/spaces",
        status: 405,
        code: "request.method_not_allowed",
      },
    ],
  );

  rule("[API-2] HEAD of an event stream opens no stream", async () => {
    const reply = await shared.client.request("HEAD", "/v1/identities/subscribe", { timeoutMs: 3_000 });
    expect([reply.status, reply.headers.get("content-type"), reply.text]).toEqual([200, "text/event-stream", ""]);
    const posted = await shared.client.request("HEAD", "/v1/spaces/query/subscribe", { timeoutMs: 3_000 });
    expect(posted.status).toBe(405);
  });

  rule("[API-2] a trailing slash, doubled slashes and dots never reach another resource", async () => {
    for (const path of ["/v1//spaces", "/v1/spaces//", "/v1/./../v1/nope", "/v1/spaces/%2F"]) {
      const reply = await shared.client.request("GET", path);
      expect([path, reply.status]).toEqual([path, 404]);
    }
  });
});

/** Whether a documented path, with its placeholders open, takes this URL. */
function matches(path: string, url: string): boolean {
  return new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`).test(url);
}
