import { describe, expect, test } from "bun:test";
import { SvcError } from "../../protocol/errors.ts";
import type { ProcessFinishBody, ProcessProgressBody, ProcessStartBody } from "../../protocol/event.ts";
import type { Json } from "../../protocol/json.ts";
import type { BusEvent, EventBus, EventInput } from "../event/port.ts";
import { createProcessRegistry } from "./process-registry.ts";

const ME = "Ame";
const OTHER = "Aother";

/** A bus that shows what was published, and lets others publish too. */
function createWorld() {
  const clock = { ms: 1_700_000_000_500, nowMs: () => clock.ms };
  const observers = new Set<(event: BusEvent) => void>();
  const published: EventInput[] = [];
  const followed: string[] = [];
  const from = (identity: string, event: EventInput) => {
    for (const observe of observers) observe({ ...event, sender: { identity, self: identity === ME } });
  };
  const gates: Promise<void>[] = [];
  const bus: EventBus = {
    async publish(input) {
      await gates.shift();
      if (input.spaceId === "gone") throw new SvcError("space.not_found");
      published.push(input);
      from(ME, input);
      return { subscribers: 3 };
    },
    observe(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
    follow(room, prefix) {
      const name = `${prefix} ${room.scope === "space" ? room.spaceId : room.scope}`;
      followed.push(name);
      return () => void followed.splice(followed.indexOf(name), 1);
    },
  };
  const registry = createProcessRegistry({ accountId: ME, bus, clock });
  const start = (fields: Partial<ProcessStartBody> = {}) =>
    registry.start({ id: "p1", kind: "export", title: "Exporting", scope: "device", ...fields });
  return { registry, clock, published, from, start, gates, observers, followed };
}

async function refusal(work: Promise<unknown>): Promise<{ code: string; status: number; details: unknown }> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof SvcError) return { code: thrown.code, status: thrown.status, details: thrown.details };
    throw thrown;
  }
  throw new Error("it was taken");
}

const frame = (type: string, id: string, data: Json, more: Partial<EventInput> = {}): EventInput => ({
  type: `process.${type}`,
  scope: "account",
  target: id,
  data,
  ...more,
});

