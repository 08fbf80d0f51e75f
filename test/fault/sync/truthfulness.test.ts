/** While anything local is not known to be kept elsewhere, no endpoint says `synced`, whatever the network does. */
import { expect } from "bun:test";
import { documentedConfig, OPERATOR_LOGIN } from "../../support/network/documented-nats.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { setName, startDevice, statusOf, untilSynced } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";
import { openStore } from "../../support/worlds/network-replica.ts";
import { recordStates, statesByEndpoint } from "../../support/worlds/state-recorder.ts";

const LONG_MS = 150_000;
const ENDPOINTS = [
  "debug/objects",
  "sync-status",
  "sync-status/objects",
  "sync-status/objects/subscribe",
  "sync-status/subscribe",
];
const ROUNDS = 25;

interface Outage {
  readonly name: string;
  begin(nats: NatsServer, proxy: TcpProxy): Promise<void> | void;
  end(nats: NatsServer, proxy: TcpProxy): Promise<void> | void;
}
const both = (proxy: TcpProxy, how: "drop" | "stall", on: boolean): void => {
  for (const direction of ["up", "down"] as const) proxy[how](direction, on);
};
const OUTAGES: Outage[] = [
  { name: "killed", begin: (nats) => nats.kill(), end: (nats) => nats.start() },
  { name: "hanging", begin: (nats) => nats.pause(), end: (nats) => nats.resume() },
  {
    name: "behind a line that swallows acknowledgements",
    begin: (_, proxy) => proxy.drop("down", true),
    end: (_, proxy) => {
      proxy.drop("down", false);
      proxy.sever();
    },
  },
  {
    name: "behind a line that swallows what is sent",
    begin: (_, proxy) => proxy.drop("up", true),
    end: (_, proxy) => {
      proxy.drop("up", false);
      proxy.sever();
    },
  },
  {
    name: "behind a line that stalls",
    begin: (_, proxy) => both(proxy, "stall", true),
    end: (_, proxy) => both(proxy, "stall", false),
  },
  { name: "behind a line that is cut", begin: (_, proxy) => proxy.block(true), end: (_, proxy) => proxy.block(false) },
];

