/** The agent answers in the general chat: what it sees, what it may do, how it shows what it does, and when it is silent. */
import { describe, expect } from "bun:test";
import { type ModelRequest, startModelEndpoint } from "../support/models/model-endpoint.ts";
import { rule, useServer } from "../support/rule.ts";
import { type AgentFixture, agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import { type Json, type JsonObject, until } from "../support/server/client.ts";
import { createObject, named } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

const model = startModelEndpoint();
const ENV = {
  ...RUNTIME_ENV,
  MODEL_KEY: "the-key-of-the-model",
  SVC_RUNTIME_LLM_BASE_URL: model.baseUrl,
  SVC_RUNTIME_LLM_MODEL: "test",
  SVC_RUNTIME_LLM_KEY_ENV: "MODEL_KEY",
  SVC_RUNTIME_LLM_PRICE_IN: "1",
  SVC_RUNTIME_LLM_PRICE_OUT: "2",
};
let agent: AgentFixture;
const shared = useServer({ env: ENV }, async (server) => {
  agent = await agentOf(server);
});

const answersTo = async (fixture: AgentFixture, messageId: string): Promise<JsonObject[]> =>
  (await fixture.messages()).filter((message) => message["replyToMessageId"] === messageId);
const finalAnswer = async (fixture: AgentFixture, messageId: string): Promise<JsonObject> => {
  let found: JsonObject | undefined;
  const isFinal = ({ agent: by }: JsonObject) => (by as JsonObject)["done"] === true;
  await until(async () => {
    found = (await answersTo(fixture, messageId)).find(isFinal);
    return found !== undefined;
  }, "an answer");
  return found!;
};
/** Until the agent has looked again at who answers, as it does each second with what is due. */
async function ticked(fixture: AgentFixture): Promise<void> {
  const program = await fixture.putProgram("tick", "return 1");
  await fixture.putTrigger("tick", { program, spec: "* * * * * *" });
  const before = (await fixture.runs("tick")).length;
  await until(async () => (await fixture.runs("tick")).length >= before + 2, "the second second");
  await fixture.putTrigger("tick", { enabled: false });
}
const textsOf = ({ messages }: ModelRequest): unknown[] => messages.map(({ content }) => content);

describe("[AGENT-12] an answer", () => {
  rule("[AGENT-12] a question is answered as a reply, under the agent's name, with a link to its run", async () => {
    model.answer(() => ({ text: "Forty-two." }));
    const messageId = await agent.send("What is the answer?");
    const answer = await finalAnswer(agent, messageId);
    expect(answer).toMatchObject({ text: "Forty-two.", agent: { name: "assistant", done: true } });
    await until(async () => (await agent.runs("chat-watch"))[0]?.["status"] === "ok", "the run's end");
    const [run] = await agent.runs("chat-watch");
    expect((answer["agent"] as JsonObject)["debugLink"]).toBe(`svc://run/${run!["id"]}`);
    expect(run).toMatchObject({ status: "ok", tokens: { in: 100, out: 10 }, costUsd: 0.00012 });
    const { trace } = await shared.server.control.get<{ trace: JsonObject[] }>(`/runs/${run!["id"]}`);
    expect(trace.map(({ name }) => name)).toContain("llm.chat");
    expect(JSON.stringify(trace)).not.toContain("the-key-of-the-model");
    expect(model.requests.at(-1)!.authorization).toBe("Bearer the-key-of-the-model");
    expect(await agent.trigger("chat-watch")).toMatchObject({ owner: "", lastStatus: "ok", runCount: 1 });
  });

  rule("[AGENT-12] it sees the thread and the last messages; while it works, that shows", async () => {
    const go = Promise.withResolvers<void>();
    model.answer(async () => {
      await go.promise;
      return { text: "Second." };
    });
    const before = model.requests.length;
    const [first] = await agent.messages();
    const messageId = await agent.send("And then?", { replyToMessageId: first!["id"] as string });
    await until(async () => model.requests.length > before, "the model being asked");
    const [interim] = await answersTo(agent, messageId);
    expect(interim).toMatchObject({ agent: { name: "assistant", done: false } });
    expect(textsOf(model.requests.at(-1)!)).toEqual([
      expect.any(String),
      "What is the answer?",
      "Forty-two.",
      "And then?",
    ]);
    go.resolve();
    await finalAnswer(agent, messageId);
    await until(async () => (await answersTo(agent, messageId)).length === 1, "the interim message to go");
  });

  rule("[AGENT-12] it sees what a search finds of the question", async () => {
    const S = `/v1/spaces/${agent.spaceId}`;
    const found = { query: "rhododendron", limit: 1, maxData: 400 };
    const { id } = await createObject(shared.client, agent.spaceId, named("Water the rhododendron on Fridays"));
    const isFound = async () => (await shared.client.post<{ hits: Json[] }>(`${S}/search`, found)).hits.length === 1;
    await until(isFound, "the object in the index");
    model.answer(() => ({ text: "On Fridays." }));
    await finalAnswer(agent, await agent.send("rhododendron"));
    expect(textsOf(model.requests.at(-1)!)[1]).toBe(
      `Found in the workspace:\n- Water the rhododendron on Fridays (svc://${id})`,
    );
  });

  rule("[AGENT-12] messages that come meanwhile join the answer", async () => {
    const go = Promise.withResolvers<void>();
    let asked = 0;
    model.answer(async () => {
      if (asked++ > 0) return { text: "Both answered." };
      await go.promise;
      return { text: "Only the first." };
    });
    const one = await agent.send("One thing");
    await until(() => asked === 1, "the model being asked");
    const two = await agent.send("and another");
    go.resolve();
    expect((await finalAnswer(agent, two))["text"]).toBe("Both answered.");
    expect([
      asked,
      (await answersTo(agent, one)).filter((message) => (message["agent"] as JsonObject)["done"]).length,
    ]).toEqual([2, 0]);
  });

  rule(
    "[AGENT-12] tools read and write for whom the space is; a third identical call is refused; the last turn has none",
    async () => {
      const seen: ModelRequest[] = [];
      model.answer((request) => {
        seen.push(request);
        if (seen.length === 1)
          return {
            text: "Looking…",
            calls: [
              { name: "svc_create", args: { types: ["page"], initialProperties: { svc: { name: "By the agent" } } } },
            ],
          };
        return request.tools
          ? { calls: [{ name: "svc_query", args: { filter: { "svc.name": "By the agent" } } }] }
          : { text: "Done." };
      });
      const messageId = await agent.send("Make a page");
      const answer = await finalAnswer(agent, messageId);
      expect(answer["text"]).toContain("Done.");
      expect([seen.length, answer["text"]]).toEqual([12, expect.stringContaining("12 turns")]);
      const results = seen
        .at(-1)!
        .messages.filter(({ role }) => role === "tool")
        .map(({ content }) => String(content));
      expect(results[1]).toContain("By the agent");
      expect(results[3]).toContain("made twice");
    },
  );

  rule("[AGENT-12] [AGENT-9] a limit that ends an answer stands in it, and in the status", async () => {
    const spec = { dataset: "chat_messages", objectId: agent.chatId };
    await agent.putTrigger("chat-watch", {
      kind: "event",
      spec,
      program: "internal:chat-watch",
      limits: { maxCostPerRun: 1e-9 },
    });
    const messageId = await agent.send("Too dear?");
    expect((await finalAnswer(agent, messageId))["text"]).toContain("I had to stop");
    await until(async () => (await agent.trigger("chat-watch"))["lastStatus"] === "cost_exceeded", "the status");
    await agent.putTrigger("chat-watch", { kind: "event", spec, program: "internal:chat-watch", limits: {} });
    model.answer(() => new Response("<html>"));
    const other = await agent.send("Garbage?");
    expect((await finalAnswer(agent, other))["text"]).toContain("llm.bad_reply");
  });
});

describe("among agents", () => {
  rule("[AGENT-12] it never answers itself; other agents only when they mention it, and not for ever", async () => {
    model.answer(() => ({ text: "Noted." }));
    const { id: accountId } = await shared.client.get<{ id: string }>("/v1/account");
    const other = { agent: { name: "another", done: true } };
    const mention = `[me](svc://m/${agent.spaceId}/${accountId}) hello`;
    const answer = async (text: string, more: JsonObject = {}): Promise<void> => {
      await finalAnswer(agent, await agent.send(text, more));
      await until(async () => (await agent.runs("chat-watch"))[0]?.["status"] !== "running", "the run's end");
    };
    /** Whoever writes next is answered, and these are not. */
    const unanswered = async (...messages: [text: string, more: JsonObject][]): Promise<void> => {
      const asked = model.requests.length;
      const ids: string[] = [];
      for (const [text, more] of messages) ids.push(await agent.send(text, more));
      await answer("A person is here");
      expect(model.requests.length).toBe(asked + 1);
      for (const id of ids) expect(await answersTo(agent, id)).toEqual([]);
    };
    await unanswered(
      ["no mention", other],
      [mention, { agent: { name: "assistant", done: true } }],
      [mention, { agent: { name: "another", done: false } }],
    );
    for (let i = 0; i < 3; i++) await answer(mention, other);
    await unanswered([mention, other], [mention, other]);
    await answer(mention, other);
  });
});

describe("when it is silent", () => {
  rule("[AGENT-12] without a model it says so once, and lets the chat be", async () => {
    await using server = await startServer({ env: RUNTIME_ENV });
    const quiet = await agentOf(server);
    await until(async () => (await quiet.trigger("chat-watch"))["lastStatus"] === "unsupported_source", "the marker");
    for (const text of ["Anyone?", "Nobody?"]) await quiet.send(text);
    expect(await quiet.runs("chat-watch")).toEqual([]);
    expect(await quiet.messages()).toHaveLength(2);
    expect(server.stderr().split("the chat is not answered").length - 1).toBe(1);
  });

  rule("[AGENT-12] disabled it answers nobody; after a restart it answers what is fresh, once a thread", async () => {
    model.answer(() => ({ text: "Here I am." }));
    const start = (dataDir?: string): Promise<RunningServer> =>
      startServer({ env: ENV, ...(dataDir ? { dataDir } : {}) });
    await using first = await start();
    const before = await agentOf(first);
    await first.control.post("/triggers/chat-watch/disable");
    await ticked(before);
    const root = await before.send("Nobody answers");
    const reply = await before.send("Really nobody?", { replyToMessageId: root });
    expect(await before.runs("chat-watch")).toEqual([]);
    expect(await before.messages()).toHaveLength(2);
    await first.control.post("/triggers/chat-watch/enable");
    await finalAnswer(before, reply);
    await first.stop();
    await using second = await start(first.dataDir);
    const after = await agentOf(second);
    await ticked(after);
    await finalAnswer(after, await after.send("Still there?"));
    expect((await after.messages()).map(({ text }) => text)).toEqual([
      "Nobody answers",
      "Really nobody?",
      "Here I am.",
      "Still there?",
      "Here I am.",
    ]);
  });
});