describe("a process's life (PROC-1)", () => {
  test("start, progress and finish each emit their event and move the row", async () => {
    const { registry, clock, published, start } = createWorld();
    expect(await start({ target: "o1" })).toEqual({ subscribers: 3 });
    const first = {
      identity: ME,
      self: true,
      id: "p1",
      kind: "export",
      title: "Exporting",
      scope: "device" as const,
      target: "o1",
      state: "running" as const,
      done: 0,
      startedAt: 1_700_000_000,
      updatedAt: 1_700_000_000,
    };
    expect(registry.list()).toEqual([first]);
    clock.ms += 2000;
    await registry.progress("p1", { done: 5, total: 10, message: "half" });
    expect(registry.list()).toEqual([{ ...first, done: 5, total: 10, message: "half", updatedAt: 1_700_000_002 }]);
    clock.ms += 1000;
    await registry.finish("p1", { status: "done" });
    expect(registry.list()).toEqual([
      { ...first, state: "done", done: 5, total: 10, message: "half", updatedAt: 1_700_000_003 },
    ]);
    const base = { kind: "export", title: "Exporting", target: "o1" };
    const envelope = { scope: "device" as const, target: "p1" };
    expect(published).toEqual([
      { type: "process.started", ...envelope, data: base },
      { type: "process.progress", ...envelope, data: { ...base, done: 5, total: 10, message: "half" } },
      { type: "process.done", ...envelope, data: { ...base, done: 5, total: 10, message: "half" } },
    ]);
  });

  test("a failure carries its error, a cancellation none", async () => {
    const { registry, published, start } = createWorld();
    await start();
    await registry.finish("p1", { status: "failed", error: { code: "io", message: "disk full" } });
    expect(registry.list()[0]).toMatchObject({ state: "failed", error: { code: "io", message: "disk full" } });
    expect(published[1]).toMatchObject({
      type: "process.failed",
      data: { error: { code: "io", message: "disk full" } },
    });
    await start({ id: "p2", scope: "space", spaceId: "s" });
    await registry.finish("p2", { status: "cancelled" });
    expect(registry.list()[1]).toMatchObject({ state: "cancelled", scope: "space", spaceId: "s" });
    expect(published.at(-1)).toMatchObject({ type: "process.cancelled", scope: "space", spaceId: "s", target: "p2" });
  });

  test("absent fields keep their values; a total of 0 is unknown, an empty message none", async () => {
    const { registry, published, start } = createWorld();
    await start();
    await registry.progress("p1", { done: 1, total: 4, message: "a" });
    await registry.progress("p1", {});
    expect(registry.list()[0]).toMatchObject({ done: 1, total: 4, message: "a" });
    await registry.progress("p1", { total: 0, message: "" });
    expect(registry.list()[0]!.done).toBe(1);
    expect(registry.list()[0]).not.toHaveProperty("total");
    expect(registry.list()[0]).not.toHaveProperty("message");
    expect(published.at(-1)!.data).toEqual({ kind: "export", title: "Exporting", done: 1 });
  });

  test("registering again begins the row anew, in its old place", async () => {
    const { registry, clock, start } = createWorld();
    await start();
    await start({ id: "p2" });
    await registry.progress("p1", { done: 3, total: 4, message: "x" });
    clock.ms += 5000;
    await start({ title: "Again" });
    const [first, second] = registry.list();
    expect(first).toMatchObject({ id: "p1", title: "Again", done: 0, startedAt: 1_700_000_005 });
    expect(first).not.toHaveProperty("total");
    expect(second!.id).toBe("p2");
    await registry.finish("p1", { status: "done" });
    await start();
    expect(registry.list()[0]).toMatchObject({ id: "p1", state: "running" });
  });

  test("reports that come at once build upon each other", async () => {
    const { registry, gates, start } = createWorld();
    await start();
    let open = () => {};
    gates.push(
      new Promise((resolve) => {
        open = resolve;
      }),
    );
    const reports = [
      registry.progress("p1", { done: 5 }),
      registry.progress("p1", { message: "x" }),
      registry.progress("p1", { total: 9 }),
    ];
    open();
    await Promise.all(reports);
    expect(registry.list()[0]).toMatchObject({ done: 5, message: "x", total: 9 });
  });

  test("what cannot be published changes nothing, and holds up nothing", async () => {
    const { registry, start } = createWorld();
    const failing = refusal(start({ scope: "space", spaceId: "gone" }));
    const fine = start({ id: "p2" });
    expect((await failing).code).toBe("space.not_found");
    await fine;
    expect(registry.list().map((row) => row.id)).toEqual(["p2"]);
  });
});

describe("expiry", () => {
  test("a running process is gone 45 s after its last frame", async () => {
    const { registry, clock, start } = createWorld();
    await start();
    clock.ms += 44_999;
    await registry.progress("p1", {});
    clock.ms += 44_999;
    expect(registry.list().length).toBe(1);
    clock.ms += 1;
    expect(registry.list()).toEqual([]);
    expect((await refusal(registry.progress("p1", {}))).code).toBe("process.not_found");
    registry.sweep();
    expect(registry.list()).toEqual([]);
  });

  test("an ended one is shown for 60 s", async () => {
    const { registry, clock, start } = createWorld();
    await start();
    await registry.finish("p1", { status: "done" });
    clock.ms += 59_999;
    registry.sweep();
    expect(registry.list().length).toBe(1);
    clock.ms += 1;
    expect(registry.list()).toEqual([]);
  });

  test("an expired process that starts again is a new one, at the end", async () => {
    const { registry, clock, start } = createWorld();
    await start();
    clock.ms += 30_000;
    await start({ id: "p2" });
    clock.ms += 15_000;
    await start();
    expect(registry.list().map((row) => row.id)).toEqual(["p2", "p1"]);
  });

  test("the registry stops listening when it is closed", () => {
    const { registry, observers, followed } = createWorld();
    expect(followed).toEqual(["process account"]);
    for (const spaceId of ["s", "s", "t"]) registry.hear(spaceId);
    expect(followed).toEqual(["process account", "process s", "process t"]);
    registry.unhear("s");
    expect(followed).toEqual(["process account", "process t"]);
    expect(observers.size).toBe(1);
    registry.close();
    expect(observers.size).toBe(0);
    expect(followed).toEqual([]);
  });
});

