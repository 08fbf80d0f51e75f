import { afterAll, beforeAll, expect, test } from "bun:test";
import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { deriveChannelKeys } from "../../../src/sync/network/subjects.ts";
import { describeWithNats, type NatsServer, startNatsCluster } from "../../support/network/nats.ts";
import { pace } from "../../support/pace.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { startDevice, untilSynced } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import { createReplica, openReplica, openStore } from "../../support/worlds/network-replica.ts";

describeWithNats("slow: a cluster of three", () => {
  let cluster: Awaited<ReturnType<typeof startNatsCluster>>;
  beforeAll(async () => {
    cluster = await startNatsCluster();
  }, 60_000);
  afterAll(() => cluster[Symbol.asyncDispose]());

  const leaderOf = async (stream: string): Promise<NatsServer> => {
    const nc = await connect({ servers: cluster.urls.split(","), ignoreClusterUpdates: true });
    const info = (await nc.request(`$JS.API.STREAM.INFO.${stream}`)).json<{ cluster: { leader: string } }>();
    await nc.close();
    const leader = cluster.servers.find((server) => server.name === info.cluster.leader);
    if (!leader) throw new Error("no leader");
    return leader;
  };

  test("[SYNC-3] losing its leaders by kill -9 loses nothing, stores nothing twice, and resets nobody", async () => {
    const secret = randomBytes(32);
    const { stream } = deriveChannelKeys(secret);
    const members = Array.from({ length: 2 }, () => {
      const replica = createReplica();
      const store = openStore(cluster.urls);
      return { replica, store, channel: openReplica(store, secret, replica) };
    });
    await until(() => members.every(({ store }) => store.state().phase === "online"), "online", 60_000);
    let written = 0;
    const records: string[] = [];
    const write = async (who: number) => {
      const { replica, channel } = members[who]!;
      replica.write(...Array.from({ length: 20 }, () => randomBytes(300)));
      written += 20;
      channel.wake();
      const name = `${who}/${written}`;
      const result = await channel.appendAcl(utf8ToBytes(name)).catch(() => undefined); // no leader: asked again next time
      if (result?.outcome === "appended") records.push(name);
      await pace(20);
    };
    for (let kill = 0; kill < 2; kill++) {
      for (let i = 0; i < 10; i++) await Promise.all([write(0), write(1)]);
      const leader = await leaderOf(stream);
      await leader.kill();
      const killedAt = performance.now();
      await Promise.all([write(0), write(1)]);
      await until(() => members.every(({ replica }) => replica.unconfirmed() === 0), "confirmed without it", 60_000);
      console.log(`a leader lost: confirmed again after ${Math.round(performance.now() - killedAt)} ms`);
      await leader.start();
      await until(() => members.every(({ store }) => store.state().phase === "online"), "online", 60_000);
    }
    const reader = createReplica();
    await using store = openStore(cluster.urls);
    await using channel = openReplica(store, secret, reader);
    await until(
      () => [...members.map(({ replica }) => replica), reader].every(({ items }) => items.size === written),
      "all have all",
      60_000,
    );
    await until(() => channel.state().atTail, "the reader is at the tail", 60_000);
    expect(Math.max(...reader.deliveries.values())).toBe(1);
    const aclLog = reader.acl.map((record) => Buffer.from(record).toString());
    expect(new Set(aclLog).size).toBe(aclLog.length);
    for (const record of records) expect(aclLog).toContain(record);
    expect(members.map(({ replica }) => replica.resets)).toEqual([0, 0]);
    for (const { channel, store } of members) {
      await channel[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    }
  }, 240_000);

  rule(
    "[SYNC-10] makes streams with the replicas asked for, by default three; those that exist stay as they are",
    async () => {
      const nc = await connect({ servers: cluster.urls.split(",") });
      let manager: JetStreamManager | undefined;
      const elected = async () => {
        manager = await jetstreamManager(nc).catch(() => undefined); // the cluster has no leader yet
        return manager !== undefined;
      };
      await until(elected, "the cluster", 60_000);
      const { streams } = manager!;
      const infos = async () => {
        const found: StreamInfo[] = [];
        for await (const info of streams.list()) found.push(info);
        return found;
      };
      const clear = async () => {
        for (const { config } of await infos()) await streams.delete(config.name);
      };
      const replicas = async () => [...new Set((await infos()).map(({ config }) => config.num_replicas))];
      try {
        await using device = await startDevice({ network: cluster.urls, env: { SVC_SYNC_INTERVAL: "1h" } });
        const init = (body?: object) =>
          device.server.client.post<{ created: string[]; existing: string[] }>("/v1/network/init", body, 200);
        const space = await createSpace(device.server.client);
        await untilSynced(device, space.id);
        const names = (await infos()).map(({ config }) => config.name).sort();
        expect(names.length).toBeGreaterThan(2);
        expect(await replicas()).toEqual([3]); // by whoever came first

        await clear();
        await device.server.client.fails("POST", "/v1/network/init", { replicas: 5 }, 503, "network.unavailable");
        expect(await infos()).toEqual([]);
        const made = await init({ replicas: 3 });
        expect([made.created.sort(), made.existing]).toEqual([names, []]);
        for (const { config, cluster: placed } of await infos())
          expect([config.name, config.num_replicas, placed?.replicas?.length]).toEqual([config.name, 3, 2]);
        for (const body of [{ replicas: 3 }, { replicas: 1 }, {}, undefined]) {
          const again = await init(body);
          expect([again.created, again.existing.sort()]).toEqual([[], names]);
        }
        expect(await replicas()).toEqual([3]);

        await clear();
        await init({ replicas: 1 });
        expect(await replicas()).toEqual([1]);
        expect((await init({ replicas: 3 })).created).toEqual([]);
        expect(await replicas()).toEqual([1]);
      } finally {
        await nc.close();
      }
    },
    120_000,
  );
});
