import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { authOptions, type NetworkCredentials } from "../../../src/sync/network/auth.ts";
import type { NetworkStore } from "../../../src/sync/network/network-store.ts";
import { parseNetworkUrl } from "../../../src/sync/network/network-url.ts";
import { createNetworkKey } from "../../../src/sync/network/nkey.ts";
import { STREAM_SHAPES } from "../../../src/sync/network/streams.ts";
import { deriveChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { documentedConfig } from "../../support/network/documented-nats.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { makeTestCa } from "../../support/network/test-ca.ts";
import { useOpened } from "../../support/opened.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { createReplica, openReplica, openStore } from "../../support/worlds/network-replica.ts";

describeWithNats("the documented nats-server configuration", () => {
  const authority = makeTestCa();
  const alice = createNetworkKey(randomBytes(32));
  const bob = createNetworkKey(randomBytes(32));
  const tlsDirectory = scratchDir();
  let server: NatsServer;
  const keep = useOpened();
  const url = () => `tls://127.0.0.1:${server.port}`;
  const open = (credentials: NetworkCredentials, at = url()): NetworkStore => keep(openStore(at, { credentials }));
  const online = async (key = alice) => {
    const store = open({ key, tlsCa: authority.ca });
    await until(() => store.state().phase === "online", "online");
    return store;
  };
  const connectAs = (key: typeof alice): Promise<NatsConnection> => {
    const servers = parseNetworkUrl(url());
    if ("problem" in servers) throw new Error(servers.problem);
    return connect({ ...authOptions(servers, { key, tlsCa: authority.ca }), reconnect: false });
  };

  beforeAll(async () => {
    writeFileSync(join(tlsDirectory.path, "server.pem"), authority.certificate);
    writeFileSync(join(tlsDirectory.path, "server.key"), authority.privateKey);
    server = await startNats({
      wholeConfig: (place) => documentedConfig(place, tlsDirectory.path, [alice.publicText, bob.publicText]),
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    tlsDirectory[Symbol.dispose]();
  });

  test("[SYNC-10] before the streams exist, a client says who has to do what; the operator's init makes them, once", async () => {
    const client = open({ key: alice, tlsCa: authority.ca });
    await until(() => client.state().phase === "refused", "refused");
    expect(client.state()).toMatchObject({ code: "network.forbidden" });
    expect(client.state().reason).toContain("svc network init");
    await expect(client.init()).rejects.toMatchObject({ code: "network.forbidden" });

    const operator = open({ key: bob, tlsCa: authority.ca }, `tls://operator:change-me@127.0.0.1:${server.port}`);
    const names = STREAM_SHAPES.map((shape) => shape.name);
    const [first, second] = [await operator.init(1), await operator.init()];
    // The operator's own connection makes them as soon as it is up; whichever was first, they are made once.
    expect([...first.created, ...first.existing].sort()).toEqual([...names].sort());
    expect(second).toEqual({ created: [], existing: names });
    client.hurry();
    await until(() => client.state().phase === "online", "online");
    expect(await client.init()).toEqual({ created: [], existing: names });
  });

  test("clients append and read: logs, ACL, inboxes, chunks, events", async () => {
    const a = await online(alice);
    const b = await online(bob);
    const secret = randomBytes(32);
    const [ra, rb] = [createReplica(), createReplica()];
    const ca = keep(openReplica(a, secret, ra));
    const cb = keep(openReplica(b, secret, rb));
    ra.write(utf8ToBytes("change"));
    ca.wake();
    await until(() => rb.items.size === 1, "b has it");
    await until(() => cb.state().phase === "live" && ca.state().phase === "live", "live");
    expect(await cb.appendAcl(utf8ToBytes("record"))).toMatchObject({ outcome: "appended" });
    const keys = deriveChannelKeys(secret);
    await a.chunks.put(keys, utf8ToBytes("chunk"));
    expect(await b.chunks.has(keys, sha256(utf8ToBytes("chunk")))).toBe(true);
    await a.sendToInbox(publicKeyOfSeed(randomBytes(32)), utf8ToBytes("hello"));
    let events = 0;
    b.events.subscribe(keys, "ev/>", () => events++);
    await until(() => {
      a.events.publish(keys, "ev/x", utf8ToBytes("x"));
      return events > 0;
    }, "an event");
    expect(a.lastViolation()).toBeUndefined();
    expect(b.lastViolation()).toBeUndefined();
  });

  test("[SYNC-10] clients can neither create, reshape, purge, delete nor read by consumer, nor forge hints", async () => {
    const keys = deriveChannelKeys(randomBytes(32));
    const nc = await connectAs(alice);
    await nc.request(logSubject(keys, "c"), utf8ToBytes("kept"));
    const { stream } = keys;
    const refused = [
      "$JS.API.STREAM.CREATE.MINE",
      `$JS.API.STREAM.UPDATE.${stream}`,
      `$JS.API.STREAM.DELETE.${stream}`,
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.STREAM.MSG.DELETE.${stream}`,
      `$JS.API.STREAM.SNAPSHOT.${stream}`,
      `$JS.API.STREAM.RESTORE.${stream}`,
      `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`,
      `$JS.API.CONSUMER.CREATE.${stream}`,
      `$JS.API.CONSUMER.CREATE.${stream}.mine`,
      `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.mine`,
      "$JS.API.STREAM.NAMES",
      "$JS.API.ACCOUNT.PURGE.x",
      "svc.hint.log.0.x.c",
      "other.subject",
    ];
    for (const subject of refused) {
      await expect(nc.request(subject, "{}", { timeout: 2000 })).rejects.toThrow(/permissions violation/i);
    }
    const rollup = headers();
    rollup.set("Nats-Rollup", "all");
    const answer = (await nc.request(logSubject(keys, "c"), "", { headers: rollup, timeout: 2000 })).json<{
      error?: { err_code: number };
    }>();
    expect(answer.error?.err_code).toBe(10111);
    const kept = await nc.request(`$JS.API.DIRECT.GET.${stream}.${logSubject(keys, "c")}`);
    expect(kept.string()).toBe("kept");
    await nc.close();
  });

  test("[SYNC-10] the streams themselves refuse deleting and purging, even the operator's", async () => {
    const nc = await connect({
      servers: `127.0.0.1:${server.port}`,
      user: "operator",
      pass: "change-me",
      tls: { ca: authority.ca },
    });
    for (const { name } of STREAM_SHAPES) {
      for (const [api, body] of [
        ["PURGE", {}],
        ["MSG.DELETE", { seq: 1 }],
      ] as const) {
        const answer = await nc.request(`$JS.API.STREAM.${api}.${name}`, JSON.stringify(body));
        expect(answer.json<{ error?: { code: number } }>().error?.code).toBeGreaterThanOrEqual(400);
      }
    }
    await nc.close();
  });

  test("[SYNC-10] an account that is not admitted is refused, and told its key", async () => {
    const stranger = createNetworkKey(randomBytes(32));
    const store = open({ key: stranger, tlsCa: authority.ca });
    await until(() => store.state().phase === "refused", "refused");
    expect(store.state().reason).toContain(stranger.publicText);
    await expect(store.init()).rejects.toMatchObject({ code: "network.forbidden" });
  });

  test("a server whose certificate another authority signed gets nothing", async () => {
    for (const credentials of [{ key: alice, tlsCa: makeTestCa().ca }, { key: alice }]) {
      const store = open(credentials);
      await until(() => store.state().phase === "offline", "offline");
      await expect(store.init()).rejects.toMatchObject({ code: "network.unavailable" });
    }
  });

  test("[SYNC-10] nobody there: network.unavailable", async () => {
    const store = open({ key: alice }, "nats://127.0.0.1:1");
    await until(() => store.state().phase === "offline", "offline");
    await expect(store.init()).rejects.toMatchObject({ code: "network.unavailable" });
    await expect(store.chunks.get(deriveChannelKeys(randomBytes(32)), randomBytes(32))).rejects.toMatchObject({
      code: "network.unavailable",
    });
  });
});

describeWithNats("a server that lets nobody listen to hints", () => {
  test("is asked instead, now and then", async () => {
    const permissions = 'permissions: { publish: ">", subscribe: { allow: ["_INBOX.>"] } }';
    await using server = await startNats({
      config: `authorization { users: [{ user: u, password: p, ${permissions} }] }`,
    });
    const secret = randomBytes(32);
    const url = `nats://u:p@127.0.0.1:${server.port}`;
    await using a = openStore(url);
    await using b = openStore(url);
    const [ra, rb] = [createReplica(), createReplica()];
    await using ca = openReplica(a, secret, ra);
    await using cb = openReplica(b, secret, rb);
    await until(() => ca.state().phase === "live" && cb.state().phase === "live", "live");
    ra.write(utf8ToBytes("change"));
    ca.wake();
    await until(() => rb.items.size === 1, "b has it");
    expect(b.lastViolation()).toContain("svc.hint");
  }, 20_000);
});

describeWithNats("streams of another shape", () => {
  test("are not used, and the reason names what is wrong", async () => {
    await using server = await startNats();
    const nc = await connect({ servers: server.url });
    const stream = {
      name: "SVC_LOG_0",
      subjects: ["svc.log.0.*.*"],
      storage: "file",
      retention: "limits",
      max_msgs: 5,
    };
    await nc.request("$JS.API.STREAM.CREATE.SVC_LOG_0", JSON.stringify(stream));
    await nc.close();
    await using store = openStore(server.url);
    await until(() => store.state().phase === "refused", "refused");
    expect(store.state().reason).toContain("max_msgs is 5, not -1");
    expect(store.state().reason).toContain("allow_direct");
    await expect(store.init()).rejects.toMatchObject({ code: "network.forbidden" });
  });
});
