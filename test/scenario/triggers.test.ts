/** Triggers, programs and runs over HTTP: the agent space, the control API, the host API, traces and replay. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { AGENT_FILES, type AgentFixture, agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import { type Json, type JsonObject, until } from "../support/server/client.ts";
import { svc } from "../support/server/svc.ts";

const SECRET = "s3cret-of-the-test";
let agent: AgentFixture;
const echo = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const path = new URL(request.url).pathname;
    if (path === "/away") return Response.redirect("http://localhost:1/", 302);
    if (path === "/round") return Response.redirect("/echo", 302);
    return Response.json({
      path,
      method: request.method,
      auth: request.headers.get("authorization"),
      body: await request.text(),
    });
  },
});
const echoUrl = `http://127.0.0.1:${echo.port}`;
const shared = useServer(
  {
    env: {
      ...RUNTIME_ENV,
      MY_TOKEN: SECRET,
      SVC_RUNTIME_SECRETS_TOKEN: "MY_TOKEN",
      SVC_RUNTIME_HTTP_ALLOW: `127.0.0.1:${echo.port}`,
    },
  },
  async (server) => {
    agent = await agentOf(server);
  },
);
const control = () => shared.server.control;
const program = async (name: string, body: string, fields: JsonObject = {}): Promise<string> => {
  await agent.putTrigger(name, { program: await agent.putProgram(name, body), ...fields });
  return name;
};
/** Runs a body once and gives what it returned. */
const result = async (name: string, body: string, fields: JsonObject = {}): Promise<JsonObject> => {
  const { run } = await agent.run(await program(name, body, fields));
  return { status: run["status"] as Json, value: run["value"] as Json, error: run["error"] as Json };
};
/** Rows of runs, as a client may write them too. */
const putRows = (triggerId: string, count: number, fromMs: number, everyMs: number) => {
  const at = (n: number): JsonObject => ({ $date: new Date(fromMs + n * everyMs).toISOString() });
  const row = (n: number) => ({ id: `${triggerId}_${n}`, fields: { triggerId, status: "ok", ts: at(n) } });
  const body = { objectId: agent.anchorId, dataset: "agent_trigger_runs", records: [...Array(count).keys()].map(row) };
  return shared.client.post(`/v1/spaces/${agent.spaceId}/upsert`, body);
};

describe("the agent space", () => {
  rule("[AGENT-13] is made at boot by what a client could have done, and is an ordinary derived space", async () => {
    const { client } = shared;
    const [space] = await client.get<JsonObject[]>("/v1/spaces");
    expect(space).toMatchObject({ id: agent.spaceId, derived: true, ownRole: "owner" });
    const { types } = await client.get<{ types: JsonObject[] }>(`/v1/spaces/${agent.spaceId}/types`);
    expect(types.filter((type) => !type["builtIn"]).map((type) => type["xKey"])).toEqual(["agent_triggers", "program"]);
    const { datasets } = await client.get<{ datasets: { name: string }[] }>(`/v1/spaces/${agent.spaceId}/datasets`);
    expect(datasets.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["agent_triggers", "agent_trigger_runs", "program_source"]),
    );
    const { active, self } = await client.get<{ active: JsonObject; self: string }>("/v1/devices");
    expect(active["agent"]).toBe(self);
  });
});

