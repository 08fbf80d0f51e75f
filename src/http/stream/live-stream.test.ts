import { afterEach, expect, test } from "bun:test";
import { openSocket } from "../../../test/support/server/raw-http.ts";
import { openStream as openClient, type SseStream } from "../../../test/support/server/sse-stream.ts";
import { type LiveSpace, openLiveSpace } from "../../../test/support/worlds/live-space.ts";
import { silentLog } from "../../base/log.ts";
import type { LiveBody } from "../../domain/live/live-request.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { errorResponse } from "../reply/error-response.ts";
import type { ServerHandle } from "../server-handle.ts";
import { openStream } from "../sse.ts";
import { liveSource } from "./live-stream.ts";
import { createStreamRegistry } from "./stream-registry.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Serves a space's windows at /, as a route does. */
async function serveSpace() {
  const space = await openLiveSpace();
  const streams = createStreamRegistry({ keepaliveMs: 60_000, readDeadlineMs: 60_000 });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request, bun) {
      const disableIdleTimeout = (of: Request) => bun.timeout(of, 0);
      const handle = { streams, disableIdleTimeout } as unknown as ServerHandle;
      try {
        const body = (await request.json()) as LiveBody;
        const source = liveSource((sink) => space.live.subscribe(space.collection, body, sink));
        return await openStream({ request, server: handle }, source);
      } catch (thrown) {
        return errorResponse(thrown, silentLog);
      }
    },
  });
  stops.push(() => space.close());
  stops.push(() => server.stop(true));
  const url = `http://127.0.0.1:${server.port}/`;
  const subscribe = async (body: LiveBody): Promise<SseStream> => {
    const stream = await openClient(url, "POST", body);
    stops.push(() => stream.close());
    return stream;
  };
  return { space, streams, url, subscribe };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await Bun.sleep(1);
};

const fill = (space: LiveSpace, count: number, fields: JsonObject = {}) =>
  space.write(
    Array.from({ length: count }, (_, n) => ({
      id: `r${n}`,
      upsert: true,
      ops: [{ type: "$set" as const, path: "", value: { n, ...fields } }],
    })),
  );

test("[LIVE-1] [LIVE-2] ready, snapshot, changes, closed", async () => {
  const { space, subscribe } = await serveSpace();
  await fill(space, 3, { text: "é\n😀" });
  const stream = await subscribe({ sort: ["-n"], limit: 2, includeTotal: true });
  const snapshot = await stream.snapshot();
  expect(snapshot as unknown).toEqual({
    records: ["r2", "r1"].map((id) => space.engine.record(space.object, "things", id)),
    total: 3,
    hasNext: true,
  });
  await space.put("new", { n: 9 });
  const stored = space.engine.record(space.object, "things", "new") as JsonObject;
  expect((await stream.changes()) as unknown).toEqual([
    {
      versionId: (stored["_ver"] as JsonObject)["id"],
      added: [{ id: "new", doc: stored, ops: [{ type: "$set", path: [], payload: { n: 9 } }] }],
      removed: [{ id: "r1", reason: "displaced" }],
    },
  ]);
  space.live.close();
  expect(await stream.untilClosed()).toEqual({ reason: "sdk_closed", frames: [] });
});

test("[LIVE-2] an empty window, and one without a total", async () => {
  const { subscribe } = await serveSpace();
  expect((await (await subscribe({})).snapshot()) as unknown).toEqual({ records: [] });
});

test("[LIVE-1] faults before the stream opens are ordinary errors", async () => {
  const { url, streams } = await serveSpace();
  const post = async (body: unknown) => {
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    const { error } = (await response.json()) as { error: { code: string; details: JsonObject } };
    return [response.status, error.code, error.details["field"] ?? error.details["path"]];
  };
  expect(await post({ limit: 5 })).toEqual([400, "request.missing_field", "sort"]);
  expect(await post({ filter: { a: { $near: 1 } } })).toEqual([400, "filter.unknown_operator", "a.$near"]);
  expect(await post({ sort: [""] })).toEqual([400, "request.invalid_field", "sort"]);
  expect(streams.size).toBe(0);
});

test("[LIVE-1] a reader that goes away gives its window back", async () => {
  const { space, streams, subscribe } = await serveSpace();
  const stream = await subscribe({});
  await stream.snapshot();
  expect([space.live.size, streams.size]).toEqual([1, 1]);
  await stream.close();
  await until(() => space.live.size === 0 && streams.size === 0);
});

test("[LIVE-1] [SRV-4] shutdown ends live streams with server_shutdown", async () => {
  const { space, streams, subscribe } = await serveSpace();
  const stream = await subscribe({});
  await stream.snapshot();
  const ended = streams.closeAll("server_shutdown");
  expect((await stream.untilClosed()).reason).toBe("server_shutdown");
  await ended;
  expect(space.live.size).toBe(0);
});

test("[LIVE-4] a reader that takes nothing is ended with overflow; one that reads sees everything", async () => {
  const { space, url, subscribe } = await serveSpace();
  const reading = await subscribe({ mailboxCapacity: 16 });
  await reading.snapshot();
  // A plain socket, because fetch may read ahead even when nobody takes anything.
  await using idle = await openSocket(Number(new URL(url).port));
  const body = JSON.stringify({ mailboxCapacity: 16 });
  idle.write(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await idle.readUntil("event: snapshot");
  idle.pause();
  const text = "x".repeat(200_000);
  const seen = new Set<string>();
  let written = 0;
  while (space.live.size === 2 && written < 2_000) {
    await space.put(`big${written++}`, { text });
    for (const { added = [] } of await reading.changes()) for (const { id } of added) seen.add(id);
  }
  expect(space.live.size).toBe(1);
  expect(seen.size).toBe(written);
  idle.resume();
  expect((await idle.closed()).slice(-200)).toContain('event: closed\ndata: {"reason":"overflow"}\n\n');
}, 30_000);

test("[LIVE-4] parallel writers do not overflow a reader that keeps up, however small its mailbox", async () => {
  const { space, subscribe } = await serveSpace();
  const stream = await subscribe({ mailboxCapacity: 16 });
  await stream.snapshot();
  const writers = Array.from({ length: 24 }, async (_, writer) => {
    for (let n = 0; n < 40; n++) await space.put(`w${writer}-${n}`, { n });
  });
  await Promise.all(writers);
  const seen = new Set<string>();
  while (seen.size < 24 * 40)
    for (const { added = [] } of await stream.changes()) for (const { id } of added) seen.add(id);
  expect(seen.size).toBe(960);
});
