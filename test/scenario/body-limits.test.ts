/** The body limit of 1 MiB, enforced while reading; half-sent and endless bodies; depth. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { envelopeOf, type SpaceInfo } from "../support/server/client.ts";
import { descriptorsOf, untilLetGo } from "../support/server/descriptors.ts";
import { openSocket } from "../support/server/raw-http.ts";

const shared = useServer();
const LIMIT_BYTES = 1024 * 1024;

/** A valid create-space body of exactly this many bytes. */
function bodyOfSize(bytes: number): string {
  const start = '{"name":"sized","description":"';
  return `${start}${"x".repeat(bytes - start.length - 2)}"}`;
}
const paddedBody = (bytes: number): string => `{"name":"padded"${" ".repeat(bytes - 17)}}`;
const spaceCount = async (): Promise<number> => (await shared.client.get<SpaceInfo[]>("/v1/spaces?status=all")).length;

describe("size", () => {
  rule("[API-3] a body of exactly 1 MiB is read", async () => {
    const raw = paddedBody(LIMIT_BYTES);
    expect(raw.length).toBe(LIMIT_BYTES);
    const reply = await shared.client.request("POST", "/v1/spaces", { raw });
    expect(reply.status).toBe(201);
  });

  rule("[API-3] one byte more is 413 request.too_large and nothing is written", async () => {
    const before = await spaceCount();
    for (const raw of [paddedBody(LIMIT_BYTES + 1), bodyOfSize(LIMIT_BYTES + 1), bodyOfSize(8 * LIMIT_BYTES)]) {
      const reply = await shared.client.request("POST", "/v1/spaces", { raw });
      expect([reply.status, envelopeOf(reply, "POST").code]).toEqual([413, "request.too_large"]);
    }
    expect(await spaceCount()).toBe(before);
  });

  rule("[API-3] a Content-Length beyond the limit is refused before the body arrives", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${50 * LIMIT_BYTES}\r\n\r\n{"name":"`,
    );
    expect(await socket.readUntil("request.too_large", 5_000)).toStartWith("HTTP/1.1 413");
  });

  rule("[API-3] a chunked body is refused while it is being read, before it ends", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    for (let sent = 0; sent < 3 * LIMIT_BYTES && !socket.received().includes("413"); sent += 0x10000) {
      socket.write(chunk);
      await Bun.sleep(0);
    }
    expect(await socket.readUntil("request.too_large", 5_000)).toStartWith("HTTP/1.1 413");
  });

  rule("[API-3] bodies of all kinds obey the limit, not one route alone", async () => {
    const raw = bodyOfSize(LIMIT_BYTES + 1);
    for (const [method, path] of [
      ["PUT", "/v1/account/metadata"],
      ["POST", "/v1/auth"],
      ["POST", "/v1/spaces/query"],
      ["POST", "/v1/spaces/x/modify"],
      ["POST", "/v1/spaces/x/upsert"],
      ["PATCH", "/v1/spaces/x/settings"],
    ] as const) {
      const reply = await shared.client.request(method, path, { raw });
      expect([path, reply.status]).toEqual([path, 413]);
    }
  });
});

describe("bodies that do not end", () => {
  rule("[API-16] a half-sent body writes nothing, holds nobody up and leaves the server healthy", async () => {
    const before = await spaceCount();
    const head = `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 40\r\n\r\n`;
    const held = descriptorsOf(shared.server.pid);
    for (const part of ["", "{", '{"name":"half"', '{"name":"half"}']) {
      const socket = await openSocket(shared.server.port);
      socket.write(head + part);
      await socket.readUntil("100 Continue");
      await shared.client.get("/v1/health");
      socket.destroy();
    }
    await untilLetGo(shared.server.pid, held);
    expect(await spaceCount()).toBe(before);
  });

  rule("[API-16] a body shorter than its Content-Length is never acted upon, even when it is valid JSON", async () => {
    const before = await spaceCount();
    const socket = await openSocket(shared.server.port);
    socket.write(
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{"name":"half"}`,
    );
    socket.end();
    await socket.closed(15_000).catch(() => "");
    socket.destroy();
    expect(await spaceCount()).toBe(before);
  });
});

describe("depth", () => {
  const nested = (depth: number, open: string, inner: string, close: string): string =>
    open.repeat(depth) + inner + close.repeat(depth);
  for (const depth of [1_000, 100_000]) {
    rule(`[API-1] JSON nested ${depth} levels deep is a 400, not a 5xx`, async () => {
      for (const value of [nested(depth, "[", "1", "]"), nested(depth, '{"a":', "1", "}")]) {
        const raw = `{"name":"deep","description":${value}}`;
        const reply = await shared.client.request("POST", "/v1/spaces", { raw });
        expect([reply.status, reply.text.slice(0, 40)]).toEqual([400, expect.stringContaining("request.")]);
      }
      await shared.client.get("/v1/health");
    });
  }

  rule("[API-1] a deep record value is refused without a 5xx and is not written", async () => {
    const { createCollection, createSpace } = await import("../support/server/fixtures.ts");
    const space = await createSpace(shared.client);
    const items = await createCollection(shared.client, space.id);
    const value = nested(5_000, "[", "1", "]");
    const reply = await shared.client.request("POST", `${items.path}/modify`, {
      raw: `{"objectId":"${items.objectId}","dataset":"${items.dataset}","records":[{"id":"deep","upsert":true,"ops":[{"type":"$set","path":"t","value":${value}}]}]}`,
    });
    expect([reply.status, reply.status >= 400 && reply.status < 500]).toEqual([reply.status, true]);
    expect(await items.find("deep")).toBeUndefined();
  });
});

describe("numbers", () => {
  rule("[API-1] [API-15] a number beyond what is kept is refused where it stands, not turned into null", async () => {
    const { createCollection, createSpace } = await import("../support/server/fixtures.ts");
    const space = await createSpace(shared.client);
    const items = await createCollection(shared.client, space.id, { dynamic: true });
    const refused = async (path: string, body: unknown, number: string, at: string): Promise<void> => {
      const raw = JSON.stringify(body).replaceAll('"HUGE"', number);
      const reply = await shared.client.request("POST", path, { raw });
      expect([reply.status, envelopeOf(reply, raw)]).toMatchObject([
        400,
        { code: "request.schema", message: expect.stringContaining(at), details: { path: at } },
      ]);
    };
    for (const number of ["1e309", "-1e999", `1${"0".repeat(309)}`, `${"1".repeat(250)}e99`]) {
      const op = { type: "$set", path: "deep", value: { x: [1, "HUGE"] } };
      const records = [{ id: "a", upsert: true, ops: [op] }];
      await refused(`${items.path}/modify`, { ...items.target, records }, number, "records[0].ops[0].value.x[1]");
      const rows = [{ id: "a", fields: { n: "HUGE" } }];
      await refused(`${items.path}/upsert`, { ...items.target, records: rows }, number, "records[0].fields.n");
    }
    await refused(`${items.path}/query`, { ...items.target, filter: { n: "HUGE" } }, "1e400", "filter.n");
    expect((await items.query()).records).toEqual([]);
    await items.upsert([{ id: "a", fields: { n: 1.7976931348623157e308, s: "1e999", b: true } }]);
    expect(await items.find("a")).toMatchObject({ n: 1.7976931348623157e308, s: "1e999" });
  });
});