describe("the control API", () => {
  rule("[AGENT-14] [API-9] has the same guard and envelope, and describes itself", async () => {
    const document = await control().get<{ openapi: string; paths: JsonObject }>("/openapi.json");
    expect(document.openapi).toBe("3.1.0");
    for (const path of [
      "/triggers",
      "/triggers/{id}",
      "/triggers/{id}/runs",
      "/triggers/{id}/enable",
      "/triggers/{id}/disable",
    ])
      expect(Object.keys(document.paths)).toContain(path);
    const foreign = await control().request("GET", "/triggers", { headers: { host: "evil.example" } });
    expect([foreign.status, (foreign.json as JsonObject)["error"]]).toMatchObject([
      403,
      { code: "request.forbidden_host" },
    ]);
    await control().fails("GET", "/v1/spaces", undefined, 404, "request.not_found");
    await control().fails("GET", "/triggers/none", undefined, 404, "trigger.not_found");
    await control().fails("GET", "/runs/run_none", undefined, 404, "run.not_found");
    await control().fails("GET", "/programs/none/1", undefined, 404, "program.not_found");
    await control().fails("PUT", "/programs/x/0", { code: "" }, 400, "request.invalid_field");
    await control().fails("PATCH", "/triggers/chat-watch", {}, 400, "request.missing_field");
    await control().fails("PATCH", "/triggers/chat-watch", { x: 1 }, 400, "request.unknown_field");
  });

  rule("[AGENT-14] PATCH, enable and disable write through to the record", async () => {
    await program("patched", "return 1");
    const patched = await control().patch<JsonObject>("/triggers/patched", { spec: "0 9 * * 1-5" }, 200);
    expect(patched).toMatchObject({ spec: "0 9 * * 1-5", nextDueAt: { $date: expect.any(String) } });
    await control().fails("PATCH", "/triggers/patched", { spec: "never" }, 400, "request.invalid_field");
    expect(await control().post<JsonObject>("/triggers/patched/disable")).toMatchObject({ enabled: false });
    expect(await agent.trigger("patched")).not.toHaveProperty("nextDueAt");
    expect(await control().post<JsonObject>("/triggers/patched/enable")).toMatchObject({ enabled: true });
    const { next } = await control().get<{ next: { $date: string }[] }>("/triggers/patched/next?n=3");
    expect(next.map(({ $date }) => new Date($date).getUTCHours())).toEqual([9, 9, 9]);
  });

  rule("[AGENT-14] of a trigger's runs the last twenty are listed, the newest first", async () => {
    await program("often", "return 1", { enabled: false });
    await putRows("often", 25, Date.UTC(2026, 0), 1_000);
    expect(await agent.runs("often")).toMatchObject([...Array(20).keys()].map((n) => ({ id: `often_${24 - n}` })));
  });
});

