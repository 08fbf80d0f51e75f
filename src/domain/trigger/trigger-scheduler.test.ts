import { describe, expect, test } from "bun:test";
import { at, createTriggerWorld, fires, MINUTE, SECOND, START } from "../../../test/support/server/trigger-world.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { RunOutcome } from "./port.ts";

describe("[AGENT-1] adopt", () => {
  test("a record pinned here is adopted; one pinned elsewhere is not", async () => {
    const world = createTriggerWorld({ active: "B" });
    world.put({ owner: "A" }, "mine");
    world.put({ owner: "B" }, "theirs");
    await world.tick();
    expect([world.scheduler.isHere("mine"), world.scheduler.isHere("theirs")]).toEqual([true, false]);
  });

  test("an unowned record is adopted on the active device alone, which writes its own id into it", async () => {
    const passive = createTriggerWorld({ active: "B" });
    passive.put({});
    await passive.tick();
    expect(passive.record()).not.toHaveProperty("owner");
    passive.election.activeId = "A";
    await passive.tick();
    expect(passive.record()["owner"]).toBe("A");
  });

  test("what a pruned device owned is taken over; what a device owns that is away is not", async () => {
    const world = createTriggerWorld();
    world.put({ owner: "B" });
    await world.pass(2 * MINUTE);
    expect(world.record()["owner"]).toBe("B");
    world.election.known.delete("B"); // its row may not have come yet
    world.scheduler.changed("t");
    await world.pass(2 * MINUTE);
    expect([world.record()["owner"], fires(world)]).toEqual(["B", 0]);
    world.election.pruned.add("B");
    world.scheduler.changed("t");
    await world.pass(2 * MINUTE);
    expect([world.record()["owner"], fires(world)]).toEqual(["A", 2]);
  });
});

describe("[AGENT-2] cron", () => {
  test("first sight only arms; then every occurrence once", async () => {
    const world = createTriggerWorld();
    world.put({});
    await world.tick();
    expect([fires(world), world.scheduler.nextDueMs("t")]).toEqual([0, START + MINUTE]);
    await world.pass(3 * MINUTE);
    expect(world.requests.map(({ scheduledAtMs }) => (scheduledAtMs - START) / MINUTE)).toEqual([1, 2, 3]);
    expect(world.record()).toMatchObject({
      runCount: 3,
      lastStatus: "ok",
      lastFuel: 10,
      lastMemPages: 21,
      failureRate: 0,
    });
    expect(world.record()["lastRunAt"]).toEqual({ $date: "2026-03-01T00:03:00.000Z" });
  });

  test("a machine that slept has missed what it missed", async () => {
    const world = createTriggerWorld();
    world.put({});
    await world.tick();
    await world.tick(8 * 60 * MINUTE + 30 * SECOND);
    expect(fires(world)).toBe(0);
    await world.pass(MINUTE);
    expect(fires(world)).toBe(1);
  });

  test("a clock that goes back a little fires nothing twice, one that was wrong by a day goes on", async () => {
    const world = createTriggerWorld();
    world.put({});
    await world.tick();
    await world.pass(MINUTE);
    world.clock.ms -= 30 * SECOND;
    await world.pass(40 * SECOND);
    expect(fires(world)).toBe(1);
    world.clock.ms -= 24 * 60 * MINUTE;
    await world.pass(MINUTE + SECOND);
    expect(fires(world)).toBe(2);
  });

  test("an object may name the zone, and daylight saving is the zone's", async () => {
    const world = createTriggerWorld();
    world.clock.ms = Date.parse("2026-03-28T12:00:00Z");
    world.put({ spec: { cron: "30 2 * * *", tz: "Europe/Berlin" } });
    await world.tick();
    expect(new Date(world.scheduler.nextDueMs("t") as number).toISOString()).toBe("2026-03-29T01:00:00.000Z");
    world.clock.ms = Date.parse("2026-10-24T12:00:00Z");
    world.put({ name: "again" });
    await world.tick();
    expect(new Date(world.scheduler.nextDueMs("t") as number).toISOString()).toBe("2026-10-25T00:30:00.000Z");
    await world.tick(13 * 60 * MINUTE);
    expect(new Date(world.scheduler.nextDueMs("t") as number).toISOString()).toBe("2026-10-26T01:30:00.000Z");
  });

  test("a fire that finds its trigger busy is skipped, or waits where overlap says so", async () => {
    const world = createTriggerWorld();
    const release = Promise.withResolvers<Partial<RunOutcome>>();
    world.answer(() => release.promise);
    world.put({}, "skip");
    world.put({ overlap: "queue" }, "queue");
    world.scheduler.tick();
    for (let second = 0; second < 125; second++) {
      world.clock.ms += SECOND;
      world.scheduler.tick();
      await Bun.sleep(0);
    }
    expect(fires(world)).toBe(2);
    release.resolve({});
    await world.idle();
    const statuses = (id: string) =>
      [...world.rows.values()].filter((row) => row["triggerId"] === id).map((row) => row["status"]);
    expect([statuses("skip"), statuses("queue")]).toEqual([
      ["ok", "skipped"],
      ["ok", "ok"],
    ]);
    expect(world.record("skip")).toMatchObject({ failureRate: 0, consecutiveFailures: 0 });
  });
});

