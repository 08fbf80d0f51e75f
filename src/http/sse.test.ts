import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { silentLog } from "../base/log.ts";
import { svcError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { encodeFrame, encodeFrameText } from "../protocol/sse-frames.ts";
import { errorResponse } from "./reply/error-response.ts";
import type { ServerHandle } from "./server-handle.ts";
import { openStream } from "./sse.ts";
import { createStreamRegistry, type StreamTimes } from "./stream/stream-registry.ts";
import type { StreamSink, StreamSource } from "./stream/stream-source.ts";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const QUIET: StreamTimes = { keepaliveMs: 60_000, readDeadlineMs: 60_000 };

/** Serves one source at /, as the shell does. */
function serve(source: () => StreamSource, times = QUIET) {
  const streams = createStreamRegistry(times);
  let untimed = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 1,
    async fetch(request, bun) {
      const disableIdleTimeout = (of: Request) => {
        untimed++;
        bun.timeout(of, 0);
      };
      const handle = { streams, disableIdleTimeout } as unknown as ServerHandle;
      try {
        return await openStream({ request, server: handle }, source());
      } catch (thrown) {
        return errorResponse(thrown, silentLog);
      }
    },
  });
  stops.push(() => server.stop(true));
  return { streams, url: `http://127.0.0.1:${server.port}/`, port: server.port as number, untimed: () => untimed };
}

/** Reads blocks (frames and comments) of a stream, one at a time. */
async function open(url: string, signal?: AbortSignal) {
  const response = await fetch(url, signal ? { signal } : {});
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    response,
    async next(): Promise<string | undefined> {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end !== -1) {
          const block = text.slice(0, end);
          text = text.slice(end + 2);
          return block;
        }
        const { value, done } = await reader.read();
        if (done) return undefined;
        text += decoder.decode(value, { stream: true });
      }
    },
  };
}

/** A source whose sink the test controls. */
function driven(options: Partial<StreamSource> = {}) {
  const opened = Promise.withResolvers<StreamSink>();
  const stopped = Promise.withResolvers<void>();
  let stopCount = 0;
  const source: StreamSource = {
    capacity: 16,
    overflow: "close",
    start: (sink) => {
      opened.resolve(sink);
      return {
        stop: () => {
          stopCount++;
          stopped.resolve();
        },
      };
    },
    ...options,
  };
  return { source, sink: opened.promise, stopped: stopped.promise, stopCount: () => stopCount };
}

test("[LIVE-1] ready, frames, closed, end; no id", async () => {
  const { source, sink, stopCount } = driven();
  const { url, streams } = serve(() => source);
  const stream = await open(url);
  expect(stream.response.headers.get("content-type")).toStartWith("text/event-stream");
  expect(await stream.next()).toBe("event: ready\ndata: {}");
  const out = await sink;
  out.send(encodeFrame("status", { n: 1 }));
  expect(await stream.next()).toBe('event: status\ndata: {"n":1}');
  out.send(encodeFrameText("status", '{\n"n":\r\n2}'));
  expect(await stream.next()).toBe('event: status\ndata: {\ndata: "n":\ndata: 2}');
  out.close("sdk_closed");
  out.send(encodeFrame("status", { n: 3 }));
  expect(await stream.next()).toBe('event: closed\ndata: {"reason":"sdk_closed"}');
  expect(await stream.next()).toBeUndefined();
  expect([stopCount(), streams.size]).toEqual([1, 0]);
});

test("[LIVE-1] a fault before the stream opens is an ordinary JSON error", async () => {
  const { url, streams } = serve(() => ({
    capacity: 16,
    overflow: "close",
    start: async () => {
      throw svcError("space.not_found", { spaceId: "s" });
    },
  }));
  const response = await fetch(url);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { code: "space.not_found" } });
  expect(streams.size).toBe(0);
});

test("[LIVE-1] an idle stream carries keepalive comments, and the idle timeout is off", async () => {
  const { source } = driven();
  const { url, untimed } = serve(() => source, { keepaliveMs: 50, readDeadlineMs: 60_000 });
  const stream = await open(url);
  expect(await stream.next()).toBe("event: ready\ndata: {}");
  for (let i = 0; i < 3; i++) expect(await stream.next()).toBe(": keepalive");
  expect(untimed()).toBe(1);
});