describe("processes of others", () => {
  const data = { kind: "k", title: "t" };

  test("are known by their frames, under their publisher", async () => {
    const { registry, from, start } = createWorld();
    await start();
    from(OTHER, frame("started", "p1", data, { scope: "space", spaceId: "s" }));
    from(OTHER, frame("progress", "p1", { ...data, done: 2, total: 4 }, { scope: "space", spaceId: "s" }));
    expect(registry.list().map(({ identity, self, id, done }) => ({ identity, self, id, done }))).toEqual([
      { identity: ME, self: true, id: "p1", done: 0 },
      { identity: OTHER, self: false, id: "p1", done: 2 },
    ]);
  });

  test("any one frame is enough to know a process", () => {
    const { registry, from } = createWorld();
    from(OTHER, frame("progress", "a", { ...data, done: 1 }));
    from(OTHER, frame("done", "b", data));
    from(OTHER, frame("failed", "c", { ...data, error: { message: "m" } }));
    from(OTHER, frame("cancelled", "d", data));
    expect(registry.list().map(({ id, state }) => [id, state])).toEqual([
      ["a", "running"],
      ["b", "done"],
      ["c", "failed"],
      ["d", "cancelled"],
    ]);
  });

  test("a late frame from another device revives its row", async () => {
    const { registry, from, clock, start } = createWorld();
    await start({ scope: "account" });
    await registry.finish("p1", { status: "failed", error: { message: "m" } });
    from(ME, frame("progress", "p1", { ...data, done: 7 }));
    expect(registry.list()[0]).toMatchObject({ state: "running", done: 7 });
    expect(registry.list()[0]).not.toHaveProperty("error");
    clock.ms += 3_600_000;
    from(ME, frame("progress", "p1", { ...data, done: 8 }));
    expect(registry.list()[0]).toMatchObject({ state: "running", done: 8, startedAt: 1_700_003_600 });
    await registry.progress("p1", { done: 9 });
  });

  test("malformed frames are no frames", () => {
    const { registry, from } = createWorld();
    const bad: EventInput[] = [
      frame("started", "p", null),
      frame("started", "p", []),
      frame("started", "p", {}),
      frame("started", "p", { kind: 5, title: "t" }),
      frame("started", "p", { kind: "", title: "t" }),
      frame("started", "p", { kind: "k", title: "x".repeat(257) }),
      frame("failed", "p", data),
      frame("failed", "p", { ...data, error: "no" }),
      frame("cancel", "p", { identity: ME }),
      frame("unknown", "p", data),
      { type: "process.started", scope: "account", data },
      { type: "process", scope: "account", target: "p", data },
      { type: "constructor", scope: "account", target: "p", data },
    ];
    for (const event of bad) from(OTHER, event);
    expect(registry.list()).toEqual([]);
    from(OTHER, frame("progress", "p", { ...data, done: "x", total: -1, message: 5, target: "a b" }));
    expect(registry.list()[0]).toMatchObject({ id: "p", done: 0 });
    expect(registry.list()[0]).not.toHaveProperty("total");
    expect(registry.list()[0]).not.toHaveProperty("target");
  });

  test("a flood of them takes bounded room and never the own ones", async () => {
    const { registry, from, start } = createWorld();
    await start();
    for (let i = 0; i < 3000; i++) from(OTHER, frame("started", `p${i}`, data));
    const rows = registry.list();
    expect(rows.length).toBe(1000);
    expect(rows.filter((row) => row.self).length).toBe(1);
    expect(rows.at(-1)!.id).toBe("p2999");
  });
});

describe("cancel", () => {
  const data = { kind: "k", title: "t" };

  test("asks the publisher and changes nothing itself", async () => {
    const { registry, published, from } = createWorld();
    from(OTHER, frame("started", "p1", data, { scope: "space", spaceId: "s" }));
    const before = registry.list();
    expect(await registry.cancel("p1", undefined)).toEqual({ subscribers: 3 });
    expect(published).toEqual([
      { type: "process.cancel", scope: "space", spaceId: "s", target: "p1", data: { identity: OTHER } },
    ]);
    expect(registry.list()).toEqual(before);
  });

  test("of an id that several publishers run needs one named: process.ambiguous", async () => {
    const { registry, published, from, start } = createWorld();
    await start();
    from(OTHER, frame("started", "p1", data));
    const fault = await refusal(registry.cancel("p1", undefined));
    expect(fault).toEqual({ code: "process.ambiguous", status: 409, details: { identities: [ME, OTHER] } });
    await registry.cancel("p1", OTHER);
    expect(published.at(-1)!.data).toEqual({ identity: OTHER });
    from(OTHER, frame("done", "p1", data));
    await registry.cancel("p1", undefined);
    expect(published.at(-1)!.data).toEqual({ identity: ME });
  });

  test("of what is not running: process.not_found", async () => {
    const { registry, clock, start } = createWorld();
    const missing = { code: "process.not_found", status: 404, details: { processId: "p1" } };
    expect(await refusal(registry.cancel("p1", undefined))).toEqual(missing);
    await start();
    expect(await refusal(registry.cancel("p1", OTHER))).toEqual(missing);
    await registry.finish("p1", { status: "done" });
    expect(await refusal(registry.cancel("p1", undefined))).toEqual(missing);
    await start();
    clock.ms += 45_000;
    expect(await refusal(registry.cancel("p1", ME))).toEqual(missing);
  });
});

