/** The agent's answers among several devices and accounts: who answers, and with whose rights. */
import { expect } from "bun:test";
import { type ModelRequest, startModelEndpoint } from "../../support/models/model-endpoint.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type AgentFixture, agentOf, RUNTIME_ENV } from "../../support/server/agent.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import { type Device, joinOpen, startDevice } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;
const model = startModelEndpoint();
const ENV = {
  ...RUNTIME_ENV,
  SVC_SYNC_INTERVAL: "1s",
  SVC_RUNTIME_LLM_BASE_URL: model.baseUrl,
  SVC_RUNTIME_LLM_MODEL: "test",
};

const messagesOn = async ({ server }: Device, { spaceId, chatId }: AgentFixture): Promise<JsonObject[]> => {
  const body = { objectId: chatId, dataset: "chat_messages", sort: ["_ver.id"] };
  const reply = await server.client.request("POST", `/v1/spaces/${spaceId}/query`, { body });
  return ((reply.json as JsonObject)["records"] ?? []) as JsonObject[];
};
const isAnswer = ({ agent: by }: JsonObject): boolean => (by as JsonObject | undefined)?.["done"] === true;
const untilSaid = (device: Device, agent: AgentFixture, texts: string[], what: string): Promise<void> =>
  until(
    async () => (await messagesOn(device, agent)).map(({ text }) => text).join("\n") === texts.join("\n"),
    what,
    WAIT_MS,
  );

describeWithNats("the agent in a chat of several", () => {
  rule(
    "[AGENT-12] a device that takes over answers what is open and fresh, once, and nothing that was answered",
    async () => {
      await using nats = await startNats();
      await using a = await startDevice({ network: nats.url, env: ENV });
      const agent = await agentOf(a.server);
      await using b = await startDevice({ network: nats.url, env: ENV, mnemonic: a.mnemonic });
      await agentOf(b.server);

      model.answer(() => ({ text: "By the first." }));
      await agent.send("Who is there?");
      await untilSaid(b, agent, ["Who is there?", "By the first."], "the first device's answer on the second");

      // The first is killed while it is answering: what it showed of that is in the chat, and its answer never comes.
      model.answer(() => new Promise<Response>(() => {}));
      const asked = model.requests.length;
      await agent.send("And now?");
      await until(() => model.requests.length > asked, "the model being asked");
      await until(
        async () => (await messagesOn(b, agent)).length === 4,
        "the unfinished answer on the second",
        WAIT_MS,
      );
      await a.server.kill();

      model.answer(() => ({ text: "By the second." }));
      await b.server.client.post("/v1/devices/activate", { app: "agent" }, 204);
      const all = ["Who is there?", "By the first.", "And now?", "By the second."];
      await untilSaid(b, agent, all, "the open question answered by the second device, and it alone");

      // The first comes back, is not the active one any more, and answers nothing again.
      const before = model.requests.length;
      await using a2 = await startDevice({ network: nats.url, env: ENV, dataDir: a.server.dataDir });
      const returned = await agentOf(a2.server);
      await untilSaid(a2, agent, all, "the same chat on the first device");
      // What is asked next comes to both of them behind all of it, and one answers.
      await returned.send("Still there?");
      const more = [...all, "Still there?", "By the second."];
      for (const device of [b, a2]) await untilSaid(device, agent, more, "one answer more, and no other");
      expect(model.requests.length).toBe(before + 1);
    },
    LONG_MS,
  );

  rule(
    "[AGENT-12] tools do what whoever asked may do: a member's question reads nothing of other spaces and writes where they may",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url, env: ENV });
      const agent = await agentOf(owner.server);
      const { client } = owner.server;
      const secret = await createSpace(client, "secret");
      await createObject(client, secret.id, { initialProperties: { svc: { name: "the canary" } } });
      const shown = await createSpace(client, "shown");
      await createObject(client, shown.id, { initialProperties: { svc: { name: "for readers" } } });
      await using member = await startDevice({ network: nats.url, env: { SVC_SYNC_INTERVAL: "1s" } });
      await joinOpen(owner, member, agent.spaceId);
      await joinOpen(owner, member, shown.id, "reader");

      /** The model tries everything, then says what came of it. */
      const results: string[][] = [];
      model.answer((request: ModelRequest) => {
        const answers = request.messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
        if (answers.length > 0) {
          results.push(answers);
          return { text: "Tried." };
        }
        const create = (spaceId: string) => ({ name: "svc_create", args: { types: ["page"], spaceId } });
        const query = (spaceId: string) => ({ name: "svc_query", args: { spaceId } });
        const calls = [query(secret.id), query(shown.id), create(secret.id), create(shown.id), create(agent.spaceId)];
        return { calls };
      });
      const ask = (device: Device, text: string) =>
        device.server.client.post(`/v1/spaces/${agent.spaceId}/objects/${agent.chatId}/chat/messages`, { text }, 201);
      const answered = async (count: number) => {
        await until(
          async () => (await messagesOn(owner, agent)).filter(isAnswer).length === count,
          `answer ${count}`,
          WAIT_MS,
        );
        return results[count - 1]!.map((text) => (text.startsWith("error: whoever asked") ? "refused" : text));
      };
      const countOf = async (spaceId: string): Promise<number> =>
        (
          await client.post<{ records: unknown[] }>(`/v1/spaces/${spaceId}/objects/query`, {
            filter: { "svc.types": "page" },
          })
        ).records.length;

      await until(
        async () => {
          const body = { filter: { id: agent.chatId } };
          const path = `/v1/spaces/${agent.spaceId}/objects/query`;
          return (await member.server.client.post<{ records: unknown[] }>(path, body)).records.length === 1;
        },
        "the chat on the member's device",
        WAIT_MS,
      );
      await ask(member, "Do everything for me");
      const forMember = await answered(1);
      expect([forMember[0], forMember[2], forMember[3]]).toEqual(["refused", "refused", "refused"]);
      expect(forMember[1]).toContain("for readers");
      expect(forMember[4]).toContain('"id"');
      expect([await countOf(secret.id), await countOf(shown.id), await countOf(agent.spaceId)]).toEqual([0, 0, 1]);
      expect(JSON.stringify(results)).not.toContain("the canary");

      await ask(owner, "Do everything for me");
      const forOwner = await answered(2);
      expect(forOwner).not.toContain("refused");
      expect(forOwner[0]).toContain("the canary");
      expect([await countOf(secret.id), await countOf(shown.id), await countOf(agent.spaceId)]).toEqual([1, 1, 2]);
    },
    LONG_MS,
  );
});
