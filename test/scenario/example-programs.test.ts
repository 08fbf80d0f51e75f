/** Programs as somebody would set them up: those of docs/programs, and one that another space holds. */

import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { startModelEndpoint } from "../support/models/model-endpoint.ts";
import { rule, useServer } from "../support/rule.ts";
import { type AgentFixture, agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import type { JsonObject } from "../support/server/client.ts";
import { createObject, createSpace, setFields } from "../support/server/fixtures.ts";

const model = startModelEndpoint();
let agent: AgentFixture;
const shared = useServer(
  { env: { ...RUNTIME_ENV, SVC_RUNTIME_LLM_BASE_URL: model.baseUrl, SVC_RUNTIME_LLM_MODEL: "test" } },
  async (server) => {
    agent = await agentOf(server);
    // The chat itself is left to the programs.
    await server.control.post("/triggers/chat-watch/disable");
  },
);

const PROGRAMS = resolve(import.meta.dir, "../../docs/programs");
async function setUp(file: string, args: JsonObject): Promise<string> {
  const name = file.replace(".js", "");
  const program = await agent.putProgram(name, readFileSync(join(PROGRAMS, file), "utf8"));
  await agent.putTrigger(name, { program, args });
  return name;
}
const S = () => `/v1/spaces/${agent.spaceId}`;

describe("programs that are shown work", () => {
  rule("daily-digest tells what was said since the last run, and not of itself", async () => {
    const name = await setUp("daily-digest.js", { chatId: agent.chatId });
    for (const text of ["The roses are out", "Dinner at seven?\nBring wine"]) await agent.send(text);
    expect((await agent.run(name)).run).toMatchObject({ status: "ok", value: { messages: 2, people: 1 } });
    expect((await agent.messages()).at(-1)).toMatchObject({
      text: "**Today:** 2 messages from 1.\n\n- The roses are out\n- Dinner at seven?",
      agent: { name, done: true },
    });
    expect((await agent.run(name)).run).toMatchObject({ status: "ok", value: { messages: 0 } });
  });

  rule("overdue-reminder reminds of what is due and not done, once", async () => {
    const { client } = shared;
    const { typeId } = await client.post<{ typeId: string }>(`${S()}/types`, { xKey: "board", name: "Board" }, 201);
    const field = (key: string, kind: string) => ({ key, kind, mutableBy: "any" });
    await client.post(
      `${S()}/types/${typeId}/datasets`,
      {
        name: "tasks",
        idRule: "user",
        fields: [
          field("title", "string"),
          field("due", "datetime"),
          field("done", "boolean"),
          field("remindedAt", "datetime"),
        ],
      },
      201,
    );
    const { id: boardId } = await client.post<{ id: string }>(`${S()}/objects`, { types: [typeId] }, 201);
    const due = (days: number) => ({ $date: new Date(Date.now() + days * 86_400_000).toISOString() });
    const records = [
      { id: "late", fields: { title: "Water the roses", due: due(-1) } },
      { id: "done", fields: { title: "Done", due: due(-1), done: true } },
      { id: "later", fields: { title: "Later", due: due(1) } },
    ];
    await client.post(`${S()}/upsert`, { objectId: boardId, dataset: "tasks", records });
    const name = await setUp("overdue-reminder.js", { boardId, chatId: agent.chatId });
    expect((await agent.run(name)).run).toMatchObject({ status: "ok", value: { reminded: ["late"] } });
    expect((await agent.messages()).at(-1)!["text"]).toContain("- [ ] Water the roses (since ");
    expect((await agent.run(name)).run).toMatchObject({ status: "ok", value: { reminded: [] } });
  });

  rule("label-objects asks the model, and takes none but the given words", async () => {
    const make = async (title: string, content: string): Promise<string> => {
      const initialProperties = { svc: { name: title } };
      const { id } = await shared.client.post<{ id: string }>(
        `${S()}/objects`,
        { types: ["page"], initialProperties },
        201,
      );
      await shared.client.put(`${S()}/objects/${id}/editor/markdown`, { content }, 200);
      return id;
    };
    const rose = await make("Roses", "They need water.");
    const other = await make("Tax", "Form 7.");
    model.answer(({ messages }) => ({ text: JSON.stringify(messages).includes("Roses") ? "Garden." : "I cannot say" }));
    const name = await setUp("label-objects.js", { type: "page", labels: ["garden", "kitchen"] });
    const { run } = await agent.run(name);
    expect(run).toMatchObject({ status: "ok", value: { [rose]: "garden" }, tokens: { in: 200, out: 20 } });
    const tags = async (id: string) =>
      (await shared.client.get<{ record: { svc: { tags?: string[] } } }>(`${S()}/properties/${id}`)).record.svc.tags;
    expect([await tags(rose), await tags(other)]).toEqual([["garden"], undefined]);
  });
});

describe("a program of another space", () => {
  /** A space that has the type of programs as the agent space has it, and one of them. */
  async function spaceWithProgram(code: string): Promise<string> {
    const { client } = shared;
    const { id: spaceId } = await createSpace(client);
    const T = `/v1/spaces/${spaceId}/types`;
    const { typeId } = await client.post<{ typeId: string }>(T, { xKey: "program", name: "Program" }, 201);
    const properties: JsonObject = {};
    for (const [xKey, kind, value] of [
      ["name", "string", "greet"],
      ["version", "number", 3],
    ] as const) {
      const body = { xKey, name: xKey, kind };
      const { propId } = await client.post<{ propId: string }>(`${T}/${typeId}/properties`, body, 201);
      properties[propId] = value;
    }
    const fields = [{ key: "code", kind: "string", mutableBy: "any" }];
    await client.post(`${T}/${typeId}/datasets`, { name: "program_source", idRule: "user", fields }, 201);
    const initialProperties = { [typeId]: properties };
    const { id: objectId } = await createObject(client, spaceId, { types: [typeId], initialProperties });
    const records = [setFields("main", { code })];
    await client.post(`/v1/spaces/${spaceId}/modify`, { objectId, dataset: "program_source", records });
    return spaceId;
  }
  const runOf = async (program: string): Promise<JsonObject> => {
    await agent.putTrigger("elsewhere", { program, args: { name: "Ada" } });
    return (await agent.run("elsewhere")).run;
  };

  rule("[AGENT-9] is named with that space's id, runs, and is refused in words where there is none of it", async () => {
    const spaceId = await spaceWithProgram("export default ({ name }, { spaceId }) => [name, spaceId]");
    expect(await runOf(`${spaceId}:greet@v3`)).toMatchObject({
      status: "ok",
      value: ["Ada", agent.spaceId],
    });
    const nowhere = `${spaceId.slice(0, -4)}aaaa:greet@v3`;
    for (const [program, why] of [
      ["greet@v3", "there is no program greet@v3"],
      [`${spaceId}:greet@v4`, `there is no program ${spaceId}:greet@v4`],
      [nowhere, `${nowhere} could not be read: No space has this id`],
    ] as const)
      expect(await runOf(program)).toMatchObject({ status: "failed", error: expect.stringContaining(why) });
  });
});
