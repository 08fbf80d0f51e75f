/** The event bus over HTTP: publishing, filters, faults, the budget of patterns, many streams and a slow one. */
import { describe, expect } from "bun:test";
import { createRng, runSeed } from "../support/rng.ts";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, type SpaceInfo, until } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { openSocket, type RawSocket } from "../support/server/raw-http.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";
import type { SseStream } from "../support/server/sse-stream.ts";

/** A well-formed account id that is not this server's. */
const OTHER_ACCOUNT = "ABLJen9TXuZVjSx3qoexsAq2Hft9vShvQwpCCc6TZz7HDJi8";
let space: SpaceInfo;
let accountId: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  accountId = (await client.get<{ id: string }>("/v1/account")).id;
});
const context = () => ({ client: shared.client, vars: { spaceId: space.id } });

const publish = (event: JsonObject) => shared.client.post<{ subscribers: number }>("/v1/events", event);
async function listen(query = ""): Promise<SseStream> {
  const stream = await shared.client.stream("GET", `/v1/events/subscribe${query}`);
  expect(await stream.expect("ready")).toEqual({});
  return stream;
}

describe("publish and subscribe", () => {
  rule("[EVENT-1] a frame is the event with the sender the server stamped", async () => {
    await using stream = await listen("?type=t1");
    const event = { type: "t1", scope: "account", target: "o-1", data: { deep: [1, null, "é"] } };
    expect(await publish(event)).toEqual({ subscribers: 1 });
    expect(await stream.expect("event")).toEqual({ ...event, sender: { identity: accountId, self: true } });
  });

  rule("[EVENT-1] only what is published after connecting is delivered, and every stream counts", async () => {
    expect(await publish({ type: "t2", scope: "device" })).toEqual({ subscribers: 0 });
    await using one = await listen("?type=t2");
    await using two = await listen("?type=t2&type=other");
    expect(await publish({ type: "t2", scope: "device", data: 1 })).toEqual({ subscribers: 2 });
    for (const stream of [one, two]) expect(await stream.expect("event")).toMatchObject({ data: 1 });
    await one.close();
    await until(
      async () => (await publish({ type: "t2", scope: "device" })).subscribers === 1,
      "the closed stream to be gone",
    );
  });

  rule("[EVENT-1] space events reach the streams that name the space, and no others", async () => {
    const other = await createSpace(shared.client);
    await using mine = await listen(`?spaceId=${space.id}&type=t3`);
    await using both = await listen(`?scope=space&scope=device&spaceId=${space.id}&spaceId=${other.id}&type=t3`);
    await using all = await listen("?type=t3");
    expect(await publish({ type: "t3", scope: "space", spaceId: space.id, data: 1 })).toEqual({ subscribers: 2 });
    expect(await publish({ type: "t3", scope: "space", spaceId: other.id, data: 2 })).toEqual({ subscribers: 1 });
    expect(await publish({ type: "t3", scope: "device", data: 3 })).toEqual({ subscribers: 2 });
    expect(await mine.expect("event")).toMatchObject({ data: 1, spaceId: space.id });
    for (const data of [1, 2, 3]) expect(await both.expect("event")).toMatchObject({ data });
    expect(await all.expect("event")).toMatchObject({ data: 3 });
  });

  rule("[EVENT-1] filters are ANDed across dimensions and ORed within one", async () => {
    await using stream = await listen("?type=t4.*&type=x&target=a&target=b&scope=device");
    const cases: [event: JsonObject, subscribers: number][] = [
      [{ type: "t4", scope: "device", target: "a" }, 1],
      [{ type: "t4.deep.er", scope: "device", target: "b" }, 1],
      [{ type: "t40", scope: "device", target: "a" }, 0],
      [{ type: "x", scope: "device", target: "b" }, 1],
      [{ type: "x", scope: "device" }, 0],
      [{ type: "x", scope: "device", target: "c" }, 0],
      [{ type: "x", scope: "account", target: "a" }, 0],
    ];
    for (const [event, subscribers] of cases) expect(await publish(event)).toEqual({ subscribers });
    for (const [event, subscribers] of cases)
      if (subscribers > 0) expect(await stream.expect("event")).toMatchObject(event);
  });
});

