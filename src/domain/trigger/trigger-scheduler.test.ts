import { describe, expect, test } from "bun:test";
import { silentLog } from "../../base/log.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { ChatNews, RunOutcome, RunRequest, RunStatus, RunStore, TriggerStore } from "./port.ts";
import { CHAT_WATCH } from "./trigger-definition.ts";
import { createTriggerRuns } from "./trigger-runs.ts";
import { createTriggerScheduler } from "./trigger-scheduler.ts";

const START = Date.parse("2026-03-01T00:00:00Z");
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Devices over one set of records, each with a scheduler and a clock that the test moves. */
function createWorld({ self = "A", active = "A", known = ["A", "B"] } = {}) {
  const records = new Map<string, JsonObject>();
  const rows = new Map<string, JsonObject>();
  const traces = new Map<string, string>();
  const election = { self, activeId: active as string | undefined, known: new Set(known) };
  const clock = { ms: START, nowMs: () => clock.ms };
  const announced: string[] = [];
  const requests: RunRequest[] = [];
  let nextRun = 0;
  let answer: (request: RunRequest) => Promise<Partial<RunOutcome>> = async () => ({});
  /** What every write of a row waits for. */
  let writing: () => Promise<void> = async () => {};

  const triggers: TriggerStore = {
    list: () => [...records.values()],
    get: (id) => records.get(id),
    async write(id, set, unset = []) {
      const record = records.get(id);
      if (!record) return;
      const next = { ...record, ...set };
      for (const leaf of unset) delete next[leaf];
      records.set(id, next);
      scheduler.touched(id);
    },
  };
  const runStore: RunStore = {
    list: (triggerId) => [...rows.values()].filter((row) => row["triggerId"] === triggerId).reverse(),
    running: () => [...rows.values()].filter((row) => row["status"] === "running" && row["device"] === self),
    async insert(id, fields) {
      await writing();
      rows.set(id, { id, ...fields });
    },
    keepTrace: async (id, trace) => void traces.set(id, trace),
    async complete(id, fields) {
      await writing();
      rows.set(id, { ...rows.get(id), ...fields });
    },
    remove: async (ids) => {
      for (const id of ids) rows.delete(id);
    },
  };
  const runs = createTriggerRuns({ triggers, runs: runStore, self, clock });
  const scheduler = createTriggerScheduler({
    triggers,
    runs,
    election: { self, active: () => election.activeId, isKnown: (peerId) => election.known.has(peerId) },
    execute: async (request) => {
      requests.push(request);
      return { status: "ok", fuel: 10, memPages: 21, costUsd: null, ...(await answer(request)) };
    },
    clock,
    log: silentLog,
    newRunId: () => `run_${nextRun++}`,
    announce: (type, id) => void announced.push(`${type} ${id}`),
    isOwnMessage: (trigger, { agent }) => agent?.["name"] === trigger.name,
    isNative: ({ id }) => id === CHAT_WATCH,
  });
  const world = {
    records,
    rows,
    traces,
    election,
    clock,
    announced,
    requests,
    runs,
    scheduler,
    record: (id = "t") => records.get(id) as JsonObject,
    put(fields: JsonObject, id = "t") {
      records.set(id, {
        id,
        kind: "cron",
        spec: "* * * * *",
        program: "p@v1",
        enabled: true,
        ...records.get(id),
        ...fields,
      });
      scheduler.touched(id);
    },
    answer(next: typeof answer) {
      answer = next;
    },
    writing(next: typeof writing) {
      writing = next;
    },
    end(status: RunStatus) {
      answer = async () => ({ status });
    },
    /** Lets what is under way come to its end, and the records be looked at again. */
    async settle() {
      for (let round = 0; round < 5; round++) {
        await scheduler.idle();
        await Bun.sleep(0);
        scheduler.tick();
      }
      await scheduler.idle();
    },
    async tick(ms = 0) {
      clock.ms += ms;
      scheduler.tick();
      await world.settle();
    },
    /** Ticks every second for so long. */
    async pass(ms: number) {
      for (const until = clock.ms + ms; clock.ms < until; ) await world.tick(SECOND);
    },
    message(fields: Partial<ChatNews> = {}) {
      const news = { spaceId: "s", objectId: "chat", messageId: "m", text: "hi", creator: "me", createdAtMs: clock.ms };
      scheduler.message({ ...news, ...fields });
      return world.settle();
    },
  };
  return world;
}

const fires = (world: { requests: RunRequest[] }) => world.requests.length;
const at = (seconds: number): Json => ({ at: START / 1000 + seconds });

