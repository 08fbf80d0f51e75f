import { expect, test } from "bun:test";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { deriveChannelKeys } from "../../../src/sync/network/subjects.ts";
import { filesBelow } from "../../support/files-below.ts";
import { leaksIn, missedPlants, openCaptures } from "../../support/hostile/leak-search.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { until } from "../../support/server/client.ts";
import { createReplica, openReplica, openStore } from "../../support/worlds/network-replica.ts";

describeWithNats("what the operator has", () => {
  test("[SYNC-9] neither the wire nor the store holds content, ids or keys, in any usual form", async () => {
    await using server = await startNats();
    await using proxy = await startTcpProxy(server.port, { captureBytes: 64 << 20 });
    const secret = randomBytes(32);
    const account = publicKeyOfSeed(randomBytes(32));
    const canary = utf8ToBytes("canary-of-a-change-in-clear");
    await using store = openStore(`nats://127.0.0.1:${proxy.port}`);
    const replica = createReplica();
    await using channel = openReplica(store, secret, replica);
    await until(() => channel.state().phase === "live", "live");
    replica.write(canary);
    channel.wake();
    await until(() => replica.unconfirmed() === 0, "confirmed");
    await channel.appendAcl(utf8ToBytes("canary-of-an-acl-record"));
    await store.chunks.put(channel.keys, utf8ToBytes("canary-of-a-file-chunk"));
    store.events.publish(channel.keys, "ev/canary_topic/here", utf8ToBytes("canary-of-an-event"));
    await store.sendToInbox(account, randomBytes(100));
    await channel.round();

    const seen = openCaptures([...proxy.captured(), ...filesBelow(server.directory)]);
    expect(leaksIn(seen, { tag: deriveChannelKeys(secret).tag })).toEqual(["tag (raw)"]); // it is what we look at
    const secrets = {
      change: canary,
      acl: utf8ToBytes("canary-of-an-acl-record"),
      chunk: utf8ToBytes("canary-of-a-file-chunk"),
      event: utf8ToBytes("canary-of-an-event"),
      topic: utf8ToBytes("canary_topic"),
      transportSecret: secret,
      sealKey: channel.keys.sealKey,
      accountKey: account,
      accountId: utf8ToBytes(accountIdOf(account)),
    };
    expect(leaksIn(seen, secrets)).toEqual([]);
    expect(missedPlants(secrets, proxy.captured()[0]!.subarray(0, 2000))).toEqual([]);
  });
});