describe("faults", () => {
  const post = (title: string, body: unknown, status: number, code: string, details: JsonObject = {}): Scenario => ({
    title: `[EVENT-2] ${title}: ${code}`,
    method: "POST",
    path: "/v1/events",
    body,
    status,
    code,
    details,
  });
  const get = (title: string, query: string, status: number, code: string, details: JsonObject = {}): Scenario => ({
    title: `[EVENT-2] subscribe, ${title}: ${code}`,
    method: "GET",
    path: `/v1/events/subscribe${query}`,
    status,
    code,
    details,
  });
  const invalid = "request.invalid_field";
  const missing = "request.missing_field";
  const many = Array.from({ length: 101 }, (_, index) => `type=budget${index}`).join("&");

  runScenarios(context, [
    post("no type", { scope: "device" }, 400, missing, { field: "type" }),
    post("no scope", { type: "a" }, 400, missing, { field: "scope" }),
    post("an unknown scope", { type: "a", scope: "network" }, 400, invalid, { field: "scope" }),
    post("a type of the wrong JSON type", { type: 5, scope: "device" }, 400, "request.schema", { path: "type" }),
    post("bad grammar of type", { type: "A.b", scope: "device" }, 400, invalid, { field: "type" }),
    post("type too long", { type: "a".repeat(129), scope: "device" }, 400, invalid, { field: "type" }),
    post("bad grammar of target", { type: "a", scope: "device", target: "a/b" }, 400, invalid, { field: "target" }),
    post("a topic of 17 segments", { type: `${"a.".repeat(14)}a`, scope: "device" }, 400, invalid, { field: "type" }),
    post("a topic over 256 bytes", { type: "a".repeat(128), target: "b".repeat(128), scope: "device" }, 400, invalid),
    post("a sender", { type: "a", scope: "device", sender: {} }, 400, "request.unknown_field", { fields: ["sender"] }),
    post("space scope without spaceId", { type: "a", scope: "space" }, 400, missing, { field: "spaceId" }),
    post("spaceId in another scope", { type: "a", scope: "device", spaceId: "{spaceId}" }, 400, invalid),
    {
      ...post("", { type: "a", scope: "space", spaceId: "nowhere" }, 404, "space.not_found"),
      title: "[API-11] an unknown space: space.not_found",
    },
    post(
      "data over 64 KiB",
      { type: "a", scope: "device", data: "x".repeat(65_535) },
      400,
      "events.payload_too_large",
      {
        limitBytes: 65_536,
      },
    ),
    post(
      "another account's own topic",
      { type: "editor.cursor", scope: "account", target: OTHER_ACCOUNT },
      403,
      "events.topic_not_owned",
    ),
    get("an unknown scope", "?scope=all", 400, invalid, { field: "scope" }),
    get("space scope without spaceId", "?scope=space", 400, missing, { field: "spaceId" }),
    get("spaceId with scopes that exclude space", "?scope=device&spaceId={spaceId}", 400, invalid, {
      field: "spaceId",
    }),
    {
      ...get("", "?spaceId=nowhere", 404, "space.not_found"),
      title: "[API-11] subscribe, an unknown space: space.not_found",
    },
    get("a bad pattern", "?type=a.*.b", 400, invalid, { field: "type" }),
    get("a bad target", "?target=a%2Fb", 400, invalid, { field: "target" }),
    {
      ...get("", `?spaceId={spaceId}&${many}`, 409, "events.too_many_patterns", { limit: 100 }),
      title: "[EVENT-3] subscribe, 101 patterns in a space: events.too_many_patterns",
    },
  ]);

  rule("[EVENT-2] at the limits an event is taken", async () => {
    await publish({ type: "a", scope: "device", data: "x".repeat(65_534) });
    await publish({ type: `${"a.".repeat(13)}a`, scope: "device", target: "x" });
    await publish({ type: "editor.cursor", scope: "account", target: accountId });
  });

  rule("[EVENT-3] a space's budget of patterns is given back when its streams close", async () => {
    const fresh = await createSpace(shared.client);
    const types = Array.from({ length: 100 }, (_, index) => `type=b${index}`).join("&");
    const full = await listen(`?spaceId=${fresh.id}&${types}`);
    const more = `/v1/events/subscribe?spaceId=${fresh.id}&type=one.more`;
    await shared.client.fails("GET", more, undefined, 409, "events.too_many_patterns");
    await full.close();
    let open: SseStream | undefined;
    await until(async () => {
      open = await shared.client.stream("GET", more).catch(() => undefined);
      return open !== undefined;
    }, "room for one more pattern");
    await open!.close();
  });

  rule("[API-11] a deleted space takes no events", async () => {
    const gone = await createSpace(shared.client);
    await shared.client.del(`/v1/spaces/${gone.id}`);
    const event = { type: "a", scope: "space", spaceId: gone.id };
    await shared.client.fails("POST", "/v1/events", event, 409, "space.deleted");
    await shared.client.fails("GET", `/v1/events/subscribe?spaceId=${gone.id}`, undefined, 409, "space.deleted");
  });
});