describe("faults", () => {
  const STARTS: [fields: Partial<ProcessStartBody>, code: string, field: string][] = [
    [{ id: "" }, "request.invalid_field", "id"],
    [{ id: "a/b" }, "request.invalid_field", "id"],
    [{ id: "x".repeat(129) }, "request.invalid_field", "id"],
    [{ kind: "" }, "request.invalid_field", "kind"],
    [{ kind: "x".repeat(129) }, "request.invalid_field", "kind"],
    [{ title: "" }, "request.invalid_field", "title"],
    [{ title: "é".repeat(129) }, "request.invalid_field", "title"],
    [{ target: "a b" }, "request.invalid_field", "target"],
  ];
  for (const [fields, code, field] of STARTS) {
    test(`start ${JSON.stringify(fields).slice(0, 50)}: ${code}`, async () => {
      const { registry, start } = createWorld();
      expect(await refusal(start(fields))).toMatchObject({ code, details: { field } });
      expect(registry.list()).toEqual([]);
    });
  }

  const PROGRESS: [ProcessProgressBody, field: string][] = [
    [{ done: -1 }, "done"],
    [{ total: Number.POSITIVE_INFINITY }, "total"],
    [{ total: -0.5 }, "total"],
    [{ message: "x".repeat(1025) }, "message"],
  ];
  for (const [progress, field] of PROGRESS) {
    test(`progress ${JSON.stringify(progress).slice(0, 40)}: request.invalid_field`, async () => {
      const { registry, start } = createWorld();
      await start();
      expect(await refusal(registry.progress("p1", progress))).toMatchObject({
        code: "request.invalid_field",
        details: { field },
      });
    });
  }

  const FINISHES: [ProcessFinishBody, code: string][] = [
    [{ status: "failed" }, "request.missing_field"],
    [{ status: "failed", error: "broken" }, "request.invalid_field"],
    [{ status: "failed", error: null }, "request.invalid_field"],
    [{ status: "failed", error: {} }, "request.invalid_field"],
    [{ status: "failed", error: { message: "" } }, "request.invalid_field"],
    [{ status: "failed", error: { message: "x".repeat(1025) } }, "request.invalid_field"],
    [{ status: "failed", error: { message: "m", code: 5 } }, "request.invalid_field"],
    [{ status: "failed", error: { message: "m", more: 5 } }, "request.invalid_field"],
    [{ status: "done", error: { message: "m" } }, "request.invalid_field"],
    [{ status: "cancelled", error: { message: "m" } }, "request.invalid_field"],
  ];
  for (const [finish, code] of FINISHES) {
    test(`finish ${JSON.stringify(finish).slice(0, 60)}: ${code}`, async () => {
      const { registry, start } = createWorld();
      await start();
      expect(await refusal(registry.finish("p1", finish))).toMatchObject({ code, details: { field: "error" } });
      expect(registry.list()[0]!.state).toBe("running");
    });
  }

  test("progress and finish of what is not running: process.not_found", async () => {
    const { registry, start, from } = createWorld();
    const missing = { code: "process.not_found", status: 404, details: { processId: "p1" } };
    expect(await refusal(registry.progress("p1", {}))).toEqual(missing);
    expect(await refusal(registry.finish("p1", { status: "done" }))).toEqual(missing);
    from(OTHER, frame("started", "p1", { kind: "k", title: "t" }));
    expect(await refusal(registry.progress("p1", {}))).toEqual(missing);
    await start();
    await registry.finish("p1", { status: "done" });
    expect(await refusal(registry.progress("p1", {}))).toEqual(missing);
    expect(await refusal(registry.finish("p1", { status: "done" }))).toEqual(missing);
  });
});
