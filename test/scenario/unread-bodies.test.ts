/** Refusals of requests whose body nobody wants: every client gets them, also one that reads nothing before it has sent everything. */
import { describe, expect } from "bun:test";
import { request as httpRequest } from "node:http";
import { pace } from "../support/pace.ts";
import { rule, ruleBeside, useServer } from "../support/rule.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { openSocket } from "../support/server/raw-http.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnlessGiven } from "../support/skip.ts";

const shared = useServer();
const MIB = 1 << 20;
const JSON_TYPE = "application/json";

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly type?: string;
  readonly bytes: number;
  readonly chunked?: boolean;
}

/** Asks with a client that sends everything before it reads anything; answers the status and the envelope's code. */
async function sendAllThenRead(server: RunningServer, asked: Asked): Promise<[number | undefined, string]> {
  const { method = "POST", path = "/v1/spaces", type = JSON_TYPE, bytes, chunked = false } = asked;
  const headers = { "content-type": type, ...(chunked ? {} : { "content-length": bytes }) };
  const sending = httpRequest({ host: "127.0.0.1", port: server.port, method, path, headers, agent: false });
  const { promise, resolve, reject } = Promise.withResolvers<[number | undefined, string]>();
  sending.on("error", reject).on("response", (reply) => {
    let text = "";
    reply
      .on("data", (part) => {
        text += part;
      })
      .on("end", () => resolve([reply.statusCode, codeOf(text)]))
      .on("error", reject);
  });
  const part = Buffer.alloc(64 << 10, " ");
  for (let sent = 0; sent < bytes; sent += part.length) {
    const room = sending.write(part.subarray(0, Math.min(part.length, bytes - sent)));
    if (!room) await new Promise((drained) => sending.once("drain", () => drained(undefined)));
  }
  sending.end();
  return promise;
}

const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;

describe("size", () => {
  for (const chunked of [false, true]) {
    const how = chunked ? "chunked" : "of a declared length";
    rule(`[API-13] a body of up to 64 MiB, ${how}, gets its 413 whoever sends it`, async () => {
      for (const bytes of [2 * MIB, 8 * MIB, 63 * MIB])
        expect(await sendAllThenRead(shared.server, { bytes, chunked })).toEqual([413, "request.too_large"]);
      await shared.client.get("/v1/health");
    });
  }

  rule(
    "[API-13] so does a refusal that is not about the body: no route, no such method, no object, no type",
    async () => {
      const space = await createSpace(shared.client);
      const files = `/v1/spaces/${space.id}/objects/nobody/files`;
      const cases: [Asked, number, string][] = [
        [{ path: "/v1/nowhere", bytes: 8 * MIB }, 404, "request.not_found"],
        [{ method: "PUT", bytes: 8 * MIB }, 405, "request.method_not_allowed"],
        [{ type: "text/plain", bytes: 8 * MIB }, 415, "request.unsupported_media_type"],
        [{ path: files, type: "image/png", bytes: 8 * MIB }, 404, "file.not_found"],
      ];
      for (const [asked, status, code] of cases)
        for (const chunked of [false, true])
          expect(await sendAllThenRead(shared.server, { ...asked, chunked })).toEqual([status, code]);
    },
  );

  rule("[API-13] and the 401 of a server without an account", async () => {
    await using server = await startServer({ account: false });
    for (const chunked of [false, true])
      expect(await sendAllThenRead(server, { bytes: 8 * MIB, chunked })).toEqual([401, "auth.required"]);
  });

  rule("[API-13] a connection whose body was read to its end serves the next request", async () => {
    await using socket = await openSocket(shared.server.port);
    const head = `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: ${JSON_TYPE}\r\n`;
    socket.write(`${head}Content-Length: ${2 * MIB}\r\n\r\n${" ".repeat(2 * MIB)}`);
    await socket.readUntil("request.too_large");
    socket.write(`GET /v1/health HTTP/1.1\r\nHost: ${shared.server.address}\r\n\r\n`);
    expect(await socket.readUntil('"status":"ok"')).toContain("HTTP/1.1 200");
  });
});

describe("clients as they are", () => {
  const node = `
    const [url, bytes] = process.argv.slice(1);
    const body = Buffer.alloc(Number(bytes), " ");
    const parts = new ReadableStream({ start(to) { for (let at = 0; at < body.length; at += 65536) to.enqueue(body.subarray(at, at + 65536)); to.close(); } });
    for (const sent of [body, parts]) {
      const reply = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: sent, duplex: "half" });
      console.log(reply.status, (await reply.json()).error.code);
    }`;
  const python = `
import sys, json, urllib.request, urllib.error
url, size = sys.argv[1], int(sys.argv[2])
def parts():
    for at in range(0, size, 65536): yield b" " * 65536
for body in (b" " * size, parts()):
    request = urllib.request.Request(url, data=body, method="POST", headers={"Content-Type": "application/json"})
    try: print(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as refused: print(refused.code, json.load(refused)["error"]["code"])
`;
  const clients: [string, string[]][] = [
    ["node", ["--input-type=module", "-e", node]],
    ["python3", ["-c", python]],
  ];
  for (const [name, args] of clients) {
    const test = skipUnlessGiven(Bun.which(name) !== null, `${name} is not installed`);
    test(`[API-13] ${name}'s own client gets the 413 of a body of 8 MiB`, async () => {
      const url = `http://${shared.server.address}/v1/spaces`;
      const client = Bun.spawn([name, ...args, url, String(8 * MIB)], { stdout: "pipe", stderr: "pipe" });
      const [said, failed] = await Promise.all([
        new Response(client.stdout).text(),
        new Response(client.stderr).text(),
      ]);
      expect(failed + said).toBe("413 request.too_large\n413 request.too_large\n");
    });
  }
});

describe("bodies that do not end", () => {
  const head = (): string =>
    `POST /v1/nowhere HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: ${JSON_TYPE}\r\n`;

  ruleBeside("[API-13] a body that pauses is not waited for", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(`${head()}Content-Length: ${60 * MIB}\r\n\r\n{"name":"`);
    const text = await socket.readUntil("request.not_found");
    expect(text.toLowerCase()).toContain("connection: close");
    expect(await socket.closed()).toStartWith("HTTP/1.1 404");
  });

  ruleBeside("[API-13] nor is one that trickles for ever", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(`${head()}Transfer-Encoding: chunked\r\n\r\n`);
    while (!socket.received().includes("request.not_found")) {
      socket.write("1\r\nx\r\n");
      await pace(100);
    }
    expect(await socket.closed()).toStartWith("HTTP/1.1 404");
  });

  rule("[API-13] what is longer is refused at once, and the connection closed", async () => {
    await using socket = await openSocket(shared.server.port);
    socket.write(`${head()}Content-Length: ${64 * MIB + 1}\r\n\r\n{`);
    expect((await socket.readUntil("request.not_found")).toLowerCase()).toContain("connection: close");
    await socket.closed();
  });
});
