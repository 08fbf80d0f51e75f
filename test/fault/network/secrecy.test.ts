import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { deriveChannelKeys } from "../../../src/sync/network/subjects.ts";
import { until } from "../../support/client.ts";
import { describeWithNats, startNats } from "../../support/nats.ts";
import { createReplica, openReplica, openStore } from "../../support/network-replica.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";

/** As it is, in hex, in UTF-16, and in base64 at each of the three places it can have in a group. */
function formsOf(secret: Uint8Array): Buffer[] {
  const raw = Buffer.from(secret);
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), raw]).toString("base64");
    const from = shift === 0 ? 0 : shift + 1;
    return text.slice(from, text.length - 4); // what stands in groups of its own, whatever is before and behind
  });
  return [
    raw,
    Buffer.from(raw.toString("hex")),
    Buffer.from(raw.toString("latin1"), "utf16le"),
    ...base64.map((text) => Buffer.from(text)),
  ];
}
const foundIn = (haystack: Buffer, secrets: Record<string, Uint8Array>): string[] =>
  Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret).some((form) => haystack.includes(form)) ? [name] : [],
  );

const filesBelow = (directory: string): Buffer[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));

describeWithNats("what the operator has", () => {
  test("neither the wire nor the store holds content, ids or keys, in any usual form", async () => {
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

    const seen = Buffer.concat([proxy.captured(), ...filesBelow(server.directory)]);
    expect(foundIn(seen, { tag: utf8ToBytes(deriveChannelKeys(secret).tag) })).toEqual(["tag"]); // it is what we look at
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
    expect(foundIn(seen, secrets)).toEqual([]);
    for (const [name, planted] of Object.entries(secrets)) {
      for (const form of formsOf(planted))
        expect(foundIn(Buffer.concat([seen, form]), { [name]: planted })).toEqual([name]);
    }
  });
});
