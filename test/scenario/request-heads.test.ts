/** First lines and headers: how long they may be, and what the runtime beneath answers in the server's place. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { openSocket } from "../support/server/raw-http.ts";

const shared = useServer();

/** Sends the lines and a Host header, and answers what comes back until the server closes the connection. */
async function answerTo(firstLine: string, headers: readonly string[] = []): Promise<string> {
  await using socket = await openSocket(shared.server.port);
  const lines = [firstLine, `Host: ${shared.server.address}`, "Connection: close", ...headers, "", ""];
  socket.write(lines.join("\r\n"));
  return await socket.closed();
}

const codeOf = (answer: string): string =>
  (JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))) as { error: { code: string } }).error.code;

describe("long heads", () => {
  for (const chars of [20_000, 250_000]) {
    rule(`[API-14] an address of ${chars} characters is answered by its route, in its envelope`, async () => {
      const cases: [string, number, string][] = [
        [`/v1/${"a".repeat(chars)}`, 404, "request.not_found"],
        [`/v1/spaces/${"a".repeat(chars)}`, 404, "space.not_found"],
      ];
      for (const [path, status, code] of cases) {
        const answer = await answerTo(`GET ${path} HTTP/1.1`);
        expect(answer).toStartWith(`HTTP/1.1 ${status} `);
        expect(codeOf(answer)).toBe(code);
      }
    });
  }

  rule("[API-14] headers of 250,000 characters, or 190 of them, are taken", async () => {
    const many = Array.from({ length: 190 }, (_, at) => `X-${at}: a`);
    for (const headers of [[`X-Long: ${"a".repeat(250_000)}`], many])
      expect(await answerTo("GET /v1/health HTTP/1.1", headers)).toStartWith("HTTP/1.1 200 ");
  });
});

describe("what the runtime answers itself", () => {
  rule("[API-14] beyond that it is an empty 431, and what is no HTTP request an empty 400 or 505", async () => {
    const host = `Host: ${shared.server.address}`;
    const cases: [string, readonly string[], number][] = [
      [`GET /v1/health?x=${"a".repeat(300_000)} HTTP/1.1`, [], 431],
      ["GET /v1/health HTTP/1.1", [`X-Long: ${"a".repeat(300_000)}`], 431],
      ["GET /v1/health HTTP/1.1", Array.from({ length: 250 }, (_, at) => `X-${at}: a`), 431],
      ["hello", [], 400],
      ["GET /v1/health HTTP/1.1", ["no colon"], 400],
      ["POST /v1/auth HTTP/1.1", ["Content-Length: 2", "Content-Length: 3"], 400],
      ["POST /v1/auth HTTP/1.1", ["Content-Length: 2", "Transfer-Encoding: chunked"], 400],
      ["GET /v1/health HTTP/3.0", [host], 505],
    ];
    for (const [firstLine, headers, status] of cases)
      expect(await answerTo(firstLine, headers)).toMatch(
        new RegExp(`^HTTP/1.1 ${status} [^\\r]+\\r\\nConnection: close\\r\\n\\r\\n$`),
      );
    // A method that it does not know gets nothing at all.
    expect(await answerTo("get /v1/health HTTP/1.1")).toBe("");
    await shared.client.get("/v1/health");
  });
});
