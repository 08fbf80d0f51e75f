/** The runtime of a server under test: its agent space, triggers, programs and runs. */
import { type Json, type JsonObject, until } from "./client.ts";
import type { RunningServer } from "./server.ts";

/** For servers whose runtime is under test; others have none. */
export const RUNTIME_ENV: Record<string, string> = { SVC_RUNTIME_ENABLED: "true" };

export interface AgentFixture {
  readonly spaceId: string;
  /** The object that holds triggers and runs. */
  readonly anchorId: string;
  readonly chatId: string;
  putProgram(name: string, body: string): Promise<string>;
  putTrigger(id: string, fields: JsonObject): Promise<void>;
  trigger(id: string): Promise<JsonObject>;
  runs(id: string): Promise<JsonObject[]>;
  /** Runs a trigger now and waits for its end. */
  run(id: string, body?: JsonObject): Promise<{ run: JsonObject; trace: Json[] | null }>;
  send(text: string, more?: JsonObject): Promise<string>;
  messages(): Promise<JsonObject[]>;
}

export async function agentOf({ client, control }: RunningServer): Promise<AgentFixture> {
  await control.get("/triggers"); // waits until the space is there
  const { spaces } = await client.get<{ spaces: { spaceId: string }[] }>("/v1/spaces/derived");
  const spaceId = spaces[0]!.spaceId;
  const rootOf = async (bundle: string) =>
    (await client.get<{ rootId: string }>(`/v1/spaces/${spaceId}/bundles/${encodeURIComponent(bundle)}`)).rootId;
  const anchorId = await rootOf("agent/v1");
  const chatId = await rootOf("general-chat/v1");
  const S = `/v1/spaces/${spaceId}`;
  const runOf = (runId: string) => control.get<{ run: JsonObject; trace: Json[] | null }>(`/runs/${runId}`);
  return {
    spaceId,
    anchorId,
    chatId,
    async putProgram(name, body) {
      const code = body.includes("export ") ? body : `export default async function main(args, ctx) {\n${body}\n}`;
      await control.put(`/programs/${name}/1`, { code }, 200);
      return `${name}@v1`;
    },
    async putTrigger(id, fields) {
      const record = { enabled: true, kind: "cron", spec: "0 0 1 1 *", ...fields };
      const ops = Object.entries(record).map(([path, value]) => ({ type: "$set", path, value }));
      const records = [{ id, upsert: true, ops }];
      await client.post(`${S}/modify`, { objectId: anchorId, dataset: "agent_triggers", records });
      await until(async () => (await control.request("GET", `/triggers/${id}`)).status === 200, `the trigger ${id}`);
    },
    trigger: (id) => control.get<JsonObject>(`/triggers/${id}`),
    runs: async (id) => (await control.get<{ runs: JsonObject[] }>(`/triggers/${id}/runs`)).runs,
    async run(id, body = {}) {
      const { runId } = await control.post<{ runId: string }>(`/triggers/${id}/run`, body, 201);
      await until(async () => (await runOf(runId)).run["status"] !== "running", `the end of ${runId}`, 30_000);
      return runOf(runId);
    },
    async send(text, more = {}) {
      const reply = await client.post<{ recordIds: string[] }>(
        `${S}/objects/${chatId}/chat/messages`,
        { text, ...more },
        201,
      );
      return reply.recordIds[0]!;
    },
    messages: async () =>
      (
        await client.post<{ records: JsonObject[] }>(`${S}/query`, {
          objectId: chatId,
          dataset: "chat_messages",
          sort: ["_ver.id"],
        })
      ).records,
  };
}

/** Where the files of the object that holds the runs are listed. */
export const AGENT_FILES = ({ spaceId, anchorId }: AgentFixture): string =>
  `/v1/spaces/${spaceId}/files?objectId=${anchorId}`;
