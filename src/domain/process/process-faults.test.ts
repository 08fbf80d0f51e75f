/** What callers of the process registry get wrong: each is told by code and field, and changes nothing. */
import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/errors-of.ts";
import { createWorld, frame, OTHER } from "../../../test/support/worlds/process-world.ts";
import type { ProcessFinishBody, ProcessProgressBody, ProcessStartBody } from "../../protocol/event.ts";

describe("faults (PROC-1)", () => {
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
      expect(await rejectionOf(start(fields))).toMatchObject({ code, details: { field } });
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
      expect(await rejectionOf(registry.progress("p1", progress))).toMatchObject({
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
      expect(await rejectionOf(registry.finish("p1", finish))).toMatchObject({ code, details: { field: "error" } });
      expect(registry.list()[0]!.state).toBe("running");
    });
  }

  test("progress and finish of what is not running: process.not_found", async () => {
    const { registry, start, from } = createWorld();
    const missing = { code: "process.not_found", status: 404, details: { processId: "p1" } };
    expect(await rejectionOf(registry.progress("p1", {}))).toEqual(missing);
    expect(await rejectionOf(registry.finish("p1", { status: "done" }))).toEqual(missing);
    from(OTHER, frame("started", "p1", { kind: "k", title: "t" }));
    expect(await rejectionOf(registry.progress("p1", {}))).toEqual(missing);
    await start();
    await registry.finish("p1", { status: "done" });
    expect(await rejectionOf(registry.progress("p1", {}))).toEqual(missing);
    expect(await rejectionOf(registry.finish("p1", { status: "done" }))).toEqual(missing);
  });
});