/** A stream on a connection of its own: a fetch client does not hold 500 at once. */
async function listenRaw(query: string): Promise<{ socket: RawSocket; events(): JsonObject[] }> {
  const socket = await openSocket(shared.server.port);
  socket.write(`GET /v1/events/subscribe${query} HTTP/1.1\r\nHost: ${shared.server.address}\r\n\r\n`);
  await socket.readUntil("event: ready");
  const events = () =>
    [...socket.received().matchAll(/event: event\ndata: (.*)\n/g)].map((match) => JSON.parse(match[1]!) as JsonObject);
  return { socket, events };
}

describe("many streams", () => {
  rule(
    "[EVENT-1] [LIVE-4] 500 streams with mixed filters get what they asked for, and a slow one closes alone",
    async () => {
      const rng = createRng(runSeed("event streams"));
      const types = ["m.a", "m.b", "m.b.c"];
      const patterns = [...types, "m.*", "m.b.*"];
      const streams = await Promise.all(
        Array.from({ length: 500 }, async () => {
          const pattern = rng.pick(patterns);
          return { pattern, ...(await listenRaw(`?type=${pattern}`)) };
        }),
      );
      const matches = (pattern: string, type: string) =>
        pattern.endsWith(".*") ? `${type}.`.startsWith(pattern.slice(0, -1)) : pattern === type;
      const { socket: slow } = await listenRaw("?type=slow&type=m.a");
      slow.pause();

      // The slow one has its socket's buffers and 16 events more; nobody else is told of what fills them.
      const data = "x".repeat(16 << 10);
      const published: { type: string; data: number }[] = [];
      let reached = 0;
      for (; reached < 5000; reached++) {
        if (reached % 10 === 0) {
          const event = { type: rng.pick(types), data: reached };
          published.push(event);
          const expected = streams.filter(({ pattern }) => matches(pattern, event.type)).length;
          const { subscribers } = await publish({ ...event, scope: "device" });
          if (event.type !== "m.a") expect(subscribers).toBe(expected);
          else if (subscribers !== expected + 1) break;
        }
        if ((await publish({ type: "slow", scope: "device", data })).subscribers === 0) break;
      }
      expect(reached).toBeGreaterThan(16);
      expect(reached).toBeLessThan(5000);
      expect(await publish({ type: "slow", scope: "device" })).toEqual({ subscribers: 0 });

      for (const { pattern, socket, events } of streams) {
        const wanted = published.filter(({ type }) => matches(pattern, type));
        await until(() => events().length >= wanted.length, `the events of ${pattern}`);
        expect(events().map(({ type, data }) => ({ type, data }))).toEqual(wanted);
        expect(socket.received()).not.toContain("event: closed");
      }
      slow.resume();
      await slow.readUntil('event: closed\ndata: {"reason":"overflow"}', 20_000);
      for (const { socket } of streams) socket.destroy();
      slow.destroy();
    },
    120_000,
  );
});
