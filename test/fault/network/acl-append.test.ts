import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { bytesToUtf8, utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { useOpened } from "../../support/opened.ts";
import { until } from "../../support/server/client.ts";
import { createReplica, openReplica, openStore } from "../../support/worlds/network-replica.ts";

describeWithNats("ACL records: compare and append", () => {
  let server: NatsServer;
  let secret: Uint8Array;
  const keep = useOpened();
  const join = async (url = server.url) => {
    const replica = createReplica();
    const network = keep(openStore(url));
    const channel = keep(openReplica(network, secret, replica));
    await until(() => channel.state().phase === "live", "live");
    return { replica, network, channel };
  };
  const texts = (records: readonly Uint8Array[]) => records.map((record) => bytesToUtf8(record));

  beforeAll(async () => {
    server = await startNats();
  });
  beforeEach(() => {
    secret = randomBytes(32);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("[ACL-15] of contending appends, those told as appended are in the log once, and the others are not", async () => {
    const members = await Promise.all([join(), join(), join()]);
    const appended: string[] = [];
    for (let round = 0; round < 20; round++) {
      const results = await Promise.all(
        members.map(({ channel }, who) => channel.appendAcl(utf8ToBytes(`${round}/${who}`))),
      );
      results.forEach((result, who) => {
        if (result.outcome === "appended") appended.push(`${round}/${who}`);
      });
      for (const { channel } of members) await channel.round();
      const chains = members.map(({ replica }) => texts(replica.acl).join());
      expect(new Set(chains).size).toBe(1);
    }
    expect(appended.length).toBeGreaterThanOrEqual(20);
    expect(texts(members[0]!.replica.acl).sort()).toEqual(appended.sort());
  });

  test("[ACL-15] a conflict leaves the winner's record delivered, so that the loser can build on it", async () => {
    const a = await join();
    const b = await join();
    const results = await Promise.all([a.channel.appendAcl(utf8ToBytes("a")), b.channel.appendAcl(utf8ToBytes("b"))]);
    const loser = results[0].outcome === "conflict" ? a : b;
    expect(results.map((result) => result.outcome).sort()).toEqual(["appended", "conflict"]);
    expect(loser.replica.acl).toHaveLength(1);
    expect(await loser.channel.appendAcl(utf8ToBytes("again"))).toMatchObject({ outcome: "appended" });
  });

  test("[ACL-6] what is appended behind the end of a place is told as appended, and not delivered", async () => {
    const replica = createReplica();
    let lastSeq: number | undefined;
    const port = { ...replica.port, lastSeq: () => lastSeq };
    const channel = keep(openReplica(keep(openStore(server.url)), secret, { ...replica, port }));
    await until(() => channel.state().phase === "live", "live");
    const end = await channel.appendAcl(utf8ToBytes("end"));
    if (end.outcome !== "appended") throw new Error("nobody else appends");
    lastSeq = end.seq;
    expect(await channel.appendAcl(utf8ToBytes("behind"))).toMatchObject({ outcome: "appended" });
    expect(await channel.appendAcl(utf8ToBytes("once more"))).toEqual({ outcome: "conflict" });
    expect(texts(replica.acl)).toEqual(["end"]);
  });

  test("[ACL-15] an append whose acknowledgement is lost with the connection is told as appended, once", async () => {
    await using proxy = await startTcpProxy(server.port);
    const a = await join(`nats://127.0.0.1:${proxy.port}`);
    const b = await join();
    proxy.drop("down", true);
    const appending = a.channel.appendAcl(utf8ToBytes("lost"));
    await until(() => b.replica.acl.length === 1, "it was stored");
    proxy.drop("down", false);
    proxy.sever();
    expect(await appending).toMatchObject({ outcome: "appended" });
    await b.channel.round();
    expect(texts(b.replica.acl)).toEqual(["lost"]);
  });

  test("[ACL-15] an append that never arrived, while another one did, is told as a conflict", async () => {
    await using proxy = await startTcpProxy(server.port);
    const a = await join(`nats://127.0.0.1:${proxy.port}`);
    const b = await join();
    proxy.drop("up", true);
    const appending = a.channel.appendAcl(utf8ToBytes("never sent"));
    expect(await b.channel.appendAcl(utf8ToBytes("other"))).toMatchObject({ outcome: "appended" });
    proxy.drop("up", false);
    proxy.sever();
    expect(await appending).toEqual({ outcome: "conflict" });
    await b.channel.round();
    expect(texts(b.replica.acl)).toEqual(["other"]);
  });

  test("without a network an append fails at once", async () => {
    const a = await join();
    await server.stop();
    await until(() => a.channel.state().phase === "offline", "offline");
    await expect(a.channel.appendAcl(utf8ToBytes("x"))).rejects.toMatchObject({ code: "network.unavailable" });
    await server.start();
  });
});