describe("fires in real seconds", () => {
  rule("[AGENT-1] a trigger pinned to a device that is not heard of yet is left to it", async () => {
    const owner = "12D3KooWnobody";
    await program("elsewhere", "return 1;", { spec: "* * * * * *", owner });
    await program("here", "return 1;", { spec: "* * * * * *" });
    await until(async () => (await agent.runs("here")).length >= 3, "three runs of another trigger");
    await control().post("/triggers/here/disable");
    expect((await agent.trigger("elsewhere"))["owner"]).toBe(owner);
    expect(await agent.runs("elsewhere")).toEqual([]);
  });

  rule("[AGENT-8] [AGENT-10] cron fires, writes its row and figures, and replays to the same fuel", async () => {
    const code =
      "log('tick', ctx.triggerId); const { records } = await svc.query({ limit: 1 }); return { n: records.length, at: ctx.scheduledAt, args }";
    await program("ticker", code, { spec: "* * * * * *", args: { x: 1 } });
    await until(
      async () => (await agent.runs("ticker")).filter((run) => run["status"] === "ok").length >= 2,
      "two runs",
    );
    await control().post("/triggers/ticker/disable");
    const { owner, lastStatus, runCount } = await agent.trigger("ticker");
    const { self } = await shared.client.get<{ self: string }>("/v1/devices");
    expect([owner, lastStatus]).toEqual([self, "ok"]);
    expect(runCount as number).toBeGreaterThanOrEqual(2);
    // One may have been under way when the trigger was switched off.
    await until(async () => (await agent.runs("ticker")).every((run) => run["status"] !== "running"), "the last run");
    const [last] = await agent.runs("ticker");
    expect(last).toMatchObject({ triggerId: "ticker", value: { n: 1, args: { x: 1 } }, memPages: 21 });
    const { trace } = await control().get<{ trace: JsonObject[] }>(`/runs/${last!["id"]}`);
    expect(trace[0]).toMatchObject({ v: 1, source: expect.any(String), engine: expect.any(String) });
    expect(trace.slice(1, -1).map((line) => line["name"])).toEqual(["log", "svc.query"]);
    const replayed = await control().post<JsonObject>(`/runs/${last!["id"]}/replay`);
    expect(replayed).toMatchObject({ same: true, fuel: last!["fuel"], value: last!["value"] as Json });
  });

  rule(
    "[AGENT-10] a replay does nothing again; against another source it names the first call that differs",
    async () => {
      const code = (second: string) =>
        `await svc.query({ limit: 1 }); await svc.chat.send({ objectId: args.chat, text: ${JSON.stringify(second)} }); return 1`;
      const args = { chat: agent.chatId };
      await program("told", code("once said"), { args });
      const { run } = await agent.run("told");
      const replay = () => control().post<JsonObject>(`/runs/${run["id"]}/replay`);
      expect(await replay()).toMatchObject({ same: true, sourceChanged: false, fuel: run["fuel"] as Json });
      await agent.putProgram("told", code("said otherwise"));
      expect(await replay()).toMatchObject({
        same: false,
        sourceChanged: true,
        difference: {
          n: 1,
          what: "call",
          expected: { name: "svc.chat.send", input: { text: "once said" } },
          got: { name: "svc.chat.send", input: { text: "said otherwise" } },
        },
      });
      const { code: exit, stdout } = await svc(["trigger", "replay", run["id"] as string], {
        addr: new URL(control().base).host,
      });
      expect([exit, JSON.parse(stdout)]).toMatchObject([0, { same: false, difference: { n: 1 } }]);
      const byServer = await svc(["trigger", "replay", run["id"] as string], { addr: shared.server.address });
      expect([byServer.code, byServer.json()]).toMatchObject([0, { same: false }]);
      const said = (await agent.messages()).map(({ text }) => text);
      expect([said.filter((text) => text === "once said").length, said.includes("said otherwise")]).toEqual([1, false]);
    },
  );

  rule("[AGENT-5] the next run has a program as it is then: its source, and whether it is there", async () => {
    const named = await program("changing", "return 1");
    const { objectId } = await control().get<{ objectId: string }>("/programs/changing/1");
    const outcome = async () => (await agent.run(named)).run;
    expect(await outcome()).toMatchObject({ status: "ok", value: 1 });
    await agent.putProgram("changing", "return 2");
    expect(await outcome()).toMatchObject({ status: "ok", value: 2 });
    await shared.client.del(`/v1/spaces/${agent.spaceId}/objects/${objectId}`);
    expect(await outcome()).toMatchObject({ status: "failed", error: "there is no program changing@v1" });
    await agent.putProgram("changing", "return 3");
    expect(await outcome()).toMatchObject({ status: "ok", value: 3 });
  });

  rule("[AGENT-3] once fires late, once, and is off", async () => {
    const at = Math.floor(Date.now() / 1000) - 60;
    await program("late", "return 1", { kind: "once", spec: { at } });
    await until(async () => (await agent.trigger("late"))["lastStatus"] === "ok", "the shot");
    // Two that are late after it fire behind it, one after the other: the scheduler has looked at all again by then.
    for (const name of ["behind", "last"]) {
      await program(name, "return 1", { kind: "once", spec: { at } });
      await until(async () => (await agent.trigger(name))["lastStatus"] === "ok", "the shot behind it");
    }
    expect([(await agent.runs("late")).length, (await agent.trigger("late"))["enabled"]]).toEqual([1, false]);
  });

  rule("[AGENT-4] a message fires; what the trigger writes itself does not", async () => {
    const code =
      "await svc.chat.send({ objectId: args.event.objectId, text: 'seen ' + args.event.text }); return args.event";
    const spec = { dataset: "chat_messages", objectId: agent.chatId };
    await program("listener", code, { kind: "event", spec });
    await until(async () => (await agent.trigger("listener"))["owner"] !== "", "the watch");
    const messageId = await agent.send("hello");
    await until(async () => (await agent.runs("listener"))[0]?.["status"] === "ok", "the run");
    const sent = (await agent.messages()).at(-1)!;
    expect(sent).toMatchObject({ text: "seen hello", agent: { name: "listener", done: true } });
    // The next one of somebody else's fires behind what the trigger wrote, and is the only one that does.
    await agent.send("again");
    const heard = async () => (await agent.runs("listener")).filter(({ status }) => status === "ok");
    const text = (run: JsonObject) => (run["value"] as JsonObject)["text"];
    await until(async () => (await heard()).some((run) => text(run) === "again"), "the next run");
    const runs = await heard();
    expect(runs.map(text).sort()).toEqual(["again", "hello"]);
    const first = runs.find((run) => text(run) === "hello")!;
    expect(first["value"]).toEqual({ space: agent.spaceId, objectId: agent.chatId, messageId, text: "hello" });
    await control().post("/triggers/listener/disable");
  });

  rule("[AGENT-8] every run is a process while it lasts, and cancelling one ends it", async () => {
    await program("endless", "for (;;) await svc.query({ limit: 1 })", { limits: { fuelPerRun: 1e14, timeoutS: 60 } });
    for (const how of ["control", "process"]) {
      const { runId } = await control().post<{ runId: string }>("/triggers/endless/run", {}, 201);
      const { processes } = await shared.client.get<{ processes: JsonObject[] }>("/v1/processes");
      expect(processes.find(({ id }) => id === runId)).toMatchObject({ kind: "trigger.run", state: "running" });
      if (how === "control") await control().post(`/runs/${runId}/cancel`, undefined, 204);
      else await shared.client.post(`/v1/processes/${runId}/cancel`);
      await until(async () => (await agent.runs("endless"))[0]?.["status"] === "interrupted", "the end");
      await control().fails("POST", `/runs/${runId}/cancel`, undefined, 409, "run.not_running");
    }
    expect(await agent.trigger("endless")).toMatchObject({ lastStatus: "interrupted" });
  });

  rule("[AGENT-14] a dry run reads live, writes nothing and says what it would have written", async () => {
    const before = (await agent.messages()).length;
    await program("dry", "const r = await svc.chat.send({ objectId: args.chat, text: 'no' }); return r.dry", {
      args: { chat: agent.chatId },
    });
    const { run, trace } = await agent.run("dry", { dry: true });
    expect(run).toMatchObject({ status: "ok", value: true, dry: true });
    expect(trace).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: "svc.chat.send", input: { objectId: agent.chatId, text: "no" } }),
      ]),
    );
    expect([(await agent.messages()).length, (await agent.trigger("dry"))["runCount"]]).toEqual([before, undefined]);
  });

  rule("[AGENT-8] a trace too large for its row is a file of the object, and goes with the row", async () => {
    await program("large", "await svc.query({ filter: { 'svc.name': 'x'.repeat(90000) } }); return 1");
    const { run, trace } = await agent.run("large");
    expect([run["traceRef"], trace!.length]).toEqual([run["id"], 3]);
    const names = async () =>
      (await shared.client.get<{ files: { name: string }[] }>(AGENT_FILES(agent))).files.map(({ name }) => name);
    expect(await names()).toEqual([`${run["id"]}.jsonl`]);
    await putRows("large", 49, Date.parse((run["ts"] as { $date: string }).$date) + 1, 0);
    const next = (await agent.run("large")).run["id"];
    await until(async () => Bun.deepEquals(await names(), [`${next}.jsonl`]), "the first file to go with its row");
  });

  rule("[AGENT-8] what a client wrote in place of a trace is shown as none", async () => {
    const { run } = await agent.run(await program("overwritten", "return 1"));
    const records = [{ id: run["id"], ops: [{ type: "$set", path: "trace", value: '{"v":1}\n}, "x": [' }] }];
    const body = { objectId: agent.anchorId, dataset: "agent_trigger_runs", records };
    await shared.client.post(`/v1/spaces/${agent.spaceId}/modify`, body);
    const path = `/runs/${run["id"]}`;
    await until(async () => (await control().get<{ trace: Json }>(path)).trace === null, "the trace as it is now");
    await control().fails("POST", `${path}/replay`, undefined, 409, "run.not_replayable");
  });

  rule("[AGENT-9] limits end a run by their own status", async () => {
    const statusOf = async (name: string, body: string, limits: JsonObject) =>
      (await result(name, body, { limits }))["status"];
    expect(await statusOf("fuel", "for (;;);", { fuelPerRun: 1e7 })).toBe("fuel_exhausted");
    expect(await statusOf("time", "for (;;) await svc.query({ limit: 1 })", { timeoutS: 0.3, fuelPerRun: 1e13 })).toBe(
      "timeout",
    );
    expect(await statusOf("memory", "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))", {})).toBe(
      "memory_exhausted",
    );
    expect(await result("missing", "return 1", { program: "nobody@v9" })).toMatchObject({ status: "failed" });
  });

  rule("[AGENT-6] three failures in a row trip the breaker, which tells the bus; enable begins anew", async () => {
    await using events = await shared.client.stream("GET", "/v1/events/subscribe?type=trigger.*");
    await events.expect("ready");
    await program("breaker", "throw new Error('no')");
    for (let i = 0; i < 3; i++) await agent.run("breaker");
    expect(await agent.trigger("breaker")).toMatchObject({
      enabled: false,
      lastStatus: "auto_disabled",
      failureRate: 1,
    });
    expect(await events.expect("event")).toMatchObject({ type: "trigger.auto_disabled", target: "breaker" });
    expect(await control().post<JsonObject>("/triggers/breaker/enable")).toMatchObject({
      enabled: true,
      consecutiveFailures: 0,
    });
  });
});

