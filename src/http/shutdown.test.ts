import { expect, test } from "bun:test";
import { connect } from "node:net";
import { silentLog } from "../base/log.ts";
import { encodeFrame } from "../protocol/sse-frames.ts";
import { createListener } from "./listener.ts";
import type { ServerHandle } from "./server-handle.ts";
import { createShutdown } from "./shutdown.ts";
import { openStream } from "./sse.ts";
import { createStreamRegistry } from "./stream/stream-registry.ts";
import type { StreamSink } from "./stream/stream-source.ts";

/** A listener with a stream at /stream, and a handler at /wait that ends when the test says so. */
function serve(drainMs: number, closeEngine: () => Promise<void> = async () => {}) {
  const streams = createStreamRegistry();
  const letGo = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const sinks: StreamSink[] = [];
  const listener = createListener({ hostname: "127.0.0.1", port: 0 });
  listener.start(async (request) => {
    if (!request.url.endsWith("/stream")) {
      waiting.resolve();
      await letGo.promise;
      return new Response("answered");
    }
    const server = { streams, disableIdleTimeout: listener.disableIdleTimeout } as ServerHandle;
    const start = (sink: StreamSink) => {
      sinks.push(sink);
      return { stop: () => {} };
    };
    return openStream({ request, server }, { capacity: 64, overflow: "lag", start });
  });
  const stopping = new AbortController();
  const events: string[] = [];
  const shutdown = createShutdown({
    stopping,
    streams,
    // One that has not begun to listen holds up nothing.
    listeners: [listener, createListener({ hostname: "127.0.0.1", port: 0 })],
    closeEngine: async () => {
      events.push("engine closed");
      await closeEngine();
    },
    log: silentLog,
    drainMs,
  });
  return {
    url: `http://${listener.address}`,
    port: listener.port,
    shutdown,
    stopping,
    events,
    letGo,
    waiting: waiting.promise,
    sinks,
  };
}

test("[SRV-4] streams and requests come to their end before the engine closes", async () => {
  const { url, shutdown, stopping, events, letGo, waiting, sinks } = serve(60_000);
  const readers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${url}/stream`)));
  for (const sink of sinks) sink.send(encodeFrame("event", "x".repeat(100_000)));
  const texts = readers.map((response) => response.text());
  const answer = fetch(`${url}/wait`).then((response) => response.text());
  await waiting;
  shutdown.begin("test");
  expect(stopping.signal.aborted).toBe(true);
  for (const text of texts) expect(await text).toEndWith('event: closed\ndata: {"reason":"server_shutdown"}\n\n');
  expect(events).toEqual([]);
  letGo.resolve();
  expect(await answer).toBe("answered");
  await shutdown.finished;
  expect(events).toEqual(["engine closed"]);
  expect(
    await fetch(url).then(
      () => "accepted",
      () => "refused",
    ),
  ).toBe("refused");
});

test("[SRV-4] past the deadline what is left is cut off", async () => {
  const { url, shutdown, events, waiting } = serve(100);
  const answer = fetch(`${url}/wait`).then(
    () => "answered",
    () => "cut off",
  );
  await waiting;
  shutdown.begin("test");
  await shutdown.finished;
  expect([await answer, ...events]).toEqual(["cut off", "engine closed"]);
});

test("[SRV-4] asked twice, nothing is waited for", async () => {
  const { url, shutdown, waiting } = serve(60_000);
  const answer = fetch(`${url}/wait`).then(
    () => "answered",
    () => "cut off",
  );
  await waiting;
  shutdown.begin("SIGINT");
  shutdown.begin("SIGINT");
  await shutdown.finished;
  expect(await answer).toBe("cut off");
});

test("[SRV-4] neither a reader that takes nothing nor an engine that hangs keeps the process", async () => {
  const { port, shutdown, sinks } = serve(200, () => new Promise(() => {}));
  const socket = connect(port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("error", () => {});
  socket.write("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  socket.pause();
  while (sinks.length === 0) await Bun.sleep(5);
  for (let n = 0; n < 64; n++) sinks[0]!.send(encodeFrame("event", "x".repeat(200_000)));
  shutdown.begin("test");
  await shutdown.finished;
  socket.resume();
  await closed;
});

test("[SRV-4] an engine that fails to close still ends the shutdown", async () => {
  const { shutdown } = serve(60_000, async () => {
    throw new Error("cannot");
  });
  shutdown.begin("test");
  await shutdown.finished;
});