test("[LIVE-4] a full mailbox closes the stream with overflow, after what was queued", async () => {
  const { url } = serve(() => ({
    capacity: 4,
    overflow: "close",
    start: (sink) => {
      for (let n = 0; n < 10; n++) sink.send(encodeFrame("event", n));
      return { stop: () => {} };
    },
  }));
  const stream = await open(url);
  const blocks: (string | undefined)[] = [];
  for (let block = await stream.next(); block !== undefined; block = await stream.next()) blocks.push(block);
  expect(blocks).toEqual([
    "event: ready\ndata: {}",
    ...[0, 1, 2, 3].map((n) => `event: event\ndata: ${n}`),
    'event: closed\ndata: {"reason":"overflow"}',
  ]);
});

test("[LIVE-4] a lagging reader is told how many frames were dropped, where they are missing", async () => {
  const { source, sink } = driven({ capacity: 4, overflow: "lag" });
  const { url } = serve(() => ({
    ...source,
    start: (out) => {
      for (let n = 0; n < 10; n++) out.send(encodeFrame("event", n));
      return source.start(out);
    },
  }));
  const stream = await open(url);
  expect(await stream.next()).toBe("event: ready\ndata: {}");
  for (const n of [0, 1, 2, 3]) expect(await stream.next()).toBe(`event: event\ndata: ${n}`);
  expect(await stream.next()).toBe('event: lagged\ndata: {"total":6}');
  (await sink).send(encodeFrame("event", "after"));
  expect(await stream.next()).toBe('event: event\ndata: "after"');
});

test("[LIVE-2] what happens while a frame cannot be sent is coalesced into the next", async () => {
  let pending = 0;
  const opened = Promise.withResolvers<StreamSink>();
  const { url } = serve(() => ({
    capacity: 16,
    overflow: "close",
    start: (sink) => {
      opened.resolve(sink);
      return {
        stop: () => {},
        pull: () => {
          if (pending === 0) return undefined;
          const frame = encodeFrame("changes", pending);
          pending = 0;
          return frame;
        },
      };
    },
  }));
  const stream = await open(url);
  const sink = await opened.promise;
  expect(await stream.next()).toBe("event: ready\ndata: {}");
  for (let i = 0; i < 5; i++) {
    pending++;
    sink.wake();
  }
  expect(await stream.next()).toBe("event: changes\ndata: 5");
  pending++;
  sink.wake();
  expect(await stream.next()).toBe("event: changes\ndata: 1");
});

test("[LIVE-1] a client that leaves ends the subscription, once", async () => {
  const { source, stopped, stopCount, sink } = driven();
  const { url, streams } = serve(() => source);
  const leaving = new AbortController();
  const stream = await open(url, leaving.signal);
  expect(await stream.next()).toBe("event: ready\ndata: {}");
  leaving.abort();
  await stopped;
  (await sink).send(encodeFrame("event", 1));
  (await sink).close("sdk_closed");
  expect([stopCount(), streams.size]).toEqual([1, 0]);
});

test("[SRV-4] [API-10] shutdown ends every stream with server_shutdown and admits no more", async () => {
  const { url, streams } = serve(() => driven().source);
  const open1 = await open(url);
  const open2 = await open(url);
  for (const stream of [open1, open2]) expect(await stream.next()).toBe("event: ready\ndata: {}");
  const closing = streams.closeAll("server_shutdown");
  for (const stream of [open1, open2]) {
    expect(await stream.next()).toBe('event: closed\ndata: {"reason":"server_shutdown"}');
    expect(await stream.next()).toBeUndefined();
  }
  await closing;
  expect((await fetch(url)).status).toBe(503);
});

test("[LIVE-4] one stream more than may be open is refused, until one ends", () => {
  using streams = createStreamRegistry(QUIET);
  const open = Array.from({ length: LIMITS.openStreams }, () => ({ tick: () => {}, close: () => {} }));
  for (const stream of open) {
    streams.admit();
    streams.add(stream);
  }
  expect(() => streams.admit()).toThrow(expect.objectContaining({ code: "server.unavailable", status: 503 }));
  streams.remove(open[7]!);
  streams.admit();
});

test("[LIVE-4] a reader that takes nothing is cut off", async () => {
  const frame = encodeFrame("event", "x".repeat(64 << 10));
  const { source, sink, stopped } = driven({ overflow: "lag" });
  const { port, streams } = serve(() => source, { keepaliveMs: 60_000, readDeadlineMs: 300 });
  const socket = connect(port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  socket.pause();
  const out = await sink;
  const feeding = setInterval(() => out.send(frame), 1);
  await stopped;
  clearInterval(feeding);
  expect(streams.size).toBe(0);
  socket.resume();
  await closed;
});
