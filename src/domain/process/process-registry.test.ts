import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/errors-of.ts";
import { createWorld, frame, ME, OTHER } from "../../../test/support/worlds/process-world.ts";
import type { EventInput } from "../event/port.ts";

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
    const failing = rejectionOf(start({ scope: "space", spaceId: "gone" }));
    const fine = start({ id: "p2" });
    expect((await failing).code).toBe("space.not_found");
    await fine;
    expect(registry.list().map((row) => row.id)).toEqual(["p2"]);
  });
});

describe("expiry (PROC-1)", () => {
  test("a running process is gone 45 s after its last frame", async () => {
    const { registry, clock, start } = createWorld();
    await start();
    clock.ms += 44_999;
    await registry.progress("p1", {});
    clock.ms += 44_999;
    expect(registry.list().length).toBe(1);
    clock.ms += 1;
    expect(registry.list()).toEqual([]);
    expect((await rejectionOf(registry.progress("p1", {}))).code).toBe("process.not_found");
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

describe("processes of others (PROC-1)", () => {
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

describe("cancel (PROC-1)", () => {
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
    const fault = await rejectionOf(registry.cancel("p1", undefined));
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
    expect(await rejectionOf(registry.cancel("p1", undefined))).toEqual(missing);
    await start();
    expect(await rejectionOf(registry.cancel("p1", OTHER))).toEqual(missing);
    await registry.finish("p1", { status: "done" });
    expect(await rejectionOf(registry.cancel("p1", undefined))).toEqual(missing);
    await start();
    clock.ms += 45_000;
    expect(await rejectionOf(registry.cancel("p1", ME))).toEqual(missing);
  });
});
