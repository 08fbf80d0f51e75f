/** Triggers among devices of one account on a real network: one fires, and what moves it moves it for all. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { ruleBeside } from "../support/rule.ts";
import { type AgentFixture, agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { type Device, startDevice } from "../support/server/devices.ts";

const LONG_MS = 180_000;
const ENV = { ...RUNTIME_ENV, SVC_SYNC_INTERVAL: "1s" };

interface Node {
  readonly device: Device;
  readonly agent: AgentFixture;
  readonly peerId: string;
}

async function startNode(network: string, mnemonic?: string): Promise<Node> {
  const device = await startDevice({ network, env: ENV, ...(mnemonic ? { mnemonic } : {}) });
  const { self: peerId } = await device.server.client.get<{ self: string }>("/v1/devices");
  return { device, agent: await agentOf(device.server), peerId };
}

const write = (node: Node, fields: JsonObject): Promise<unknown> =>
  node.device.server.client.post(`/v1/spaces/${node.agent.spaceId}/modify`, {
    objectId: node.agent.anchorId,
    dataset: "agent_triggers",
    records: [{ id: "beat", ops: Object.entries(fields).map(([path, value]) => ({ type: "$set", path, value })) }],
  });

/** The first device of an account, with a trigger that fires every second. What it returns is the occurrence it ran for. */
async function startBeating(network: string): Promise<Node> {
  const node = await startNode(network);
  const program = await node.agent.putProgram("beat", "return ctx.scheduledAt");
  await node.agent.putTrigger("beat", { program, spec: "* * * * * *" });
  return node;
}

/** Until a trigger of a device's own has fired three times there: so often could another one have fired. */
async function untilItBeats({ agent, peerId }: Node): Promise<void> {
  const id = `own-${peerId}`;
  const program = await agent.putProgram("own", "return 1");
  await agent.putTrigger(id, { program, spec: "* * * * * *", owner: peerId });
  await until(async () => (await agent.runs(id)).length >= 3, "three fires", 20_000);
  await agent.putTrigger(id, { enabled: false });
}

interface Fire {
  readonly device: string;
  /** When its run began, which may be a second after the occurrence. */
  readonly ts: number;
  /** None while it runs, nor where it was skipped. */
  readonly occurrence: string | undefined;
}

/** Who fired since a moment, as the rows on this device say; newest last. */
async function firedBy({ device, agent }: Node, sinceMs: number): Promise<Fire[]> {
  const { records } = await device.server.client.post<{ records: JsonObject[] }>(`/v1/spaces/${agent.spaceId}/query`, {
    objectId: agent.anchorId,
    dataset: "agent_trigger_runs",
    filter: { triggerId: "beat" },
    sort: ["ts"],
  });
  return records
    .map((row) => ({
      device: row["device"] as string,
      ts: Date.parse((row["ts"] as { $date: string }).$date),
      occurrence: row["value"] as string | undefined,
    }))
    .filter(({ ts }) => ts >= sinceMs);
}

/** Waits until `who` alone has fired for a while, as `seer` sees it. */
async function untilSteady(seer: Node, who: Node, what: string): Promise<void> {
  await until(
    async () => {
      const fires = await firedBy(seer, Date.now() - 2_500);
      return fires.length >= 2 && fires.every(({ device }) => device === who.peerId);
    },
    what,
    40_000,
  );
}

/** That no device fired twice for an occurrence. */
function expectOnceEach(fires: readonly Fire[]): void {
  const ended = fires.filter(({ occurrence }) => occurrence !== undefined);
  const occurrences = ended.map(({ device, occurrence }) => `${device} ${occurrence}`);
  expect(occurrences).toEqual([...new Set(occurrences)]);
}

/** How often each of them fired since a moment. */
async function firesSince(seer: Node, sinceMs: number): Promise<Record<string, number>> {
  const fires = await firedBy(seer, sinceMs);
  expectOnceEach(fires);
  return Object.fromEntries(
    Map.groupBy(fires, ({ device }) => device)
      .entries()
      .map(([id, all]) => [id, all.length]),
  );
}

const activeOn = async ({ device }: Node): Promise<unknown> =>
  (await device.server.client.get<{ active: JsonObject }>("/v1/devices")).active["agent"];

