/** One guard before routing: Host, Origin, Sec-Fetch-Site and content type, on every path of the OpenAPI document. */
import { describe, expect } from "bun:test";
import { fillPath, loadDocument, type Operation } from "../support/api/openapi.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Reply, RequestOptions } from "../support/server/client.ts";
import { openSocket } from "../support/server/raw-http.ts";

const shared = useServer();
const EXTRA_PATHS = ["/ui", "/ui/", "/swagger", "/v1/nope", "/nope"];

/** Every documented operation (the shutdown last, so that a hole in the guard is reported, not a dead server). */
async function everyOperation(): Promise<Pick<Operation, "method" | "path">[]> {
  const { operations } = await loadDocument(shared.client);
  const all = [...operations, ...EXTRA_PATHS.map((path) => ({ method: "GET", path }))];
  return all.sort((a, b) => Number(a.path.endsWith("/shutdown")) - Number(b.path.endsWith("/shutdown")));
}

async function refusalsOnEveryPath(
  options: RequestOptions,
  isRefused: (reply: Reply) => boolean,
  only: (operation: Pick<Operation, "method" | "path">) => boolean = () => true,
): Promise<string[]> {
  const holes: string[] = [];
  for (const operation of (await everyOperation()).filter(only)) {
    const carries = operation.method === "GET" || operation.method === "DELETE" ? {} : { body: {} };
    const reply = await shared.client.request(operation.method, fillPath(operation.path, {}), {
      ...carries,
      ...options,
    });
    if (!isRefused(reply))
      holes.push(`${operation.method} ${operation.path}: ${reply.status} ${reply.text.slice(0, 100)}`);
  }
  return holes;
}

const refusedWith =
  (code: string) =>
  (reply: Reply): boolean =>
    reply.status === 403 && reply.text.includes(`"${code}"`);

