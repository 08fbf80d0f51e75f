import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/errors-of.ts";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { createSigner } from "../../crypto/sign.ts";
import { svcError } from "../../protocol/errors.ts";
import { EVENT_SCOPES } from "../../protocol/event.ts";
import type { Json } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { createEventDelivery } from "./event-delivery.ts";
import type { EventQuery } from "./event-filter.ts";
import { createEventHub } from "./event-hub.ts";
import type { BusEvent, EventAudience, EventInput } from "./port.ts";

const accountId = accountIdOf(createSigner(new Uint8Array(32).fill(1)).publicKey);
const otherId = accountIdOf(createSigner(new Uint8Array(32).fill(2)).publicKey);

function createWorld() {
  const clock = { ms: 1_000_000, nowMs: () => clock.ms };
  const sent: { audience: EventAudience; topic: string; data: Json | undefined }[] = [];
  const watched = new Map<string, readonly string[]>();
  const network = {
    send: (audience: EventAudience, topic: string, data: Json | undefined) => void sent.push({ audience, topic, data }),
    watch: (audience: EventAudience, patterns: readonly string[]) =>
      void watched.set(audience.scope === "space" ? audience.spaceId : "account", patterns),
  };
  const delivery = createEventDelivery({ accountId, clock });
  const hub = createEventHub({
    accountId,
    clock,
    delivery,
    network,
    async requireSpace(spaceId) {
      if (spaceId === "gone") throw svcError("space.not_found", { spaceId });
      return { hasReadKey: spaceId !== "locked" };
    },
  });
  /** Opens a stream and collects what it is sent. */
  const listen = async (query: EventQuery) => {
    const events: BusEvent[] = [];
    const close = await hub.subscribe(query, (frame) => {
      const [name, data] = new TextDecoder().decode(frame).trimEnd().split("\n");
      expect(name).toBe("event: event");
      events.push(JSON.parse(data!.slice("data: ".length)) as BusEvent);
      return true;
    });
    return { events, close };
  };
  return { hub, delivery, clock, sent, watched, listen };
}

