/** How a server stops: it accepts nothing more, drains, ends the streams and exits with 0. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { until } from "../support/server/client.ts";
import { createCollection, createSpace, setFields } from "../support/server/fixtures.ts";
import { openSocket } from "../support/server/raw-http.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

const WAYS: [string, (server: RunningServer) => Promise<void> | void][] = [
  ["SIGINT", (server) => server.signal("SIGINT")],
  ["SIGTERM", (server) => server.signal("SIGTERM")],
  ["POST /v1/shutdown", (server) => server.client.post("/v1/shutdown", undefined, 204)],
];

describe("shutdown", () => {
  for (const [name, shutDown] of WAYS) {
    rule(`[SRV-4] ${name} ends the server with exit code 0`, async () => {
      await using server = await startServer();
      await shutDown(server);
      expect(await server.exited).toBe(0);
    });

    rule(`[SRV-4] ${name} lets an open stream emit closed{server_shutdown}`, async () => {
      await using server = await startServer();
      const stream = await server.client.stream("POST", "/v1/spaces/query/subscribe", {});
      await stream.snapshot();
      await shutDown(server);
      expect((await stream.untilClosed()).reason).toBe("server_shutdown");
      expect(await server.exited).toBe(0);
    });
  }

  rule("[SRV-4] [ACC-5] POST /v1/shutdown works unauthorized", async () => {
    await using server = await startServer({ account: false });
    await server.client.post("/v1/shutdown", undefined, 204);
    expect(await server.exited).toBe(0);
  });

  rule("[SRV-4] a request that is still arriving is drained: it is answered before the exit", async () => {
    await using server = await startServer();
    const space = await createSpace(server.client);
    const items = await createCollection(server.client, space.id);
    const body = JSON.stringify({ ...items.target, records: [setFields("late", { s: "made it" })] });
    await using socket = await openSocket(server.port);
    socket.write(
      `POST ${items.path}/modify HTTP/1.1\r\nHost: ${server.address}\r\nContent-Type: application/json\r\n` +
        `Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    await socket.readUntil("100 Continue"); // the head has reached the server
    server.signal("SIGTERM");
    await until(() => server.stderr().includes("stopping"), "the signal to reach it");
    socket.write(body.slice(10));
    expect(await socket.readUntil("recordIds", 5_000)).toContain("HTTP/1.1 200");
    expect(await server.exited).toBe(0);
  });

  rule(
    "[SRV-4] a request that never ends is aborted after the 10 s deadline, and the exit code is still 0",
    async () => {
      await using server = await startServer();
      await using socket = await openSocket(server.port);
      socket.write(
        `POST /v1/spaces HTTP/1.1\r\nHost: ${server.address}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n{`,
      );
      await socket.readUntil("100 Continue");
      server.signal("SIGTERM");
      expect(await server.exited).toBe(0);
    },
    25_000,
  );

  rule("[SRV-4] after the signal no new connection is accepted", async () => {
    await using server = await startServer();
    server.signal("SIGTERM");
    await server.exited;
    const refused = await fetch(`${server.base}/v1/health`).then(
      () => false,
      () => true,
    );
    expect(refused).toBe(true);
  });

  rule("[SRV-4] what was written is there after a graceful stop and a new start", async () => {
    await using first = await startServer();
    const space = await createSpace(first.client, "kept");
    const items = await createCollection(first.client, space.id);
    await items.modify([setFields("a", { n: 7 })]);
    expect(await first.stop()).toBe(0);
    await using second = await startServer({ dataDir: first.dataDir });
    const page = await second.client.post<{ records: unknown[] }>(`${items.path}/query`, { ...items.target });
    expect(page.records).toHaveLength(1);
  });
});
