/** One connection that carries many streams: every kind of them, their ends, adding and dropping, limits, a slow reader. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Page } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { openMultiplex, type SubscriptionRequest } from "../support/server/multiplex-stream.ts";
import { openSocket } from "../support/server/raw-http.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { startServer } from "../support/server/server.ts";
import type { ChangesEntry } from "../support/server/sse-stream.ts";

let spaceId: string;
let objectId: string;
const shared = useServer({}, async ({ client }) => {
  spaceId = (await createSpace(client)).id;
  objectId = (await createObject(client, spaceId)).id;
});

const windowOf = (id: string, items: Collection, body: JsonObject = {}): SubscriptionRequest => ({
  id,
  method: "POST",
  path: `${items.path}/query/subscribe`,
  body: { ...items.target, ...body },
});
const events = (id: string, type: string): SubscriptionRequest => ({
  id,
  method: "GET",
  path: `/v1/events/subscribe?type=${type}`,
});
const open = (...subscriptions: SubscriptionRequest[]) => openMultiplex(shared.client, subscriptions);
const publish = (type: string, data: Json = null) =>
  shared.client.post<{ subscribers: number }>("/v1/events", { type, scope: "device", data });
const added = (data: Json): string[] =>
  (data as unknown as ChangesEntry[]).flatMap((entry) => (entry.added ?? []).map(({ id }) => id));

describe("carrying", () => {
  rule("[LIVE-5] every stream of the API is carried, with its own ready and frames", async () => {
    const items = await createCollection(shared.client, spaceId);
    await items.upsert([{ id: "r1", fields: { n: 1 } }]);
    const files = `${items.path}/objects/${items.objectId}/files`;
    await shared.client.request("POST", files, { raw: "a file", headers: { "content-type": "text/plain" } });
    const windows: Record<string, SubscriptionRequest> = {
      records: windowOf("records", items),
      objects: { id: "objects", method: "POST", path: `${items.path}/objects/query/subscribe`, body: {} },
      spaces: { id: "spaces", method: "POST", path: "/v1/spaces/query/subscribe" },
      devices: { id: "devices", method: "POST", path: "/v1/devices/query/subscribe", body: {} },
    };
    const { paths } = await shared.client.get<{ paths: Record<string, Record<string, JsonObject>> }>(
      "/v1/openapi.json",
    );
    const subscriptions = Object.values(windows);
    for (const [template, methods] of Object.entries(paths)) {
      const path = template.replace("{spaceId}", spaceId).replace("{objectId}", items.objectId);
      for (const [method, operation] of Object.entries(methods)) {
        if (!JSON.stringify(operation).includes("text/event-stream") || path === "/v1/streams") continue;
        if (subscriptions.some((one) => one.path === path)) continue;
        const asked = { id: `${method} ${subscriptions.length}`, method: method.toUpperCase(), path };
        subscriptions.push(method === "post" ? { ...asked, body: {} } : asked);
      }
    }
    await using stream = await open(...subscriptions);
    for (const { id } of subscriptions) expect([id, await stream.expect(id, "ready")]).toEqual([id, {}]);
    const snapshot = (await stream.expect("records", "snapshot")) as unknown as Page;
    expect(snapshot.records).toEqual((await items.query()).records);
    for (const id of ["objects", "spaces", "devices"]) await stream.expect(id, "snapshot");
    await items.upsert([{ id: "r2", fields: { n: 2 } }]);
    expect(added(await stream.expect("records", "changes"))).toEqual(["r2"]);
  });

  rule("[LIVE-5] a refusal before a stream opens is its own frame, with the envelope, and hurts no other", async () => {
    const items = await createCollection(shared.client, spaceId);
    const other = { ...windowOf("gone", items), body: { objectId: "bafyunknown", dataset: "x" } };
    const missing = { id: "space", method: "GET", path: "/v1/spaces/bafyunknown/members/subscribe" };
    const odd = windowOf("odd", items, { cursor: 1 });
    await using stream = await open(other, missing, odd, windowOf("fine", items));
    for (const [id, code] of [
      ["gone", "object.not_found"],
      ["space", "space.not_found"],
      ["odd", "request.unknown_field"],
    ] as const) {
      expect(await stream.expect(id, "error")).toMatchObject({ error: { code, message: expect.any(String) } });
    }
    await stream.expect("fine", "ready");
    await stream.expect("fine", "snapshot");
    // An id whose subscription has ended is free.
    await stream.change({ add: [windowOf("gone", items)] });
    await stream.expect("gone", "ready");
  });

  rule("[LIVE-5] 256 windows and listeners over one connection each hear what is theirs", async () => {
    const items = await createCollection(shared.client, spaceId);
    await items.upsert(Array.from({ length: 200 }, (_, n) => ({ id: `r${n}`, fields: { n, s: "x".repeat(200) } })));
    const windows = Array.from({ length: 200 }, (_, n) => windowOf(`w${n}`, items, { filter: { n } }));
    const listeners = Array.from({ length: 56 }, (_, n) => events(`e${n}`, `many.t${n}`));
    await using stream = await open(...windows, ...listeners);
    for (const [n, { id }] of windows.entries()) {
      await stream.expect(id, "ready");
      const { records } = (await stream.expect(id, "snapshot")) as unknown as Page;
      expect(records.map((record) => record.id)).toEqual([`r${n}`]);
    }
    for (const { id } of listeners) await stream.expect(id, "ready");
    await items.modify(Array.from({ length: 200 }, (_, n) => setFields(`r${n}`, { s: "new" })));
    for (const { id } of windows) await stream.expect(id, "changes");
    for (let n = 0; n < 56; n++) expect(await publish(`many.t${n}`, n)).toEqual({ subscribers: 1 });
    for (let n = 0; n < 56; n++) expect(await stream.expect(`e${n}`, "event")).toMatchObject({ data: n });
    expect(stream.kept()).toEqual([]);
    const refused = await shared.client.fails(
      "POST",
      `/v1/streams/${stream.streamId}`,
      { add: [events("more", "x")] },
      400,
      "request.invalid_field",
    );
    expect(refused.details).toMatchObject({ field: "add" });
    await stream.change({ add: [events("more", "x")], drop: ["w0"] });
    await stream.expect("more", "ready");
  });

  rule("[LIVE-5] a subscription that ends, ends alone", async () => {
    const space = await createSpace(shared.client);
    const lasting = await createCollection(shared.client, spaceId);
    const ending = await createCollection(shared.client, space.id);
    await using stream = await open(windowOf("ending", ending), windowOf("lasting", lasting));
    for (const id of ["ending", "lasting"]) {
      await stream.expect(id, "ready");
      await stream.expect(id, "snapshot");
    }
    await shared.client.del(`/v1/spaces/${space.id}`);
    expect(await stream.expect("ending", "closed")).toEqual({ reason: "sdk_closed" });
    await lasting.upsert([{ id: "after", fields: {} }]);
    expect(added(await stream.expect("lasting", "changes"))).toEqual(["after"]);
  });

  rule("[LIVE-5] at shutdown every subscription and then the stream say server_shutdown", async () => {
    await using server = await startServer();
    await using stream = await openMultiplex(server.client, [
      events("a", "x"),
      { id: "b", method: "POST", path: "/v1/spaces/query/subscribe", body: {} },
    ]);
    await stream.expect("a", "ready");
    await stream.expect("b", "ready");
    await stream.expect("b", "snapshot");
    server.signal("SIGTERM");
    expect(await stream.untilClosed()).toBe("server_shutdown");
    const reason = { reason: "server_shutdown" };
    expect(stream.kept()).toEqual([
      { id: "a", event: "closed", data: reason },
      { id: "b", event: "closed", data: reason },
    ]);
    expect(await server.exited).toBe(0);
  });
});

describe("adding and dropping", () => {
  rule(
    "[LIVE-6] after a drop was answered no frame of it follows, in the thick of writes, and its id is free",
    async () => {
      const items = await createCollection(shared.client, spaceId);
      await using stream = await open(windowOf("stays", items));
      await stream.expect("stays", "ready");
      let writing = true;
      const writes = (async () => {
        for (let n = 0; writing; n++) await items.modify([setFields("r", { n })]);
      })();
      for (let round = 0; round < 40; round++) {
        await stream.change({ add: [windowOf("comes", items)] });
        await stream.expect("comes", "ready");
        await stream.expect("comes", "snapshot");
        await stream.expect("comes", "changes");
        await stream.change({ drop: ["comes"] });
        await stream.untilQuiet();
        stream.forget("comes");
        await stream.expect("stays", round === 0 ? "snapshot" : "changes");
        await stream.expect("stays", "changes");
        expect(stream.kept().filter(({ id }) => id === "comes")).toEqual([]);
      }
      writing = false;
      await writes;
      // Both at once: the old one ends, the new one begins.
      await stream.change({ add: [windowOf("comes", items)] });
      await stream.expect("comes", "ready");
      await stream.expect("comes", "snapshot");
      await stream.change({ drop: ["comes"], add: [events("comes", "x")] });
      await stream.expect("comes", "ready");
      await publish("x", 7);
      expect(await stream.expect("comes", "event")).toMatchObject({ data: 7 });
    },
  );

  rule("[LIVE-6] a stream that is left is not found, and what it carried has ended", async () => {
    const stream = await open(events("a", "left.*"));
    await stream.expect("a", "ready");
    expect(await publish("left.x")).toEqual({ subscribers: 1 });
    await stream.close();
    await until(async () => (await publish("left.x")).subscribers === 0, "the listener to be gone");
    const path = `/v1/streams/${stream.streamId}`;
    await shared.client.fails("POST", path, { drop: ["a"] }, 404, "stream.not_found");
  });

  rule("[LIVE-6] a request one of whose subscriptions is refused adds nothing and drops nothing", async () => {
    await using stream = await open(events("stays", "whole.stays"));
    await stream.expect("stays", "ready");
    const body = { drop: ["stays"], add: [events("comes", "whole.comes"), { ...SUB, id: "odd", path: "/v1/spaces" }] };
    const path = `/v1/streams/${stream.streamId}`;
    const error = await shared.client.fails("POST", path, body, 400, "request.invalid_field");
    expect(error.details).toMatchObject({ field: "add[1].path" });
    expect(await publish("whole.comes")).toEqual({ subscribers: 0 });
    expect(await publish("whole.stays", 1)).toEqual({ subscribers: 1 });
    expect(await stream.expect("stays", "event")).toMatchObject({ data: 1 });
  });
});

const SUB = { id: "a", method: "GET", path: "/v1/events/subscribe" };
const refused = (title: string, subscriptions: Json[], field: string, reason: string) => ({
  title: `[LIVE-5] ${title}`,
  method: "POST",
  path: "/v1/streams",
  body: { subscriptions },
  status: 400,
  code: "request.invalid_field",
  details: { field },
  mustContain: [reason],
});

describe("refusals", () => {
  runScenarios(
    () => ({ client: shared.client, vars: { S: `/v1/spaces/${spaceId}`, objectId } }),
    [
      refused("an endpoint that is no stream", [{ ...SUB, path: "/v1/spaces" }], "subscriptions[0].path", "no event"),
      refused("an unknown path", [SUB, { ...SUB, id: "b", path: "/v1/x" }], "subscriptions[1].path", "no event stream"),
      refused("another server", [{ ...SUB, path: "http://x/v1/events/subscribe" }], "subscriptions[0].path", "/v1/"),
      refused("a host in the path", [{ ...SUB, path: "//x/v1/events/subscribe" }], "subscriptions[0].path", "/v1/"),
      refused("the wrong method", [{ ...SUB, method: "POST" }], "subscriptions[0].path", "this stream is a GET"),
      refused("a body of a GET", [{ ...SUB, body: {} }], "subscriptions[0].path", "a GET takes no body"),
      refused("a stream of streams", [{ id: "a", method: "POST", path: "/v1/streams" }], "subscriptions[0].path", "no"),
      refused("an id that is taken", [SUB, SUB], "subscriptions[1].id", "another subscription"),
      refused("an id of more than 64 characters", [{ ...SUB, id: "x".repeat(65) }], "subscriptions[0].id", "64"),
      refused("another method", [{ ...SUB, method: "PUT" }], "subscriptions[0].method", "GET, POST"),
      refused(
        "more than 256 subscriptions",
        Array.from({ length: 257 }, (_, n) => ({ ...SUB, id: `s${n}` })),
        "subscriptions",
        "256",
      ),
      {
        title: "[LIVE-5] without subscriptions",
        method: "POST",
        path: "/v1/streams",
        body: {},
        status: 400,
        code: "request.missing_field",
        details: { field: "subscriptions" },
      },
      {
        title: "[LIVE-6] an unknown stream",
        method: "POST",
        path: "/v1/streams/nobody",
        body: { drop: ["a"] },
        status: 404,
        code: "stream.not_found",
        details: { streamId: "nobody" },
      },
    ],
  );
});

describe("a slow reader", () => {
  rule(
    "[LIVE-7] snapshots that nobody reads are made four at a time; too much that waits overflows, alone",
    async () => {
      const items = await createCollection(shared.client, spaceId);
      const filler = "x".repeat(900 << 10);
      for (const id of ["a", "b", "c", "d"]) await items.upsert([{ id, fields: { s: filler } }]);
      const windows = Array.from({ length: 8 }, (_, n) => windowOf(`w${n}`, items));
      const body = JSON.stringify({ subscriptions: [events("small", "slow.*"), ...windows] });
      await using socket = await openSocket(shared.server.port);
      socket.pause();
      socket.write(
        `POST /v1/streams HTTP/1.1\r\nHost: ${shared.server.address}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await until(async () => (await publish("slow.start")).subscribers === 1, "the small one to be open");
      // What others ask for after that has been read: so has as much of this as anybody wants to be read.
      for (const _ of windows) {
        const other = await shared.client.stream("POST", `${items.path}/query/subscribe`, items.target);
        await other.snapshot();
        await other.close();
      }
      await publish("slow.last", "told");
      socket.resume();
      await socket.readUntil('"told"', 20_000);
      await until(
        () => windows.every(({ id }) => new RegExp(`"id":"${id}","event":"(snapshot|closed)"`).test(socket.received())),
        "every window's first or last frame",
      );
      const text = socket.received();
      const overflowed = windows.filter(({ id }) =>
        text.includes(`{"id":"${id}","event":"closed","data":{"reason":"overflow"}}`),
      );
      const shown = windows.filter(({ id }) => text.includes(`{"id":"${id}","event":"snapshot"`));
      expect(overflowed.length).toBeGreaterThan(0);
      expect(overflowed.length + shown.length).toBe(8);
      expect(text).not.toContain('"id":"small","event":"closed"');
    },
    60_000,
  );
});