describe("publishing (EVENT-1, EVENT-2)", () => {
  test("reaches streams that are open, stamps the sender, and counts them", async () => {
    const { hub, listen } = createWorld();
    expect(await hub.publish({ type: "a.b", scope: "device" })).toEqual({ subscribers: 0 });
    const one = await listen({});
    const two = await listen({});
    expect(await hub.publish({ type: "a.b", scope: "device", target: "t", data: { x: [1] } })).toEqual({
      subscribers: 2,
    });
    const sender = { identity: accountId, self: true };
    expect(one.events).toEqual([{ type: "a.b", scope: "device", target: "t", data: { x: [1] }, sender }]);
    expect(two.events).toEqual(one.events);
    one.close();
    one.close();
    expect(await hub.publish({ type: "a.b", scope: "account" })).toEqual({ subscribers: 1 });
    expect(one.events.length).toBe(1);
  });

  test("does not count a stream that cannot take the event, nor observers", async () => {
    const { hub } = createWorld();
    await hub.subscribe({}, () => false);
    const seen: string[] = [];
    const stop = hub.observe((event) => void seen.push(event.type));
    expect(await hub.publish({ type: "a", scope: "device" })).toEqual({ subscribers: 0 });
    stop();
    await hub.publish({ type: "b", scope: "device" });
    expect(seen).toEqual(["a"]);
  });

  test("encodes an event once for all its streams", async () => {
    const { hub } = createWorld();
    const frames = new Set<Uint8Array>();
    for (let i = 0; i < 5; i++) await hub.subscribe({}, (frame) => frames.add(frame) !== undefined);
    await hub.publish({ type: "a", scope: "device" });
    expect(frames.size).toBe(1);
  });

  const FAULTS: [input: EventInput, code: string, field?: string][] = [
    [{ type: "", scope: "device" }, "request.invalid_field", "type"],
    [{ type: "A", scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a..b", scope: "device" }, "request.invalid_field", "type"],
    [{ type: ".a", scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a.*", scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a-b", scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a".repeat(129), scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a".repeat(15).split("").join("."), scope: "device" }, "request.invalid_field", "type"],
    [{ type: "a".repeat(128), scope: "device", target: "t".repeat(128) }, "request.invalid_field", "type"],
    [{ type: "a", scope: "device", target: "" }, "request.invalid_field", "target"],
    [{ type: "a", scope: "device", target: "a/b" }, "request.invalid_field", "target"],
    [{ type: "a", scope: "device", target: "x".repeat(129) }, "request.invalid_field", "target"],
    [{ type: "a", scope: "space" }, "request.missing_field", "spaceId"],
    [{ type: "a", scope: "space", spaceId: "" }, "request.missing_field", "spaceId"],
    [{ type: "a", scope: "account", spaceId: "s" }, "request.invalid_field", "spaceId"],
    [{ type: "a", scope: "device", spaceId: "s" }, "request.invalid_field", "spaceId"],
    [{ type: "a", scope: "space", spaceId: "gone" }, "space.not_found"],
    [{ type: "a", scope: "space", spaceId: "locked" }, "events.no_read_key"],
    [{ type: "a", scope: "device", data: "x".repeat(LIMITS.eventDataBytes - 1) }, "events.payload_too_large"],
    [{ type: "editor.cursor", scope: "account", target: otherId }, "events.topic_not_owned"],
    [{ type: "editor.cursor", scope: "device", target: `object.${otherId}` }, "events.topic_not_owned"],
  ];
  for (const [input, code, field] of FAULTS) {
    test(`${code} for ${JSON.stringify(input).slice(0, 70)}`, async () => {
      const { hub, listen, sent } = createWorld();
      const { events } = await listen({});
      const fault = await rejectionOf(hub.publish(input));
      expect(fault.code).toBe(code);
      if (field) expect(fault.details).toMatchObject({ field });
      expect(events).toEqual([]);
      expect(sent).toEqual([]);
    });
  }

  test("at the limits is taken", async () => {
    const { hub } = createWorld();
    const fine: EventInput[] = [
      { type: "a".repeat(128), scope: "device" },
      { type: `${"a.".repeat(13)}a`, scope: "device", target: "t" },
      { type: "a_1.b", scope: "device", target: "x".repeat(127) },
      { type: "a", scope: "device", data: "x".repeat(LIMITS.eventDataBytes - 2) },
      { type: "a", scope: "device", data: null },
      { type: "editor.cursor", scope: "device", target: accountId },
      { type: "editor.cursor", scope: "device", target: `${otherId}-x` },
      { type: "editor.cursors", scope: "device", target: otherId },
    ];
    for (const input of fine) expect(await hub.publish(input)).toEqual({ subscribers: 0 });
  });
});

describe("filters are ANDed across dimensions and ORed within one (EVENT-1)", () => {
  const CASES: [query: EventQuery, event: EventInput, matches: boolean][] = [
    [{}, { type: "a", scope: "device" }, true],
    [{}, { type: "a", scope: "account" }, true],
    [{}, { type: "a", scope: "space", spaceId: "s" }, false],
    [{ scope: ["account"] }, { type: "a", scope: "device" }, false],
    [{ scope: ["account", "device"] }, { type: "a", scope: "device" }, true],
    [{ spaceId: ["s"] }, { type: "a", scope: "space", spaceId: "s" }, true],
    [{ spaceId: ["s"] }, { type: "a", scope: "device" }, false],
    [{ spaceId: ["s", "t"] }, { type: "a", scope: "space", spaceId: "t" }, true],
    [{ spaceId: ["s"] }, { type: "a", scope: "space", spaceId: "t" }, false],
    [{ scope: ["space", "device"], spaceId: ["s"] }, { type: "a", scope: "device" }, true],
    [{ scope: ["space"], spaceId: ["s"] }, { type: "a", scope: "account" }, false],
    [{ type: ["a.b"] }, { type: "a.b", scope: "device" }, true],
    [{ type: ["a.b"] }, { type: "a.b.c", scope: "device" }, false],
    [{ type: ["a.*"] }, { type: "a", scope: "device" }, true],
    [{ type: ["a.*"] }, { type: "a.b.c", scope: "device" }, true],
    [{ type: ["a.*"] }, { type: "ab", scope: "device" }, false],
    [{ type: ["a.b.*"] }, { type: "a", scope: "device" }, false],
    [{ type: ["x", "a.*"] }, { type: "a.b", scope: "device" }, true],
    [{ target: ["t"] }, { type: "a", scope: "device", target: "t" }, true],
    [{ target: ["t", "u"] }, { type: "a", scope: "device", target: "u" }, true],
    [{ target: ["t"] }, { type: "a", scope: "device" }, false],
    [{ type: ["a"], target: ["t"] }, { type: "a", scope: "device", target: "u" }, false],
    [{ type: ["a"], target: ["t"], scope: ["account"] }, { type: "a", scope: "account", target: "t" }, true],
  ];
  for (const [query, event, matches] of CASES) {
    test(`${JSON.stringify(query)} and ${JSON.stringify(event)}`, async () => {
      const { hub, listen } = createWorld();
      const { events } = await listen(query);
      expect((await hub.publish(event)).subscribers).toBe(matches ? 1 : 0);
      expect(events.length).toBe(matches ? 1 : 0);
    });
  }

  const FAULTS: [query: EventQuery, code: string, field?: string][] = [
    [{ scope: ["network"] }, "request.invalid_field", "scope"],
    [{ scope: ["device", ""] }, "request.invalid_field", "scope"],
    [{ scope: ["space"] }, "request.missing_field", "spaceId"],
    [{ scope: ["device", "account"], spaceId: ["s"] }, "request.invalid_field", "spaceId"],
    [{ spaceId: [""] }, "request.invalid_field", "spaceId"],
    [{ spaceId: ["s", "gone"] }, "space.not_found"],
    [{ type: ["*"] }, "request.invalid_field", "type"],
    [{ type: ["a*"] }, "request.invalid_field", "type"],
    [{ type: ["a.*.b"] }, "request.invalid_field", "type"],
    [{ type: [""] }, "request.invalid_field", "type"],
    [{ target: ["a b"] }, "request.invalid_field", "target"],
    [{ type: new Array<string>(257).fill("a") }, "request.invalid_field", "type"],
  ];
  for (const [query, code, field] of FAULTS) {
    test(`${code} for ${JSON.stringify(query).slice(0, 60)}`, async () => {
      const { hub, listen } = createWorld();
      const fault = await rejectionOf(listen(query));
      expect(fault.code).toBe(code);
      if (field) expect(fault.details).toMatchObject({ field });
      expect(hub.stats().subscribers).toBe(0);
    });
  }

  test("five hundred streams with mixed filters each get exactly what they asked for", async () => {
    const seed = runSeed("event hub");
    const rng = createRng(seed);
    const { hub, listen } = createWorld();
    const types = ["a", "a.b", "a.b.c", "b", "process.progress", "process.done"];
    const some = <T>(items: readonly T[], count: number): T[] => rng.shuffle(items).slice(0, count);
    const streams: { query: EventQuery; events: BusEvent[] }[] = [];
    for (let i = 0; i < 500; i++) {
      const spaceId = rng.chance(0.5) ? some(["s1", "s2", "s3"], rng.int(1, 2)) : [];
      const scope = spaceId.length > 0 ? rng.pick([[], ["space"], ["space", "device"]]) : rng.pick([[], ["account"]]);
      const type = some([...types, "a.*", "a.b.*", "process.*"], rng.int(0, 3));
      const query = { scope, spaceId, type, target: some(["t1", "t2"], rng.int(0, 2)) };
      streams.push({ query, events: (await listen(query)).events });
    }
    /** The rules once more, as plainly as can be. */
    const wants = ({ scope = [], spaceId = [], type = [], target = [] }: EventQuery, event: EventInput): boolean => {
      const scopes = scope.length > 0 ? scope : spaceId.length > 0 ? ["space"] : ["device", "account"];
      const typed = type.some((wanted) =>
        wanted.endsWith(".*") ? `${event.type}.`.startsWith(wanted.slice(0, -1)) : wanted === event.type,
      );
      return (
        scopes.includes(event.scope) &&
        (event.scope !== "space" || spaceId.includes(event.spaceId!)) &&
        (type.length === 0 || typed) &&
        (target.length === 0 || target.includes(event.target ?? ""))
      );
    };
    const expected = streams.map((): EventInput[] => []);
    for (let i = 0; i < 300; i++) {
      const scope = rng.pick(EVENT_SCOPES);
      const target = rng.pick([undefined, "t1", "t2", "t3"]);
      const event: EventInput = {
        type: rng.pick(types),
        scope,
        ...(scope === "space" ? { spaceId: rng.pick(["s1", "s2", "s3", "s4"]) } : {}),
        ...(target === undefined ? {} : { target }),
        data: i,
      };
      let reached = 0;
      streams.forEach(({ query }, index) => {
        if (!wants(query, event)) return;
        reached++;
        expected[index]!.push(event);
      });
      expect(await hub.publish(event)).toEqual({ subscribers: reached });
    }
    streams.forEach(({ events }, index) => {
      const sender = { identity: accountId, self: true };
      expect(events).toEqual(expected[index]!.map((event) => ({ ...event, sender })));
    });
  });
});

describe("the network port (EVENT-1)", () => {
  test("events beyond device scope go out under their topic, in their audience", async () => {
    const { hub, sent } = createWorld();
    await hub.publish({ type: "a.b", scope: "device" });
    await hub.publish({ type: "a.b", scope: "account", data: 1 });
    await hub.publish({ type: "a.b", scope: "space", spaceId: "s", target: "t" });
    await hub.publish({ type: "editor.cursor", scope: "space", spaceId: "s", target: "o1" });
    const space = { scope: "space", spaceId: "s" } as const;
    expect(sent).toEqual([
      { audience: { scope: "account" }, topic: "ev/a/b/-", data: 1 },
      { audience: space, topic: "ev/a/b/t", data: undefined },
      { audience: space, topic: `acc/ev/editor/cursor/o1/${accountId}`, data: undefined },
    ]);
  });

  test("sends 60 at once and then 30 a second; the rest is delivered here alone, and counted", async () => {
    const { hub, clock, sent, listen } = createWorld();
    const { events } = await listen({});
    const publish = async (count: number) => {
      for (let i = 0; i < count; i++) await hub.publish({ type: "a", scope: "account" });
    };
    await publish(100);
    expect(sent.length).toBe(60);
    clock.ms += 1000;
    await publish(100);
    expect(sent.length).toBe(90);
    clock.ms += 3_600_000;
    await publish(100);
    expect(sent.length).toBe(150);
    expect(events.length).toBe(300);
    expect(hub.stats().notSent).toBe(150);
  });

  test("what comes in is delivered under its sender's name", async () => {
    const { delivery, listen } = createWorld();
    const { events } = await listen({ spaceId: ["s"] });
    const audience = { scope: "space", spaceId: "s" } as const;
    expect(delivery.receive({ audience, topic: "ev/a/b/t", data: 5, identity: otherId, peerId: "p" })).toBeUndefined();
    expect(delivery.receive({ audience, topic: "ev/a/-", identity: accountId, peerId: "p" })).toBeUndefined();
    expect(
      delivery.receive({ audience, topic: `acc/ev/editor/cursor/o/${otherId}`, identity: otherId, peerId: "p" }),
    ).toBeUndefined();
    expect(events).toEqual([
      { type: "a.b", scope: "space", spaceId: "s", target: "t", data: 5, sender: { identity: otherId, self: false } },
      { type: "a", scope: "space", spaceId: "s", sender: { identity: accountId, self: true } },
      { type: "editor.cursor", scope: "space", spaceId: "s", target: "o", sender: { identity: otherId, self: false } },
    ]);
  });

  test("what is malformed, not the sender's or too fast is dropped and counted", async () => {
    const { hub, delivery, listen } = createWorld();
    const { events } = await listen({});
    const from = (topic: string, data: Json | undefined, peerId: string) =>
      delivery.receive({
        audience: { scope: "account" },
        topic,
        ...(data === undefined ? {} : { data }),
        identity: otherId,
        peerId,
      });
    const malformed = [
      "",
      "ev",
      "ev/a",
      "xx/a/t",
      "ev//t",
      "ev/A/t",
      "ev/a/b c",
      "ev/a/b/",
      "acc/ev/a/t/x",
      "ev/editor/cursor/t",
      "acc",
      "acc/ev",
      `ev/${"a/".repeat(20)}t`,
      `ev/${"a".repeat(400)}/t`,
    ];
    for (const [index, topic] of malformed.entries()) expect(from(topic, undefined, `m${index}`)).toBe("malformed");
    expect(from("ev/a/t", "x".repeat(LIMITS.eventDataBytes), "big")).toBe("malformed");
    expect(from(`acc/ev/editor/cursor/o/${accountId}`, undefined, "p")).toBe("not_owned");
    expect(from(`acc/ev/editor/cursor/${accountId}/${otherId}`, undefined, "p")).toBe("not_owned");
    expect(events).toEqual([]);
    for (let i = 0; i < 60; i++) expect(from("ev/a/t", i, "fast")).toBeUndefined();
    expect(from("ev/a/t", 60, "fast")).toBe("too_fast");
    expect(from("ev/a/t", 0, "other")).toBeUndefined();
    expect(events.length).toBe(61);
    expect(hub.stats().dropped).toEqual({ malformed: malformed.length + 1, not_owned: 2, too_fast: 1 });
    // A name that is another one every time is worth nothing: what one account sends is counted by its key.
    const names = Array.from({ length: 1000 }, (_, index) => from("ev/a/t", 60, `device ${index}`));
    expect(names.filter((reason) => reason === undefined).length).toBeLessThan(240);
  });
});
