import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { connect, headers } from "@nats-io/transport-node";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { NetworkStore } from "../../../src/sync/network/network-store.ts";
import { deriveChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { until } from "../../support/server/client.ts";
import { createReplica, openReplica, openStore, type Replica } from "../../support/worlds/network-replica.ts";

const items = (count: number, bytes = 300) => Array.from({ length: count }, () => randomBytes(bytes));
const sameItems = (a: Replica, b: Replica) => [...a.items.keys()].sort().join() === [...b.items.keys()].sort().join();

describeWithNats("channel over a real nats-server", () => {
  let server: NatsServer;
  let secret: Uint8Array;
  const opened: AsyncDisposable[] = [];
  const keep = <T extends AsyncDisposable>(resource: T): T => {
    opened.push(resource);
    return resource;
  };
  const join = (replica = createReplica(), url = server.url, store?: NetworkStore) => {
    const network = store ?? keep(openStore(url, { streamPollMs: 200 }));
    return { replica, network, channel: keep(openReplica(network, secret, replica)) };
  };
  const confirmed = (...replicas: Replica[]) =>
    until(() => replicas.every((replica) => replica.unconfirmed() === 0), "everything is confirmed");
  /** How many messages the channel's log of items holds. */
  const stored = async () => {
    const reader = join();
    await until(() => reader.channel.state().atTail, "the reader is at the tail");
    return reader.replica;
  };

  beforeAll(async () => {
    server = await startNats();
  });
  beforeEach(async () => {
    for (const resource of opened.splice(0).reverse()) await resource[Symbol.asyncDispose]();
    secret = randomBytes(32);
  });
  afterAll(async () => {
    for (const resource of opened.splice(0).reverse()) await resource[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  test("[SYNC-3] what one device writes reaches another, and is confirmed by being read back", async () => {
    const a = join();
    const b = join();
    a.replica.write(...items(3));
    a.channel.wake();
    await until(() => b.replica.items.size === 3, "b has them");
    await confirmed(a.replica, b.replica);
    expect(sameItems(a.replica, b.replica)).toBe(true);
    for (const { channel } of [a, b]) {
      await until(() => channel.state().phase === "live", "live");
      expect(channel.state()).toMatchObject({ atTail: true, pending: 0, junk: 0, resets: 0 });
    }
  });

  test("what stands in the log and is published again, since that was not known any more, is read again", async () => {
    const a = join();
    a.replica.write(...items(3));
    a.channel.wake();
    await confirmed(a.replica);
    await until(() => a.channel.state().phase === "live", "live");
    const standing = a.replica.itemsCursor;
    a.replica.doubt();
    a.channel.wake();
    await confirmed(a.replica);
    await until(() => a.channel.state().phase === "live", "live again");
    expect(a.replica.itemsCursor).toEqual(standing);
  });

  test("a device that joins late catches up with 10,000 items, each delivered once", async () => {
    const a = join();
    a.replica.write(...items(10_000));
    a.channel.wake();
    await confirmed(a.replica);
    const b = join();
    await until(() => b.replica.items.size === 10_000, "b has them");
    expect(sameItems(a.replica, b.replica)).toBe(true);
    expect(Math.max(...b.replica.deliveries.values())).toBe(1);
  });

  test("a device resumes where its cursor stands", async () => {
    const a = join();
    a.replica.write(...items(10));
    a.channel.wake();
    await confirmed(a.replica);
    const b = join();
    await until(() => b.replica.items.size === 10, "b has them");
    await b.channel[Symbol.asyncDispose]();
    a.replica.write(...items(5));
    a.channel.wake();
    await confirmed(a.replica);
    const again = join(b.replica);
    await until(() => b.replica.items.size === 15, "b has the rest");
    expect(Math.max(...b.replica.deliveries.values())).toBe(1);
    expect(again.channel.state().resets).toBe(0);
  });

  test("an acknowledgement that was lost makes no second copy", async () => {
    await using proxy = await startTcpProxy(server.port);
    const a = join(createReplica(), `nats://127.0.0.1:${proxy.port}`);
    await until(() => a.channel.state().phase === "live", "a is live");
    proxy.drop("down", true);
    a.replica.write(...items(4));
    a.channel.wake();
    const reader = await stored();
    await until(() => reader.items.size === 4, "the store has them");
    expect(a.replica.unconfirmed()).toBe(4);
    proxy.drop("down", false);
    proxy.sever();
    await confirmed(a.replica);
    expect(Math.max(...(await stored()).deliveries.values())).toBe(1);
  });

  test("an acknowledgement that does not come makes no second copy of what is sent with the next", async () => {
    await using proxy = await startTcpProxy(server.port);
    const a = join(createReplica(), `nats://127.0.0.1:${proxy.port}`);
    await until(() => a.channel.state().phase === "live", "a is live");
    proxy.drop("down", true);
    a.replica.write(...items(4));
    a.channel.wake();
    const reader = await stored();
    await until(() => reader.items.size === 4, "the store has them");
    a.replica.write(...items(4));
    a.channel.wake();
    proxy.drop("down", false);
    await confirmed(a.replica);
    expect((await stored()).items.size).toBe(8);
    expect(Math.max(...(await stored()).deliveries.values())).toBe(1);
  }, 20_000);

  test("[SYNC-7] several devices repairing one loss store nothing twice", async () => {
    const a = join();
    const others = [join(), join()];
    // Each holds its own first, so that no two of them would put the same into a message.
    for (const { replica } of [a, ...others]) replica.write(...items(1));
    a.replica.write(...items(2000));
    for (const { channel } of [a, ...others]) channel.wake();
    await until(() => [a, ...others].every(({ replica }) => replica.items.size === 2003), "all have all");
    await server.stop();
    server.wipeStore();
    await server.start();
    const replicas = [a, ...others].map((member) => member.replica);
    await until(() => replicas.every((replica) => replica.resets === 1), "all saw the loss");
    await confirmed(...replicas);
    const reader = await stored();
    expect(sameItems(reader, a.replica)).toBe(true);
    expect(Math.max(...reader.deliveries.values())).toBe(1);
  });

  test("[SYNC-2] kill -9 of the server loses nothing that was confirmed", async () => {
    const a = join();
    const b = join();
    for (let round = 0; round < 3; round++) {
      a.replica.write(...items(200));
      b.replica.write(...items(200));
      a.channel.wake();
      b.channel.wake();
      await until(() => a.replica.unconfirmed() < 200, "some are confirmed");
      await server.kill();
      await server.start();
      await confirmed(a.replica, b.replica);
    }
    await until(() => a.replica.items.size === 1200 && b.replica.items.size === 1200, "both have all");
    expect(a.replica.resets + b.replica.resets).toBe(0);
    const reader = await stored();
    expect(sameItems(reader, a.replica)).toBe(true);
    expect(Math.max(...reader.deliveries.values())).toBe(1);
  });

  test("[SYNC-7] a server restored from an old copy, grown past the cursors since, is noticed and repaired", async () => {
    const a = join();
    const b = join();
    a.replica.write(...items(20));
    a.channel.wake();
    await until(() => b.replica.items.size === 20, "b has them");
    await server.stop();
    server.saveStore("old");
    await server.start();
    for (let i = 0; i < 5; i++) {
      a.replica.write(...items(1));
      a.channel.wake();
      await confirmed(a.replica);
    }
    await until(() => b.replica.items.size === 25, "b has the new ones");
    for (const { channel, network } of [a, b]) {
      await channel[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
    }
    await server.stop();
    server.restoreStore("old");
    await server.start();
    // A third device writes past the sequence at which the others stand.
    const c = join();
    for (let i = 0; i < 20; i++) {
      c.replica.write(...items(1));
      c.channel.wake();
      await confirmed(c.replica);
    }
    const a2 = join(a.replica);
    const b2 = join(b.replica);
    await until(() => [a, b, c].every(({ replica }) => replica.items.size === 45), "all have all");
    await confirmed(a.replica, b.replica, c.replica);
    expect(a2.channel.state().resets).toBe(1);
    expect(b2.channel.state().resets).toBe(1);
    expect(Math.max(...(await stored()).deliveries.values())).toBe(1);
  });

  test("[SYNC-7] a stream made anew under a living connection is noticed", async () => {
    const a = join();
    a.replica.write(...items(10));
    a.channel.wake();
    await confirmed(a.replica);
    const { stream } = deriveChannelKeys(secret);
    const nc = await connect({ servers: server.url });
    await nc.request(`$JS.API.STREAM.DELETE.${stream}`);
    await nc.close();
    expect((await a.network.init()).created).toEqual([stream]);
    const c = join();
    c.replica.write(...items(1));
    c.channel.wake();
    await until(() => a.replica.resets === 1, "a saw it");
    await until(() => a.replica.items.size === 11, "a has what came since");
    await confirmed(a.replica, c.replica);
    expect(a.network.state().phase).toBe("online");
    expect(sameItems(await stored(), a.replica)).toBe(true);
  });

  test("[SYNC-4] junk on a subject is skipped and counted", async () => {
    const keys = deriveChannelKeys(secret);
    const a = join();
    a.replica.write(...items(1));
    a.channel.wake();
    await confirmed(a.replica);
    const nc = await connect({ servers: server.url });
    for (const kind of ["c", "a"] as const) {
      await nc.request(logSubject(keys, kind), utf8ToBytes("not sealed by anybody"));
      await nc.request(logSubject(keys, kind), new Uint8Array(0));
    }
    await nc.close();
    a.replica.write(...items(1));
    a.channel.wake();
    await confirmed(a.replica);
    const b = join();
    await until(() => b.replica.items.size === 2 && b.channel.state().atTail, "b has what is real");
    expect(b.channel.state().junk).toBe(4);
    expect(await b.channel.appendAcl(utf8ToBytes("record"))).toMatchObject({ outcome: "appended" });
  });

  test("[SYNC-4] a forged hint costs a question and changes nothing", async () => {
    const keys = deriveChannelKeys(secret);
    const a = join();
    await until(() => a.channel.state().phase === "live", "a is live");
    const nc = await connect({ servers: server.url });
    const forged = headers();
    forged.set("Nats-Sequence", "999999");
    nc.publish(`svc.hint.${logSubject(keys, "c").slice(4)}`, "", { headers: forged });
    await nc.flush();
    await nc.close();
    a.replica.write(...items(1));
    a.channel.wake();
    await confirmed(a.replica);
    await until(() => a.channel.state().phase === "live", "a is live again");
  });

  test("a sink that fails is asked again with the same items, and the state says failing meanwhile", async () => {
    const replica = createReplica();
    const deliver = replica.port.deliverItems;
    let failures = 2;
    const seen: number[] = [];
    replica.port.deliverItems = async (batch, cursor, messages) => {
      seen.push(batch.length);
      if (failures-- > 0) throw new Error("disk full");
      await deliver(batch, cursor, messages);
    };
    const a = join();
    a.replica.write(...items(5));
    a.channel.wake();
    await confirmed(a.replica);
    const b = join(replica);
    await until(() => b.channel.state().phase === "failing", "it fails");
    expect(b.channel.state().error?.code).toBe("internal");
    await until(() => replica.items.size === 5, "b has them");
    expect(seen.slice(0, 3)).toEqual([5, 5, 5]);
    await until(() => b.channel.state().phase === "live", "b is live");
  });

  test("a round asks the leader, and fails when there is no network", async () => {
    const a = join();
    const b = join();
    await until(() => b.channel.state().phase === "live", "b is connected");
    a.replica.write(...items(1));
    a.channel.wake();
    await confirmed(a.replica);
    await b.channel.round();
    expect(b.replica.items.size).toBe(1);
    await server.stop();
    await until(() => b.channel.state().phase === "offline", "b is offline");
    expect(b.channel.state().atTail).toBe(false);
    await expect(b.channel.round()).rejects.toMatchObject({ code: "network.unavailable" });
    await server.start();
  });

  test("a server that hangs is left for a new connection", async () => {
    const a = join();
    await until(() => a.channel.state().phase === "live", "a is live");
    server.pause();
    await until(() => a.channel.state().phase === "offline", "a gave up", 30_000);
    server.resume();
    await until(() => a.channel.state().phase === "live", "a is live again", 30_000);
  }, 60_000);
});