describe("Host", () => {
  for (const host of [
    "evil.example",
    "evil.example:7001",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.0.2.7",
  ]) {
    rule(`[API-9] Host: ${host} is 403 request.forbidden_host on every path`, async () => {
      expect(await refusalsOnEveryPath({ headers: { Host: host } }, refusedWith("request.forbidden_host"))).toEqual([]);
    });
  }

  rule("[API-9] a loopback Host with a port that is not ours is refused", async () => {
    const other = shared.server.port === 65535 ? 1024 : shared.server.port + 1;
    for (const name of ["127.0.0.1", "localhost", "[::1]"]) {
      const reply = await shared.client.request("GET", "/v1/health", { headers: { Host: `${name}:${other}` } });
      expect([name, reply.status]).toEqual([name, 403]);
    }
  });

  rule("[API-9] loopback names with our port are served", async () => {
    for (const name of ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.9.9.9"]) {
      const reply = await shared.client.request("GET", "/v1/health", {
        headers: { Host: `${name}:${shared.server.port}` },
      });
      expect([name, reply.status]).toEqual([name, 200]);
    }
  });

  rule("[API-9] no Host, an empty Host and several Hosts are refused without a 5xx", async () => {
    for (const head of ["", "Host:\r\n", `Host: evil.example\r\nHost: ${shared.server.address}\r\n`]) {
      await using socket = await openSocket(shared.server.port);
      socket.write(`GET /v1/spaces HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
      const text = await socket.closed();
      expect(text).toMatch(/^(HTTP\/1\.1 4\d\d|$)/);
    }
  });

  rule("[API-9] an absolute request target does not smuggle another host in", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(`GET http://evil.example/v1/spaces HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`);
    expect(await socket.closed()).not.toMatch(/^HTTP\/1\.1 200/);
  });

  rule("[API-9] a refusal names the setting or address that would be allowed", async () => {
    const error = await shared.client.request("GET", "/v1/health", { headers: { Origin: "http://app.example" } });
    expect(error.text).toContain("http.allowedOrigins");
  });
});

describe("Origin", () => {
  for (const origin of [
    "http://evil.example",
    "https://evil.example",
    "null",
    "http://127.0.0.1:1",
    "file://",
    "tauri://evil",
    // A name that any network may answer for: who means it allows it by name.
    "http://tauri.localhost",
  ]) {
    rule(`[API-9] Origin: ${origin} is 403 request.forbidden_origin on every path`, async () => {
      expect(
        await refusalsOnEveryPath({ headers: { Origin: origin } }, refusedWith("request.forbidden_origin")),
      ).toEqual([]);
    });
  }

  rule("[API-9] our own origin and the app's are served, never with a star", async () => {
    for (const origin of [shared.server.base, "tauri://localhost"]) {
      const reply = await shared.client.request("GET", "/v1/health", { headers: { Origin: origin } });
      expect([origin, reply.status]).toEqual([origin, 200]);
      const allowed = reply.headers.get("access-control-allow-origin");
      expect(allowed === null ? origin === shared.server.base : allowed === origin).toBe(true);
    }
  });

  rule("[API-9] a preflight from an allowed origin allows Content-Type, Accept and Range", async () => {
    const reply = await shared.client.request("OPTIONS", "/v1/spaces", {
      headers: {
        Origin: "tauri://localhost",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
      },
    });
    expect(reply.status).toBeWithin(200, 300);
    expect(reply.headers.get("access-control-allow-origin")).toBe("tauri://localhost");
    const headers = (reply.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/\s*,\s*/);
    expect(headers).toEqual(expect.arrayContaining(["content-type", "accept", "range"]));
    expect(reply.headers.get("access-control-allow-methods")).toContain("POST");
  });

  rule("[API-9] a preflight from a foreign origin is refused and allows nothing", async () => {
    for (const origin of ["http://evil.example", "null"]) {
      const reply = await shared.client.request("OPTIONS", "/v1/spaces", {
        headers: { Origin: origin, "Access-Control-Request-Method": "POST" },
      });
      expect(reply.status).toBe(403);
      expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  rule("[API-9] an error to an allowed origin can be read by it", async () => {
    const reply = await shared.client.request("GET", "/v1/spaces/unknown", {
      headers: { Origin: "tauri://localhost" },
    });
    expect(reply.status).toBe(404);
    expect(reply.headers.get("access-control-allow-origin")).toBe("tauri://localhost");
  });
});

describe("Sec-Fetch-Site", () => {
  rule("[API-9] cross-site is refused on every path", async () => {
    expect(
      await refusalsOnEveryPath({ headers: { "Sec-Fetch-Site": "cross-site" } }, (reply) => reply.status === 403),
    ).toEqual([]);
  });

  rule("[API-9] cross-site is served when its Origin is allowed", async () => {
    const reply = await shared.client.request("GET", "/v1/health", {
      headers: { "Sec-Fetch-Site": "cross-site", Origin: "tauri://localhost" },
    });
    expect(reply.status).toBe(200);
  });

  rule("[API-9] same-origin and none are served", async () => {
    for (const site of ["same-origin", "none"]) {
      const reply = await shared.client.request("GET", "/v1/health", { headers: { "Sec-Fetch-Site": site } });
      expect(reply.status).toBe(200);
    }
  });
});

describe("content type", () => {
  const isRawFileRoute = (path: string): boolean => /\/objects\/\{[^}]+\}\/files$/.test(path);
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
  ]) {
    rule(`[API-9] a body of ${type} is 415 on every path that takes a body`, async () => {
      expect(
        await refusalsOnEveryPath(
          { raw: "a=b", headers: { "Content-Type": type } },
          (reply) => reply.status === 415 && reply.text.includes('"request.unsupported_media_type"'),
          ({ method, path }) => ["POST", "PUT", "PATCH"].includes(method) && !isRawFileRoute(path),
        ),
      ).toEqual([]);
    });
  }

  rule("[API-9] a body without any content type is 415", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
    );
    expect(await socket.closed()).toStartWith("HTTP/1.1 415");
  });

  rule("[API-9] application/json with a charset, in any case, is taken", async () => {
    for (const type of ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"]) {
      const reply = await shared.client.request("POST", "/v1/spaces/query", {
        body: {},
        headers: { "Content-Type": type },
      });
      expect([type, reply.status]).toEqual([type, 200]);
    }
  });

  rule("[API-9] an empty body needs no content type", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(
      `POST /v1/spaces/query HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    );
    expect(await socket.closed()).toStartWith("HTTP/1.1 200");
  });

  rule("[API-17] JSON answers say application/json; charset=utf-8", async () => {
    for (const path of ["/v1/health", "/v1/spaces", "/v1/spaces/unknown"]) {
      const reply = await shared.client.request("GET", path);
      expect(reply.headers.get("content-type")!.replaceAll(" ", "").toLowerCase()).toBe(
        "application/json;charset=utf-8",
      );
    }
  });
});

rule("[API-9] nothing was written by any refused request", async () => {
  expect(await shared.client.get<unknown[]>("/v1/spaces?status=all")).toEqual([]);
  await shared.client.get("/v1/health");
});

rule("[API-9] http.allowedOrigins adds an origin", async () => {
  const { startServer } = await import("../support/server/server.ts");
  await using server = await startServer({
    account: false,
    config: "http:\n  allowedOrigins: [http://app.example]\n",
  });
  const reply = await server.client.request("GET", "/v1/health", { headers: { Origin: "http://app.example" } });
  expect(reply.status).toBe(200);
  expect(reply.headers.get("access-control-allow-origin")).toBe("http://app.example");
  expect(
    (await server.client.request("GET", "/v1/health", { headers: { Origin: "http://evil.example" } })).status,
  ).toBe(403);
});