describe("[AGENT-1] adopt", () => {
  test("a record pinned here is adopted; one pinned elsewhere is not", async () => {
    const world = createWorld({ active: "B" });
    world.put({ owner: "A" }, "mine");
    world.put({ owner: "B" }, "theirs");
    await world.tick();
    expect([world.scheduler.isHere("mine"), world.scheduler.isHere("theirs")]).toEqual([true, false]);
  });

  test("an unowned record is adopted on the active device alone, which writes its own id into it", async () => {
    const passive = createWorld({ active: "B" });
    passive.put({});
    await passive.tick();
    expect(passive.record()).not.toHaveProperty("owner");
    passive.election.activeId = "A";
    await passive.tick();
    expect(passive.record()["owner"]).toBe("A");
  });

  test("what a pruned device owned is taken over; what a device owns that is away is not", async () => {
    const world = createWorld();
    world.put({ owner: "B" });
    await world.pass(2 * MINUTE);
    expect(world.record()["owner"]).toBe("B");
    world.election.known.delete("B");
    world.scheduler.touched("t");
    await world.pass(2 * MINUTE);
    expect([world.record()["owner"], fires(world)]).toEqual(["A", 2]);
  });
});

describe("[AGENT-2] cron", () => {
  test("first sight only arms; then every occurrence once", async () => {
    const world = createWorld();
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
    const world = createWorld();
    world.put({});
    await world.tick();
    await world.tick(8 * 60 * MINUTE + 30 * SECOND);
    expect(fires(world)).toBe(0);
    await world.pass(MINUTE);
    expect(fires(world)).toBe(1);
  });

  test("a clock that goes back a little fires nothing twice, one that was wrong by a day goes on", async () => {
    const world = createWorld();
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
    const world = createWorld();
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
    const world = createWorld();
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
    await world.settle();
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
    const world = createWorld();
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
    const world = createWorld();
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
    const world = createWorld();
    world.put({ kind: "once", spec: at(1), enabled: true, lastRunAt: { $date: "2026-03-01T00:00:01.000Z" } });
    await world.pass(5 * SECOND);
    expect(fires(world)).toBe(0);
  });
});

describe("[AGENT-4] event", () => {
  const spec: JsonObject = { dataset: "chat_messages", objectId: "chat" };

  test("a message in the watched chat fires with its event beside the arguments", async () => {
    const world = createWorld();
    world.put({ kind: "event", spec, args: { a: 1 } });
    await world.tick();
    await world.message({ objectId: "other" });
    await world.message({ text: "hello", messageId: "m1", agent: { name: "other" } });
    expect(world.requests.map(({ args }) => args)).toEqual([
      { a: 1, event: { space: "s", objectId: "chat", messageId: "m1", text: "hello", agent: { name: "other" } } },
    ]);
  });

  test("never for its own messages, nor for what was written before it watched", async () => {
    const world = createWorld();
    world.put({ kind: "event", spec, name: "bot" });
    await world.tick();
    await world.message({ agent: { name: "bot" } });
    await world.message({ createdAtMs: START - 10 * MINUTE });
    expect(fires(world)).toBe(0);
  });

  test("thirty in a minute, then it is told once and waits for room", async () => {
    const world = createWorld();
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
    const world = createWorld();
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
    await world.settle();
    expect(fires(world)).toBe(17);
  });
});

describe("[AGENT-5] refresh, evict, repin", () => {
  test("an edit re-arms forward; enabled is applied in place", async () => {
    const world = createWorld();
    world.put({});
    await world.tick(30 * SECOND);
    world.put({ spec: "*/5 * * * *" });
    await world.tick();
    expect(world.scheduler.nextDueMs("t")).toBe(START + 5 * MINUTE);
    world.put({ enabled: false });
    await world.tick();
    expect(world.scheduler.nextDueMs("t")).toBeUndefined();
    await world.pass(6 * MINUTE);
    world.put({ enabled: true });
    await world.tick();
    expect([fires(world), world.scheduler.nextDueMs("t")]).toEqual([0, START + 10 * MINUTE]);
  });

  test("a record that is deleted, or pinned elsewhere, is gone within a tick; one whose owner is cleared floats", async () => {
    const world = createWorld();
    world.put({});
    world.put({}, "u");
    await world.tick();
    world.records.delete("t");
    world.scheduler.touched("t");
    world.put({ owner: "B" }, "u");
    await world.tick();
    expect([world.scheduler.isHere("t"), world.scheduler.isHere("u")]).toEqual([false, false]);
    await world.pass(2 * MINUTE);
    expect(fires(world)).toBe(0);
    world.put({ owner: "" }, "u");
    await world.pass(MINUTE);
    expect([world.record("u")["owner"], fires(world)]).toEqual(["A", 1]);
  });

  test("what native code answers for is left alone", async () => {
    const world = createWorld();
    world.put({ kind: "event", spec: { dataset: "chat_messages", objectId: "chat" } }, CHAT_WATCH);
    await world.tick();
    expect([world.scheduler.isHere(CHAT_WATCH), world.record(CHAT_WATCH)["owner"]]).toEqual([false, undefined]);
  });
});