describe("the host API", () => {
  rule("[AGENT-9] functions take the body of their endpoint and answer its reply; errors have its code", async () => {
    const body = `
      const { id } = await svc.create({ types: ["page"], initialProperties: { svc: { name: "Made" } } });
      const row = await svc.get({ objectId: id });
      await svc.editor.append({ objectId: id, content: "# Title" });
      const { content } = await svc.editor.read({ objectId: id });
      const sum = await svc.aggregate({ pipeline: [{ $match: { "svc.name": "Made" } }, { $count: "n" }] });
      const sent = await svc.chat.send({ objectId: args.chat, text: "one" });
      await svc.chat.edit({ objectId: args.chat, messageId: sent.recordIds[0], text: "two" });
      const events = await events_publish();
      const errors = [];
      for (const call of [() => svc.get({ objectId: "nope" }), () => svc.query({ spaceId: "nope" }), () => svc.query({ filtre: {} }),
                          () => svc.query({ filter: { a: { $oops: 1 } } }), () => llm.chat({ messages: [{ role: "user", content: "hi" }] })])
        try { await call(); errors.push("none") } catch (error) { errors.push(error.code) }
      return { name: row.record.svc.name, content, sum: sum.records[0].n, sent: sent.recordIds.length, events, errors };
      async function events_publish() { return (await globalThis.events.publish({ type: "my.event", scope: "device" })).subscribers }`;
    expect((await result("host", body, { args: { chat: agent.chatId } }))["value"]).toEqual({
      name: "Made",
      content: "# Title",
      sum: 1,
      sent: 1,
      events: 0,
      errors: [
        "object.not_found",
        "space.not_found",
        "request.unknown_field",
        "filter.unknown_operator",
        "llm.disabled",
      ],
    });
  });

  rule("[AGENT-9] files are read whole, as text where they are text, and too large ones not at all", async () => {
    const { client } = shared;
    const { id } = await client.post<{ id: string }>(`/v1/spaces/${agent.spaceId}/objects`, { types: ["page"] }, 201);
    const attach = async (bytes: Uint8Array): Promise<string> => {
      const path = `/v1/spaces/${agent.spaceId}/objects/${id}/files?name=f`;
      const reply = await client.request("POST", path, {
        raw: bytes,
        headers: { "content-type": "application/octet-stream" },
      });
      return (reply.json as { fileId: string }).fileId;
    };
    const text = await attach(new TextEncoder().encode("grüße"));
    const bytes = await attach(new Uint8Array([0xff, 0xfe, 0]));
    const large = await attach(new Uint8Array((2 << 20) + 1));
    const body = `const read = async (fileId) => { try { const { size, text, base64 } = await svc.files.read({ fileId }); return [size, text ?? base64] } catch (e) { return e.code } };
      return [await read(args.text), await read(args.bytes), await read(args.large), await read("none")]`;
    expect((await result("files", body, { args: { text, bytes, large } }))["value"]).toEqual([
      [7, "grüße"],
      [3, "//4A"],
      "host.file_too_large",
      "file.not_found",
    ]);
  });

  rule(
    "[AGENT-11] http.fetch reaches listed hosts alone, follows no redirect away from them, and keeps secrets",
    async () => {
      const body = `
      const sent = await http.fetch({ url: args.url + "/echo", method: "POST", headers: { authorization: "Bearer {{secret:token}}" }, body: "b" });
      const round = await http.fetch({ url: args.url + "/round" });
      const errors = [];
      for (const input of [{ url: args.url + "/away" }, { url: "http://example.com/" }, { url: "http://127.0.0.1:1/" }, { url: "http://localhost/" },
                           { url: "file:///etc/passwd" }, { url: args.url, headers: { host: "x" } }, { url: args.url, headers: { a: "{{secret:OTHER}}" } }])
        try { await http.fetch(input); errors.push("none") } catch (error) { errors.push(error.code) }
      return { sent: JSON.parse(sent.body), round: JSON.parse(round.body).path, errors };`;
      const { run, trace } = await agent.run(await program("fetch", body, { args: { url: echoUrl } }));
      expect(run).not.toHaveProperty("error");
      expect(run["value"]).toEqual({
        sent: { path: "/echo", method: "POST", auth: "Bearer [secret]", body: "b" },
        round: "/echo",
        errors: [
          "http.forbidden",
          "http.forbidden",
          "http.forbidden",
          "http.forbidden",
          "request.invalid_field",
          "request.invalid_field",
          "request.invalid_field",
        ],
      });
      expect(JSON.stringify([run, trace])).not.toContain(SECRET);
    },
  );
});
