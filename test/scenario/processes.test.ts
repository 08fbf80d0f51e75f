/** Processes over HTTP: their life, their events, expiry of nothing alive, cancelling, and every fault. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, SpaceInfo } from "../support/server/client.ts";
import { createSpace, uniqueName } from "../support/server/fixtures.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";

let space: SpaceInfo;
let accountId: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  accountId = (await client.get<{ id: string }>("/v1/account")).id;
  await client.post("/v1/processes", { id: "live", kind: "k", title: "Live", scope: "device" });
});
const context = () => ({ client: shared.client, vars: { spaceId: space.id } });

const start = (fields: JsonObject = {}) => {
  const process = { id: uniqueName("p"), kind: "export", title: "Exporting", scope: "device", ...fields };
  return shared.client.post("/v1/processes", process).then(() => process);
};
async function rowOf(id: string): Promise<JsonObject | undefined> {
  const { processes } = await shared.client.get<{ processes: JsonObject[] }>("/v1/processes");
  return processes.find((row) => row["id"] === id);
}

describe("a process's life", () => {
  rule("[PROC-1] every step emits its event and moves the row", async () => {
    await using events = await shared.client.stream("GET", "/v1/events/subscribe?type=process.*&target=life");
    await events.expect("ready");
    const reached = { subscribers: 1 };
    const base = { kind: "export", title: "Exporting", target: "o1" };
    const sender = { identity: accountId, self: true };
    const steps: [path: string, body: unknown, type: string, data: JsonObject, row: JsonObject][] = [
      ["", { id: "life", scope: "account", ...base }, "started", base, { state: "running", done: 0 }],
      [
        "/life/progress",
        { done: 2, total: 8, message: "m" },
        "progress",
        { ...base, done: 2, total: 8, message: "m" },
        { done: 2, total: 8 },
      ],
      [
        "/life/progress",
        undefined,
        "progress",
        { ...base, done: 2, total: 8, message: "m" },
        { done: 2, message: "m" },
      ],
      ["/life/cancel", undefined, "cancel", { identity: accountId }, { state: "running" }],
      [
        "/life/finish",
        { status: "failed", error: { code: "c", message: "e" } },
        "failed",
        { ...base, done: 2, total: 8, message: "m", error: { code: "c", message: "e" } },
        { state: "failed", error: { code: "c", message: "e" } },
      ],
    ];
    for (const [path, body, type, data, row] of steps) {
      expect(await shared.client.post<JsonObject>(`/v1/processes${path}`, body)).toEqual(reached);
      expect(await events.expect("event")).toEqual({
        type: `process.${type}`,
        scope: "account",
        target: "life",
        data,
        sender,
      });
      expect(await rowOf("life")).toMatchObject({
        identity: accountId,
        self: true,
        id: "life",
        scope: "account",
        ...base,
        ...row,
      });
    }
    const now = Date.now() / 1000;
    const { startedAt, updatedAt } = (await rowOf("life")) as { startedAt: number; updatedAt: number };
    expect(Math.abs(now - startedAt)).toBeLessThan(60);
    expect(updatedAt).toBeGreaterThanOrEqual(startedAt);
  });

  rule("[PROC-1] done and cancelled have events of their own", async () => {
    await using events = await shared.client.stream(
      "GET",
      "/v1/events/subscribe?type=process.done&type=process.cancelled",
    );
    await events.expect("ready");
    for (const status of ["done", "cancelled"]) {
      const { id } = await start();
      await shared.client.post(`/v1/processes/${id}/finish`, { status });
      expect(await events.expect("event")).toMatchObject({ type: `process.${status}`, target: id });
      expect(await rowOf(id)).toMatchObject({ state: status });
    }
  });

  rule("[PROC-1] starting a live id again begins the row anew in its place", async () => {
    const { id } = await start();
    const { id: later } = await start();
    await shared.client.post(`/v1/processes/${id}/progress`, { done: 5, total: 9 });
    await start({ id, title: "Again" });
    const row = await rowOf(id);
    expect(row).toMatchObject({ title: "Again", done: 0 });
    expect(row).not.toHaveProperty("total");
    const { processes } = await shared.client.get<{ processes: JsonObject[] }>("/v1/processes");
    const ids = processes.map((each) => each["id"]);
    expect(ids.indexOf(id)).toBeLessThan(ids.indexOf(later));
  });

  rule("[PROC-1] a process of a space is announced in it", async () => {
    await using events = await shared.client.stream(
      "GET",
      `/v1/events/subscribe?spaceId=${space.id}&type=process.started`,
    );
    await events.expect("ready");
    const { id } = await start({ scope: "space", spaceId: space.id });
    expect(await events.expect("event")).toMatchObject({ scope: "space", spaceId: space.id, target: id });
    expect(await rowOf(id)).toMatchObject({ scope: "space", spaceId: space.id });
  });
});

describe("faults", () => {
  const fine = { id: "x", kind: "k", title: "t", scope: "device" };
  const fault = (
    title: string,
    path: string,
    body: unknown,
    status: number,
    code: string,
    details: JsonObject = {},
  ): Scenario => ({
    title: `[PROC-1] ${title}: ${code}`,
    method: "POST",
    path: `/v1/processes${path}`,
    body,
    status,
    code,
    details,
  });
  const invalid = "request.invalid_field";
  const missing = "request.missing_field";
  runScenarios(context, [
    ...(["id", "kind", "title", "scope"] as const).map((field) => {
      const { [field]: _, ...rest } = fine;
      return fault(`no ${field}`, "", rest, 400, missing, { field });
    }),
    fault("id off its grammar", "", { ...fine, id: "a b" }, 400, invalid, { field: "id" }),
    fault("title too long", "", { ...fine, title: "x".repeat(257) }, 400, invalid, { field: "title" }),
    fault("an unknown scope", "", { ...fine, scope: "all" }, 400, invalid, { field: "scope" }),
    fault("space scope without spaceId", "", { ...fine, scope: "space" }, 400, missing, { field: "spaceId" }),
    fault("spaceId in another scope", "", { ...fine, spaceId: "{spaceId}" }, 400, invalid, { field: "spaceId" }),
    {
      ...fault("", "", { ...fine, scope: "space", spaceId: "nowhere" }, 404, "space.not_found"),
      title: "[API-11] an unknown space: space.not_found",
    },
    fault("an unknown key", "", { ...fine, identity: "A" }, 400, "request.unknown_field", { fields: ["identity"] }),
    fault("a wrong JSON type", "", { ...fine, title: 5 }, 400, "request.schema", { path: "title" }),
    fault("progress of nothing", "/none/progress", {}, 404, "process.not_found", { processId: "none" }),
    fault("finish of nothing", "/none/finish", { status: "done" }, 404, "process.not_found"),
    fault("cancel of nothing", "/none/cancel", {}, 404, "process.not_found"),
    fault("cancel of another's", "/live/cancel", { identity: "Aother" }, 404, "process.not_found"),
    fault("negative progress", "/live/progress", { done: -1 }, 400, invalid, { field: "done" }),
    fault("message too long", "/live/progress", { message: "x".repeat(1025) }, 400, invalid, { field: "message" }),
    fault("an unknown key of progress", "/live/progress", { state: "done" }, 400, "request.unknown_field"),
    fault("no status", "/live/finish", {}, 400, missing, { field: "status" }),
    fault("an unknown status", "/live/finish", { status: "running" }, 400, invalid, { field: "status" }),
    fault("failed without error", "/live/finish", { status: "failed" }, 400, missing, { field: "error" }),
    fault("an error as a text", "/live/finish", { status: "failed", error: "no" }, 400, invalid, { field: "error" }),
    fault("an error without failure", "/live/finish", { status: "done", error: { message: "m" } }, 400, invalid, {
      field: "error",
    }),
  ]);

  rule("[PROC-1] what has ended is not live: process.not_found", async () => {
    const { id } = await start();
    await shared.client.post(`/v1/processes/${id}/finish`, { status: "done" });
    await shared.client.fails("POST", `/v1/processes/${id}/progress`, {}, 404, "process.not_found");
    await shared.client.fails("POST", `/v1/processes/${id}/finish`, { status: "done" }, 404, "process.not_found");
    await shared.client.fails("POST", `/v1/processes/${id}/cancel`, {}, 404, "process.not_found");
  });
});