describeWithNats("the status while the network does not serve", () => {
  rule(
    "[SYNC-2] with unacknowledged changes nothing says synced while the network is gone, hangs, stalls or loses; then it does",
    async () => {
      await using nats = await startNats();
      await using proxy = await startTcpProxy(nats.port);
      await using device = await startDevice({ network: `nats://127.0.0.1:${proxy.port}` });
      const { client } = device.server;
      const space = await createSpace(client);
      const object = await createObject(client, space.id);
      await untilSynced(device, space.id);
      for (const { name, begin, end } of OUTAGES) {
        await begin(nats, proxy);
        await setName(device, space.id, object.id, `written while the network is ${name}`);
        const recorder = await recordStates(device, space.id, [object.id]);
        // Rounds that are forced must not talk the state round; they may wait for the network until it is back.
        const forced = client.request("POST", `/v1/spaces/${space.id}/sync`, { timeoutMs: 60_000 });
        await until(() => recorder.rounds() >= ROUNDS, "enough polls", 60_000);
        const debug = await client.get<{ unconfirmed: number }>(`/v1/spaces/${space.id}/debug`);
        const said = await recorder.stop();
        expect(debug.unconfirmed, name).toBe(1);
        expect(Object.keys(statesByEndpoint(said)).toSorted(), name).toEqual(ENDPOINTS);
        expect(new Set(said.map(({ state }) => state)), name).not.toContain("synced");
        expect(new Set(said.map(({ state }) => state)), name).not.toContain("all objects synced");
        await end(nats, proxy);
        expect((await forced).status, name).toBe(204);
        await untilSynced(device, space.id);
        const healed = await recordStates(device, space.id, [object.id]);
        await until(() => healed.rounds() >= 1, "a poll", 20_000);
        const states = statesByEndpoint(await healed.stop());
        for (const endpoint of ENDPOINTS) expect(states[endpoint], `${endpoint}, ${name}`).toContain("synced");
      }
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] [SYNC-17] an ACL record that the network refuses keeps the space from being synced, however often it is asked",
    async () => {
      const account = await knownAccount();
      await using nats = await startNats({
        wholeConfig: (place) => documentedConfig(place, undefined, [account.networkKey.publicText]),
      });
      {
        await using operator = openStore(`nats://${OPERATOR_LOGIN}@127.0.0.1:${nats.port}`);
        await operator.init();
      }
      await using device = await startDevice({ network: nats.url, mnemonic: account.mnemonic });
      const { client } = device.server;
      const space = await createSpace(client);
      const object = await createObject(client, space.id);
      await untilSynced(device, space.id);
      await nats.stop();
      await until(async () => (await statusOf(device, space.id)).state === "offline", "offline", 20_000);
      await client.post(`/v1/spaces/${space.id}/invites`, {}, 201);
      nats.edit((config) => config.replace('"svc.log.*.*.*"', '"svc.log.*.*.c"'));
      await nats.start();
      await until(async () => (await statusOf(device, space.id)).networkPeers === 1, "the network", 40_000);
      const recorder = await recordStates(device, space.id, [object.id]);
      for (let i = 0; i < 3; i++) {
        await client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
        // Changes are still taken: that they come back says nothing of the record.
        await setName(device, space.id, object.id, `after round ${i}`);
        const debug = async () => client.get<{ unconfirmed: number }>(`/v1/spaces/${space.id}/debug`);
        await until(async () => (await debug()).unconfirmed === 0, "the change to be kept", 20_000);
      }
      await until(() => recorder.rounds() >= ROUNDS, "enough polls", 60_000);
      const said = await recorder.stop();
      const states = statesByEndpoint(said);
      expect(said.map(({ state }) => state)).not.toContain("synced");
      for (const endpoint of ENDPOINTS) expect(states[endpoint], endpoint).toContain("error");
      const debug = await client.get<{ peers: { lastErr: string }[] }>(`/v1/spaces/${space.id}/debug`);
      expect(debug).toMatchObject({ unconfirmed: 0, unconfirmedRights: 1 });
      expect(debug.peers[0]!.lastErr).not.toBe("");
      await nats.stop();
      nats.edit((config) => config.replace('"svc.log.*.*.c"', '"svc.log.*.*.*"'));
      await nats.start();
      await untilSynced(device, space.id);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] a store that lost everything and takes nothing is not one that keeps anything: never synced",
    async () => {
      const account = await knownAccount();
      await using nats = await startNats({
        wholeConfig: (place) => documentedConfig(place, undefined, [account.networkKey.publicText]),
      });
      const init = async (): Promise<void> => {
        await using operator = openStore(`nats://${OPERATOR_LOGIN}@127.0.0.1:${nats.port}`);
        await operator.init();
      };
      await init();
      await using device = await startDevice({ network: nats.url, mnemonic: account.mnemonic });
      const space = await createSpace(device.server.client);
      const object = await createObject(device.server.client, space.id);
      await untilSynced(device, space.id);
      await nats.stop();
      await until(async () => (await statusOf(device, space.id)).state === "offline", "offline", 20_000);
      nats.wipeStore();
      nats.edit((config) => config.replace('"svc.log.*.*.*"', '"svc.log.*.*.a"'));
      const recorder = await recordStates(device, space.id, [object.id]);
      await nats.start();
      await init();
      await until(async () => (await statusOf(device, space.id)).networkPeers === 1, "the network", 40_000);
      for (let i = 0; i < 3; i++) await device.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      const rounds = recorder.rounds();
      await until(() => recorder.rounds() >= rounds + ROUNDS, "enough polls", 60_000);
      expect((await recorder.stop()).map(({ state }) => state)).not.toContain("synced");
      expect(await statusOf(device, space.id)).toMatchObject({ synced: 0, total: 1 });
      await nats.stop();
      nats.edit((config) => config.replace('"svc.log.*.*.a"', '"svc.log.*.*.*"'));
      await nats.start();
      await untilSynced(device, space.id);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] killed with unacknowledged changes and started again without the network: nothing says synced until it is back",
    async () => {
      using root = scratchDir("svc-killed");
      await using nats = await startNats();
      let spaceId: string;
      let objectId: string;
      {
        await using device = await startDevice({ network: nats.url, dataDir: root.path });
        spaceId = (await createSpace(device.server.client)).id;
        objectId = (await createObject(device.server.client, spaceId)).id;
        await untilSynced(device, spaceId);
        await nats.kill();
        await setName(device, spaceId, objectId, "acknowledged to the client alone");
        await device.server.kill();
      }
      await using device = await startDevice({ network: nats.url, dataDir: root.path });
      const recorder = await recordStates(device, spaceId, [objectId]);
      await until(() => recorder.rounds() >= ROUNDS, "enough polls", 60_000);
      const said = (await recorder.stop()).map(({ state }) => state);
      expect(said).not.toContain("synced");
      expect(said).not.toContain("all objects synced");
      await nats.start();
      await untilSynced(device, spaceId);
    },
    LONG_MS,
  );
});