describeWithNats("triggers among devices", () => {
  ruleBeside(
    "[AGENT-1] exactly one fires; repinning, floating, activating and pruning move it, going away does not",
    async () => {
      await using nats = await startNats();
      const a = await startBeating(nats.url);
      await using _a = a.device;
      const b = await startNode(nats.url, a.device.mnemonic);
      await using _b = b.device;
      expect([b.agent.anchorId, b.agent.chatId]).toEqual([a.agent.anchorId, a.agent.chatId]);

      await untilSteady(b, a, "the first device to fire alone");
      const ended = async () => (await firedBy(a, 0)).filter(({ occurrence }) => occurrence !== undefined);
      await until(async () => (await ended()).length >= 2, "two runs to end", 20_000);
      expectOnceEach(await ended());

      await write(a, { owner: b.peerId });
      await untilSteady(a, b, "the second device to fire alone once it is pinned there");
      await write(b, { owner: "" });
      await untilSteady(b, a, "the active device to take what floats");
      await b.device.server.client.post("/v1/devices/activate", { app: "agent" }, 204);
      await until(
        async () => {
          const { active } = await a.device.server.client.get<{ active: JsonObject }>("/v1/devices");
          return active["agent"] === b.peerId;
        },
        "the claim to be heard of",
        20_000,
      );
      await write(a, { owner: "" });
      await untilSteady(a, b, "the newly active device to take what floats");

      await b.device.server.kill();
      await untilItBeats(a);
      expect(await firedBy(a, Date.now() - 1_500)).toEqual([]);
      await a.device.server.client.del(`/v1/devices/${b.peerId}`);
      await untilSteady(a, a, "a survivor to take over from a device that was pruned");
    },
    LONG_MS,
  );

  ruleBeside(
    "[AGENT-1] of three exactly one fires, whichever of them is killed, activated, pruned or pinned, and after a split",
    async () => {
      await using nats = await startNats();
      const a = await startBeating(nats.url);
      await using _a = a.device;
      const b = await startNode(nats.url, a.device.mnemonic);
      await using _b = b.device;
      const c = await startNode(nats.url, a.device.mnemonic);
      await using _c = c.device;
      for (const seer of [b, c]) await untilSteady(seer, a, "the first of three to fire alone");

      await write(c, { owner: b.peerId });
      for (const seer of [a, c]) await untilSteady(seer, b, "the one it is pinned to");
      await c.device.server.client.post("/v1/devices/activate", { app: "agent" }, 204);
      for (const seer of [a, b])
        await until(async () => (await activeOn(seer)) === c.peerId, "the claim to be heard of", 20_000);
      await write(a, { owner: "" });
      for (const seer of [a, b]) await untilSteady(seer, c, "the newly active one to take what floats");

      await c.device.server.kill();
      await Promise.all([untilItBeats(a), untilItBeats(b)]);
      expect([await firedBy(a, Date.now() - 1_500), await firedBy(b, Date.now() - 1_500)]).toEqual([[], []]);
      await b.device.server.client.del(`/v1/devices/${c.peerId}`);
      let survivor = a;
      await until(
        async () => {
          const [seenByA, seenByB] = [await activeOn(a), await activeOn(b)];
          survivor = seenByA === a.peerId ? a : b;
          return seenByA === seenByB && seenByA === survivor.peerId;
        },
        "both survivors to agree on one of them",
        30_000,
      );
      for (const seer of [a, b]) await untilSteady(seer, survivor, "the survivor alone");

      // A split: the other one is made active on its side, and takes the trigger there.
      const other = survivor === a ? b : a;
      await nats.kill();
      const splitMs = Date.now();
      await other.device.server.client.post("/v1/devices/activate", { app: "agent" }, 204);
      await write(other, { owner: other.peerId });
      await until(
        async () => (await firesSince(other, splitMs))[other.peerId] !== undefined,
        "a fire on the other side",
      );
      await until(
        async () => (await firesSince(survivor, splitMs))[survivor.peerId] !== undefined,
        "a fire on the survivor's side",
      );
      await nats.start();
      for (const seer of [a, b]) await untilSteady(seer, other, "the later owner to be left alone");
      const during = await firesSince(a, splitMs);
      expect(Object.keys(during).sort()).toEqual([a.peerId, b.peerId].sort());
    },
    LONG_MS,
  );

  ruleBeside(
    "[BUNDLE-2] [TYPE-5] what two devices set up apart is one: types, triggers and programs of both, on both",
    async () => {
      await using nats = await startNats();
      await nats.kill();
      const a = await startNode(nats.url);
      await using _a = a.device;
      await a.agent.putTrigger("of-a", { program: await a.agent.putProgram("by-a", "return 'a'") });
      const b = await startNode(nats.url, a.device.mnemonic);
      await using _b = b.device;
      await b.agent.putTrigger("of-b", { program: await b.agent.putProgram("by-b", "return 'b'") });
      expect([b.agent.spaceId, b.agent.anchorId]).toEqual([a.agent.spaceId, a.agent.anchorId]);

      await nats.start();
      const has = async (node: Node, path: string): Promise<boolean> =>
        (await node.device.server.control.request("GET", path)).status === 200;
      for (const [node, other] of [
        [a, "b"],
        [b, "a"],
      ] as const)
        await until(
          async () => (await has(node, `/triggers/of-${other}`)) && (await has(node, `/programs/by-${other}/1`)),
          "what the other has made",
          60_000,
        );
      for (const { device, agent } of [a, b]) {
        const { client } = device.server;
        const typesPath = `/v1/spaces/${agent.spaceId}/types`;
        const { types } = await client.get<{ types: { id: string; xKey?: string }[] }>(typesPath);
        const own = types.filter(({ xKey }) => xKey === "agent_triggers" || xKey === "program");
        const declared = own.map(async ({ id, xKey }) => {
          const { properties } = await client.get<{ properties: JsonObject[] }>(`${typesPath}/${id}/properties`);
          const { datasets } = await client.get<{ datasets: JsonObject[] }>(`${typesPath}/${id}/datasets`);
          const fields = datasets.flatMap((dataset) => dataset["fields"] as JsonObject[]);
          const isOnce =
            new Set(fields.map(({ id }) => id)).size === fields.length && !fields.some((one) => one["invalid"]);
          return [xKey, properties.map((one) => one["xKey"]), datasets.map(({ name }) => name), isOnce];
        });
        expect((await Promise.all(declared)).sort()).toEqual([
          ["agent_triggers", [], ["agent_triggers", "agent_trigger_runs"], true],
          ["program", ["name", "version"], ["program_source"], true],
        ]);
        const { programs } = await device.server.control.get<{ programs: JsonObject[] }>("/programs");
        expect(programs.map(({ name }) => name)).toEqual(["by-a", "by-b"]);
      }
      expect((await a.agent.run("of-b")).run).toMatchObject({ status: "ok", value: "b" });
      expect((await b.agent.run("of-a")).run).toMatchObject({ status: "ok", value: "a" });
    },
    LONG_MS,
  );

  ruleBeside(
    "[AGENT-1] in a split both may fire, which shows in the rows; when it ends one is left",
    async () => {
      await using nats = await startNats();
      const a = await startBeating(nats.url);
      await using _a = a.device;
      const b = await startNode(nats.url, a.device.mnemonic);
      await using _b = b.device;
      await untilSteady(b, a, "the first device to fire alone");

      await nats.kill();
      const splitMs = Date.now();
      await b.device.server.client.post("/v1/devices/activate", { app: "agent" }, 204);
      await write(b, { owner: b.peerId });
      for (const node of [a, b]) {
        const own = async () => (await firedBy(node, splitMs)).filter(({ device }) => device === node.peerId);
        await until(async () => (await own()).length > 2, "fires of its own");
      }
      await nats.start();
      await untilSteady(a, b, "the later owner to be left alone");
      const during = await firedBy(a, splitMs);
      const each = (node: Node) => during.filter(({ device }) => device === node.peerId).length;
      // Each fired, and at most once in each second.
      expect([each(a) > 0, each(b) > 0]).toEqual([true, true]);
      for (const node of [a, b]) {
        const seconds = during.filter(({ device }) => device === node.peerId).map(({ ts }) => Math.floor(ts / 1000));
        expect(seconds).toEqual([...new Set(seconds)]);
      }
    },
    LONG_MS,
  );
});
