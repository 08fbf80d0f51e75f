/** What boots of a server with an agent space do: what is made once, what is closed, what refuses the start. */
import { expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import type { Json } from "../support/server/client.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

rule("[AGENT-13] chat-watch is seeded once: deleted, it does not come back at the next boot", async () => {
  await using first = await startServer({ env: RUNTIME_ENV });
  const before = await agentOf(first);
  expect(await before.trigger("chat-watch")).toMatchObject({
    kind: "event",
    program: "internal:chat-watch",
    owner: "",
    spec: { dataset: "chat_messages", objectId: before.chatId },
  });
  await first.client.post(`/v1/spaces/${before.spaceId}/delete-records`, {
    objectId: before.anchorId,
    dataset: "agent_triggers",
    recordIds: ["chat-watch"],
  });
  await first.stop();
  await using second = await startServer({ dataDir: first.dataDir, env: RUNTIME_ENV });
  const after = await agentOf(second);
  expect(after).toMatchObject({ spaceId: before.spaceId, anchorId: before.anchorId, chatId: before.chatId });
  await second.control.fails("GET", "/triggers/chat-watch", undefined, 404, "trigger.not_found");
});

rule("[AGENT-13] turned off, there is no control API and no agent space", async () => {
  await using server = await startServer();
  expect(server.stdout()).not.toContain("CONTROL");
  expect(await server.client.get<Json[]>("/v1/spaces")).toEqual([]);
});

rule("[AGENT-14] without an account it answers as the main API does", async () => {
  await using server = await startServer({ account: false, env: RUNTIME_ENV });
  await server.control.fails("GET", "/triggers", undefined, 401, "auth.required");
});

rule("[AGENT-14] a port that was asked for and is taken refuses the start and names the setting", async () => {
  using taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const refused = await refusedStart({ env: { ...RUNTIME_ENV, SVC_RUNTIME_ADDR: `127.0.0.1:${taken.port}` } });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("runtime.addr")]);
});

rule("[AGENT-14] where the default port is taken it gets a free one, and the log names the setting", async () => {
  const taken = occupy(7010);
  const wrapper = ["env", "-u", "SVC_RUNTIME_ADDR"];
  await using server = await startServer({ env: RUNTIME_ENV, wrapper });
  taken?.stop(true);
  expect(server.stdout()).toMatch(/^LISTENING \S+\nCONTROL \S+\n/);
  expect(server.stderr()).toContain("runtime.addr");
  expect(new URL(server.control.base).port).not.toBe("7010");
  expect(await server.control.get<{ triggers: Json[] }>("/triggers")).toHaveProperty("triggers");
});

/** Listens on a port; undefined where somebody else does already. */
function occupy(port: number) {
  try {
    return Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
  } catch {
    return undefined;
  }
}

rule("[AGENT-8] a run that was under way is closed as interrupted at the next boot", async () => {
  await using first = await startServer({ env: RUNTIME_ENV });
  const before = await agentOf(first);
  const limits = { fuelPerRun: 1e14, timeoutS: 60 };
  await before.putTrigger("long", {
    program: await before.putProgram("long", "for (;;) await svc.query({ limit: 1 })"),
    limits,
  });
  const { runId } = await first.control.post<{ runId: string }>("/triggers/long/run", {}, 201);
  await first.kill();
  await using second = await startServer({ dataDir: first.dataDir, env: RUNTIME_ENV });
  const after = await agentOf(second);
  expect((await after.runs("long")).map(({ id, status }) => [id, status])).toEqual([[runId, "interrupted"]]);
  expect(await after.trigger("long")).toMatchObject({ lastStatus: "interrupted", lastRunRef: runId });
});