describe("[AGENT-6] circuit breaker", () => {
  const counting: RunStatus[] = ["failed", "timeout", "fuel_exhausted", "memory_exhausted", "cost_exceeded"];

  test.each(counting)("%s counts: after three the trigger is off and says so", async (status) => {
    const world = createWorld();
    world.end(status);
    world.put({});
    await world.pass(10 * MINUTE);
    expect([fires(world), world.record()["enabled"], world.record()["lastStatus"]]).toEqual([
      3,
      false,
      "auto_disabled",
    ]);
    expect(world.announced).toEqual(["trigger.auto_disabled t"]);
  });

  test("interrupted does not count, ok begins anew", async () => {
    const world = createWorld();
    world.put({ maxConsecutiveFailures: 2 });
    await world.tick();
    for (const status of ["failed", "interrupted", "ok", "failed", "interrupted"] as const) {
      world.end(status);
      await world.pass(MINUTE);
    }
    expect([fires(world), world.record()["enabled"], world.record()["consecutiveFailures"]]).toEqual([5, true, 1]);
  });

  test("the count survives a restart, and switching on begins anew", async () => {
    const world = createWorld();
    world.end("failed");
    world.put({ consecutiveFailures: 2 });
    await world.pass(2 * MINUTE);
    expect([fires(world), world.record()["lastStatus"]]).toEqual([1, "auto_disabled"]);
    world.put({ enabled: true });
    await world.tick();
    expect(world.record()).toMatchObject({ consecutiveFailures: 0 });
    expect(world.record()).not.toHaveProperty("lastStatus");
    await world.pass(2 * MINUTE);
    expect([fires(world), world.record()["enabled"]]).toEqual([3, true]);
  });

  test("a failed run is tried again where the record says so, after its pause", async () => {
    const world = createWorld();
    world.end("failed");
    world.put({ spec: "0 * * * *", retry: { max: 2, backoffS: 10 }, maxConsecutiveFailures: 9 });
    await world.tick();
    await world.pass(60 * MINUTE + 5 * SECOND);
    expect(fires(world)).toBe(1);
    await world.pass(60 * SECOND);
    expect(fires(world)).toBe(3);
  }, 20_000);
});

describe("[AGENT-7] health markers", () => {
  test.each([
    ["no such expression", { spec: "never" }, "invalid_spec"],
    ["no next occurrence", { spec: "0 0 30 2 *" }, "invalid_spec"],
    ["an unknown zone", { spec: { cron: "* * * * *", tz: "Mars/Olympus" } }, "invalid_spec"],
    ["once without a number", { kind: "once", spec: { at: "soon" } }, "invalid_spec"],
    ["no kind", { kind: "whenever" }, "invalid_spec"],
    ["no program", { program: "" }, "invalid_spec"],
    ["another dataset", { kind: "event", spec: { dataset: "files", objectId: "o" } }, "unsupported_source"],
    ["no chat", { kind: "event", spec: { dataset: "chat_messages" } }, "invalid_spec"],
  ] satisfies [string, JsonObject, string][])(
    "%s is said of an enabled trigger, and taken back",
    async (_what, fields, marker) => {
      const world = createWorld();
      world.put({ ...fields, enabled: false });
      await world.tick();
      expect(world.record()).not.toHaveProperty("lastStatus");
      world.put({ enabled: true });
      await world.pass(2 * SECOND);
      expect([world.record()["lastStatus"], fires(world)]).toEqual([marker, 0]);
      world.put({ kind: "cron", spec: "0 0 1 1 *", program: "p@v1" });
      await world.tick();
      expect(world.record()).not.toHaveProperty("lastStatus");
    },
  );
});