describe("[AGENT-3] once", () => {
  test("a past time fires late on the next tick, once, and the trigger is off before its program runs", async () => {
    const world = createTriggerWorld();
    let seen: JsonObject = {};
    world.answer(async () => {
      seen = { ...world.record() };
      return {};
    });
    world.put({ kind: "once", spec: at(-3600) });
    await world.pass(5 * SECOND);
    expect(fires(world)).toBe(1);
    expect(seen).toMatchObject({ enabled: false, lastRunAt: { $date: expect.any(String) } });
    expect(world.record()["enabled"]).toBe(false);
  });

  test("a failure consumes the shot; a later time re-arms it", async () => {
    const world = createTriggerWorld();
    world.end("failed");
    world.put({ kind: "once", spec: at(2) });
    await world.pass(5 * SECOND);
    world.put({ enabled: true });
    await world.pass(5 * SECOND);
    expect(fires(world)).toBe(1);
    world.put({ spec: at(12) });
    await world.pass(5 * SECOND);
    expect([fires(world), world.record()["enabled"]]).toEqual([2, false]);
  });

  test("who has fired before a crash does not fire again", async () => {
    const world = createTriggerWorld();
    world.put({ kind: "once", spec: at(1), enabled: true, lastRunAt: { $date: "2026-03-01T00:00:01.000Z" } });
    await world.pass(5 * SECOND);
    expect(fires(world)).toBe(0);
  });
});

describe("[AGENT-4] event", () => {
  const spec: JsonObject = { dataset: "chat_messages", objectId: "chat" };

  test("a message in the watched chat fires with its event beside the arguments", async () => {
    const world = createTriggerWorld();
    world.put({ kind: "event", spec, args: { a: 1 } });
    await world.tick();
    await world.message({ objectId: "other" });
    await world.message({ text: "hello", messageId: "m1", agent: { name: "other" } });
    expect(world.requests.map(({ args }) => args)).toEqual([
      { a: 1, event: { space: "s", objectId: "chat", messageId: "m1", text: "hello", agent: { name: "other" } } },
    ]);
  });

  test("never for its own messages, nor for what was written before it watched", async () => {
    const world = createTriggerWorld();
    world.put({ kind: "event", spec, name: "bot" });
    await world.tick();
    await world.message({ agent: { name: "bot" } });
    await world.message({ createdAtMs: START - 10 * MINUTE });
    expect(fires(world)).toBe(0);
  });

  test("thirty in a minute, then it is told once and waits for room", async () => {
    const world = createTriggerWorld();
    world.put({ kind: "event", spec });
    await world.tick();
    for (let i = 0; i < 40; i++) await world.message();
    expect([fires(world), world.announced]).toEqual([30, ["trigger.rate_limited t"]]);
    expect(world.record()["lastStatus"]).toBe("rate_limited");
    await world.tick(MINUTE);
    await world.message();
    expect(fires(world)).toBe(31);
  });

  test("sixteen wait behind a run, more are dropped with a marker", async () => {
    const world = createTriggerWorld();
    const release = Promise.withResolvers<Partial<RunOutcome>>();
    world.answer(() => release.promise);
    world.put({ kind: "event", spec });
    world.scheduler.tick();
    for (let i = 0; i < 20; i++)
      world.scheduler.message({
        spaceId: "s",
        objectId: "chat",
        messageId: `${i}`,
        text: "",
        creator: "x",
        createdAtMs: START,
      });
    await Bun.sleep(0);
    expect(world.record()["lastStatus"]).toBe("queue_full");
    release.resolve({});
    await world.idle();
    expect(fires(world)).toBe(17);
  });
});
