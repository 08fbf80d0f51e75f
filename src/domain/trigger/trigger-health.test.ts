import { describe, expect, test } from "bun:test";
import { createTriggerWorld, fires, MINUTE, SECOND, START } from "../../../test/support/server/trigger-world.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { RunOutcome, RunStatus } from "./port.ts";
import { CHAT_WATCH } from "./trigger-definition.ts";

describe("[AGENT-5] refresh, evict, repin", () => {
  test("an edit re-arms forward; enabled is applied in place", async () => {
    const world = createTriggerWorld();
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
    const world = createTriggerWorld();
    world.put({});
    world.put({}, "u");
    await world.tick();
    world.records.delete("t");
    world.scheduler.changed("t");
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
    const world = createTriggerWorld();
    world.put({ kind: "event", spec: { dataset: "chat_messages", objectId: "chat" } }, CHAT_WATCH);
    await world.tick();
    expect([world.scheduler.isHere(CHAT_WATCH), world.record(CHAT_WATCH)["owner"]]).toEqual([false, undefined]);
  });
});

describe("[AGENT-6] circuit breaker", () => {
  const counting: RunStatus[] = ["failed", "timeout", "fuel_exhausted", "memory_exhausted", "cost_exceeded"];

  test.each(counting)("%s counts: after three the trigger is off and says so", async (status) => {
    const world = createTriggerWorld();
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
    const world = createTriggerWorld();
    world.put({ maxConsecutiveFailures: 2 });
    await world.tick();
    for (const status of ["failed", "interrupted", "ok", "failed", "interrupted"] as const) {
      world.end(status);
      await world.pass(MINUTE);
    }
    expect([fires(world), world.record()["enabled"], world.record()["consecutiveFailures"]]).toEqual([5, true, 1]);
  });

  test("the count survives a restart, and switching on begins anew", async () => {
    const world = createTriggerWorld();
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
    const world = createTriggerWorld();
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
      const world = createTriggerWorld();
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
    const world = createTriggerWorld();
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
    const world = createTriggerWorld();
    world.put({ logRuns: false });
    await world.pass(2 * MINUTE);
    expect([world.rows.size, world.record()["runCount"], world.record()["failureRate"]]).toEqual([0, 2, undefined]);
  });

  test("a small value and a small trace lie in the row, larger ones do not", async () => {
    const world = createTriggerWorld();
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
    const world = createTriggerWorld();
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

  test("[AGENT-14] a run now is one that its trigger's state does not forbid; a dry one leaves no figures", async () => {
    const world = createTriggerWorld();
    world.put({ enabled: false });
    const runId = await world.scheduler.runNow(world.record(), { args: { x: 1 }, dry: true });
    await world.idle();
    expect(world.rows.get(runId)).toMatchObject({ status: "ok", dry: true });
    expect(world.requests[0]?.args).toEqual({ x: 1 });
    expect(world.record()).not.toHaveProperty("runCount");
    await world.scheduler.runNow(world.record(), {});
    await world.idle();
    expect(world.record()["runCount"]).toBe(1);
  });

  test("what is cancelled, or runs when the server stops, is interrupted", async () => {
    const world = createTriggerWorld();
    world.answer(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve({ status: "interrupted" }))),
    );
    world.put({});
    const runId = await world.scheduler.runNow(world.record(), {});
    expect(world.scheduler.cancel("run_none")).toBe(false);
    expect(world.scheduler.cancel(runId)).toBe(true);
    await world.idle();
    expect(world.rows.get(runId)).toMatchObject({ status: "interrupted" });
    const other = await world.scheduler.runNow(world.record(), {});
    await world.scheduler.close();
    expect(world.rows.get(other)).toMatchObject({ status: "interrupted" });
  });

  test("a program is started beside the write of its row, and ended when that fails", async () => {
    const world = createTriggerWorld();
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
    await world.idle();
    expect([world.requests[0]?.signal.aborted, world.rows.size, world.record()["runCount"]]).toEqual([
      true,
      0,
      undefined,
    ]);
  });

  test("the next program begins while the end of a run is written, of another trigger alone", async () => {
    const world = createTriggerWorld();
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
    await world.idle();
    expect(world.requests.map(({ trigger }) => trigger.id)).toEqual(["a", "b", "c", "d", "e", "a"]);
  });

  test("four run at once, the fifth waits", async () => {
    const world = createTriggerWorld();
    const release = Promise.withResolvers<Partial<RunOutcome>>();
    world.answer(() => release.promise);
    for (const id of ["a", "b", "c", "d", "e"]) world.put({}, id);
    world.scheduler.tick();
    world.clock.ms += MINUTE;
    world.scheduler.tick();
    await Bun.sleep(0);
    expect(fires(world)).toBe(4);
    release.resolve({});
    await world.idle();
    expect(fires(world)).toBe(5);
  });
});