describe("[AGENT-8] runs", () => {
  test("the last fifty rows are kept; the figures are theirs", async () => {
    const world = createWorld();
    let round = 0;
    world.answer(async () => {
      world.clock.ms += 100;
      return { status: round++ % 2 === 0 ? "ok" : "failed" };
    });
    world.put({ spec: "* * * * * *" });
    await world.tick();
    await world.pass(60 * SECOND);
    expect(world.rows.size).toBe(50);
    expect(world.record()).toMatchObject({
      failureRate: 0.5,
      avgDurationMs: 100,
      lastRunRef: [...world.rows.keys()].at(-1),
    });
  });

  test("without rows the figures are kept all the same", async () => {
    const world = createWorld();
    world.put({ logRuns: false });
    await world.pass(2 * MINUTE);
    expect([world.rows.size, world.record()["runCount"], world.record()["failureRate"]]).toEqual([0, 2, undefined]);
  });

  test("a small value and a small trace lie in the row, larger ones do not", async () => {
    const world = createWorld();
    world.answer(async () => ({ value: "x".repeat(5000), trace: "y".repeat(40_000) }));
    world.put({});
    await world.pass(MINUTE);
    world.answer(async () => ({ value: '{"a":1}', trace: "z" }));
    await world.pass(MINUTE);
    const [large, small] = [...world.rows.values()] as [JsonObject, JsonObject];
    expect([large["value"], large["trace"], large["traceRef"]]).toEqual([undefined, undefined, "run_0"]);
    expect(world.traces.get("run_0")).toHaveLength(40_000);
    expect(small).toMatchObject({ value: { a: 1 }, trace: "z", traceRef: "run_1" });
  });

  test("a crash leaves a row that the next boot closes, and closes only its own", async () => {
    const world = createWorld();
    world.put({});
    world.rows.set("run_x", { id: "run_x", triggerId: "t", device: "A", status: "running" });
    world.rows.set("run_y", { id: "run_y", triggerId: "t", device: "B", status: "running" });
    await world.runs.closeOrphans();
    expect([world.rows.get("run_x")?.["status"], world.rows.get("run_y")?.["status"]]).toEqual([
      "interrupted",
      "running",
    ]);
    expect(world.record()).toMatchObject({ lastStatus: "interrupted", lastRunRef: "run_x" });
  });

  test("a run now is one that its trigger's state does not forbid; a dry one leaves no figures", async () => {
    const world = createWorld();
    world.put({ enabled: false });
    const runId = await world.scheduler.runNow(world.record(), { args: { x: 1 }, dry: true });
    await world.settle();
    expect(world.rows.get(runId)).toMatchObject({ status: "ok", dry: true });
    expect(world.record()).not.toHaveProperty("runCount");
    await world.scheduler.runNow(world.record(), {});
    await world.settle();
    expect(world.record()["runCount"]).toBe(1);
  });

  test("what is cancelled, or runs when the server stops, is interrupted", async () => {
    const world = createWorld();
    world.answer(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve({ status: "interrupted" }))),
    );
    world.put({});
    const runId = await world.scheduler.runNow(world.record(), {});
    expect(world.scheduler.cancel("run_none")).toBe(false);
    expect(world.scheduler.cancel(runId)).toBe(true);
    await world.settle();
    expect(world.rows.get(runId)).toMatchObject({ status: "interrupted" });
    const other = await world.scheduler.runNow(world.record(), {});
    await world.scheduler.stop();
    expect(world.rows.get(other)).toMatchObject({ status: "interrupted" });
  });

  test("a program is started beside the write of its row, and ended when that fails", async () => {
    const world = createWorld();
    const disk = Promise.withResolvers<void>();
    world.writing(() => disk.promise);
    world.answer(async ({ begun, signal }) => {
      await begun?.catch(() => {});
      return { status: signal.aborted ? "interrupted" : "ok" };
    });
    world.put({});
    await world.scheduler.tick();
    const started = world.scheduler.runNow(world.record(), {});
    expect(fires(world)).toBe(1);
    disk.reject(new Error("the disk is full"));
    await started;
    await world.settle();
    expect([world.requests[0]?.signal.aborted, world.rows.size, world.record()["runCount"]]).toEqual([
      true,
      0,
      undefined,
    ]);
  });

  test("the next program begins while the end of a run is written, of another trigger alone", async () => {
    const world = createWorld();
    const disk = Promise.withResolvers<void>();
    for (const id of ["a", "b", "c", "d", "e"]) world.put({ enabled: false }, id);
    world.scheduler.tick();
    const start = (id: string) => world.scheduler.runNow(world.record(id), {});
    world.answer(async () => {
      world.writing(() => disk.promise); // rows are there, no end is
      return {};
    });
    const all = ["a", "b", "c", "d", "a", "e"].map(start);
    await Bun.sleep(0);
    expect(world.requests.map(({ trigger }) => trigger.id)).toEqual(["a", "b", "c", "d", "e"]);
    disk.resolve();
    await Promise.all(all);
    await world.settle();
    expect(world.requests.map(({ trigger }) => trigger.id)).toEqual(["a", "b", "c", "d", "e", "a"]);
  });

  test("four run at once, the fifth waits", async () => {
    const world = createWorld();
    const release = Promise.withResolvers<Partial<RunOutcome>>();
    world.answer(() => release.promise);
    for (const id of ["a", "b", "c", "d", "e"]) world.put({}, id);
    world.scheduler.tick();
    world.clock.ms += MINUTE;
    world.scheduler.tick();
    await Bun.sleep(0);
    expect(fires(world)).toBe(4);
    release.resolve({});
    await world.settle();
    expect(fires(world)).toBe(5);
  });
});
