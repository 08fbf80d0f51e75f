import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "@nats-io/transport-node";
import { bytesToUtf8, utf8ToBytes } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { CHUNK_BYTES_MAX } from "../../../src/sync/network/chunk-store.ts";
import { createDirectReader } from "../../../src/sync/network/direct-read.ts";
import type { LogCursor } from "../../../src/sync/network/log-cursor.ts";
import type { NetworkStore } from "../../../src/sync/network/network-store.ts";
import {
  chunkSubject,
  deriveChannelKeys,
  eventSubject,
  INBOX_STREAM,
  inboxSubject,
} from "../../../src/sync/network/subjects.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { useOpened } from "../../support/opened.ts";
import { until } from "../../support/server/client.ts";
import { openStore } from "../../support/worlds/network-replica.ts";

describeWithNats("inboxes, events, chunks and reads over a real nats-server", () => {
  let server: NatsServer;
  const keep = useOpened();
  const online = async (): Promise<NetworkStore> => {
    const store = keep(openStore(server.url));
    await until(() => store.state().phase === "online", "online");
    return store;
  };

  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const openInbox = (store: NetworkStore, accountPublicKey: Uint8Array, cursor?: LogCursor) => {
    const got: string[] = [];
    const at: { cursor: LogCursor | undefined } = { cursor };
    const inbox = keep(
      store.openInbox({
        accountPublicKey,
        cursor,
        port: {
          deliver: async (messages, next) => {
            got.push(...messages.map((message) => bytesToUtf8(message) ?? "?"));
            at.cursor = next;
          },
          reset: async (next) => {
            at.cursor = next;
          },
          changed: () => {},
        },
      }),
    );
    return { inbox, got, at };
  };

  test("[SYNC-12] an inbox takes from anyone, delivers in order, and resumes at its cursor", async () => {
    const sender = await online();
    const receiver = await online();
    const account = publicKeyOfSeed(randomBytes(32));
    await sender.sendToInbox(account, utf8ToBytes("while away"));
    const first = openInbox(receiver, account);
    await until(() => first.got.length === 1, "the first");
    await sender.sendToInbox(account, utf8ToBytes("second"));
    await sender.sendToInbox(account, utf8ToBytes("second"));
    await until(() => first.got.length === 2, "the second");
    await first.inbox[Symbol.asyncDispose]();
    await sender.sendToInbox(account, utf8ToBytes("third"));
    const again = openInbox(receiver, account, first.at.cursor);
    await until(() => again.got.length === 1, "the third");
    expect([...first.got, ...again.got]).toEqual(["while away", "second", "third"]);
    const other = openInbox(receiver, publicKeyOfSeed(randomBytes(32)));
    await other.inbox.round();
    expect(other.got).toEqual([]);
  });

  test("[SYNC-12] the last 4,096 messages wait in an inbox, however many come, and those of other inboxes as well", async () => {
    const store = await online();
    const [flooded, other] = [publicKeyOfSeed(randomBytes(32)), publicKeyOfSeed(randomBytes(32))];
    await store.sendToInbox(other, utf8ToBytes("of another"));
    const stranger = await connect({ servers: server.url });
    keep({ [Symbol.asyncDispose]: () => stranger.close() });
    for (let n = 0; n < 4_098; n++) stranger.publish(inboxSubject(flooded), `${n}`);
    await stranger.flush();
    // It is confirmed, and with it what came before.
    await store.sendToInbox(flooded, utf8ToBytes("the last"));
    const inboxes = [openInbox(store, flooded), openInbox(store, other)];
    for (const { inbox } of inboxes) await inbox.round();
    const [waiting, others] = inboxes.map(({ got }) => got) as [string[], string[]];
    expect([waiting.length, waiting[0], waiting.at(-1)]).toEqual([4_096, "3", "the last"]);
    expect(others).toEqual(["of another"]);
  });

  test("[SYNC-12] an inbox message over the stream's limit is refused", async () => {
    const sender = await online();
    const message = new Uint8Array((64 << 10) + 1);
    await expect(sender.sendToInbox(publicKeyOfSeed(randomBytes(32)), message)).rejects.toMatchObject({
      code: "network.unavailable",
    });
  });

  test("events reach those whose patterns match, not their sender, and nobody without the secret", async () => {
    const a = await online();
    const b = await online();
    const keys = deriveChannelKeys(randomBytes(32));
    const got: string[] = [];
    const listen = (store: NetworkStore, name: string, pattern: string, listening = keys) =>
      store.events.subscribe(listening, pattern, (payload) => got.push(`${name}:${bytesToUtf8(payload)}`));
    listen(b, "all", "ev/>");
    listen(b, "one", "ev/process/*/p1");
    listen(b, "other", "ev/chat/>");
    listen(b, "stranger", "ev/>", deriveChannelKeys(randomBytes(32)));
    listen(a, "self", "ev/>");
    const doneWith = listen(b, "disposed", "ev/>");
    doneWith[Symbol.dispose]();
    await until(() => {
      a.events.publish(keys, "ev/process/progress/p1", utf8ToBytes("x"));
      return got.length > 1;
    }, "it arrives");
    expect(new Set(got)).toEqual(new Set(["all:x", "one:x"]));
  });

  test("forged events are dropped and counted; subscriptions survive a restart", async () => {
    const a = await online();
    const b = await online();
    const keys = deriveChannelKeys(randomBytes(32));
    const got: string[] = [];
    b.events.subscribe(keys, "ev/>", (payload) => got.push(bytesToUtf8(payload) ?? "?"));
    const nc = await connect({ servers: server.url });
    await until(() => {
      nc.publish(eventSubject(keys, "ev/x"), utf8ToBytes("forged"));
      return b.events.dropped() > 0;
    }, "the forgery was dropped");
    await nc.close();
    await server.kill();
    await until(() => a.state().phase === "offline" && b.state().phase === "offline", "offline");
    expect(a.events.publish(keys, "ev/x", utf8ToBytes("lost"))).toBe(false);
    await server.start();
    await until(() => a.state().phase === "online" && b.state().phase === "online", "online");
    await until(() => {
      a.events.publish(keys, "ev/x", utf8ToBytes("after"));
      return got.length > 0;
    }, "it arrives");
    expect(got[0]).toBe("after");
  });

  test("a chunk is stored once, read back, and found by its digest alone", async () => {
    const store = await online();
    const keys = deriveChannelKeys(randomBytes(32));
    const chunk = randomBytes(CHUNK_BYTES_MAX);
    expect(await store.chunks.has(keys, sha256(chunk))).toBe(false);
    expect(await store.chunks.get(keys, sha256(chunk))).toBeUndefined();
    await store.chunks.put(keys, chunk);
    await store.chunks.put(keys, chunk);
    expect(await store.chunks.has(keys, sha256(chunk))).toBe(true);
    expect(await (await online()).chunks.get(keys, sha256(chunk))).toEqual(chunk);
    expect(await store.chunks.get(deriveChannelKeys(randomBytes(32)), sha256(chunk))).toBeUndefined();
    await expect(store.chunks.put(keys, new Uint8Array(CHUNK_BYTES_MAX + 1))).rejects.toThrow(RangeError);
  });

  test("a chunk whose subject is occupied by junk goes to the next one", async () => {
    const store = await online();
    const keys = deriveChannelKeys(randomBytes(32));
    const chunk = utf8ToBytes("chunk");
    const nc = await connect({ servers: server.url });
    await nc.request(chunkSubject(keys, sha256(chunk), 0), utf8ToBytes("junk"));
    await nc.close();
    await store.chunks.put(keys, chunk);
    expect(await store.chunks.get(keys, sha256(chunk))).toEqual(chunk);
  });

  test("a server without batched reads is read message by message to the same result", async () => {
    const store = await online();
    const nc = await connect({ servers: server.url });
    const account = publicKeyOfSeed(randomBytes(32));
    for (let i = 0; i < 70; i++) await store.sendToInbox(account, utf8ToBytes(`m${i}`));
    const subject = inboxSubject(account);
    const pages = async (batches: boolean) => {
      const reader = createDirectReader(nc, batches);
      const seqs: number[] = [];
      for (;;) {
        const page = await reader.page(INBOX_STREAM, subject, (seqs.at(-1) ?? 0) + 1, {
          maxMessages: 500,
          maxBytes: 1 << 20,
        });
        seqs.push(...page.messages.map((message) => message.seq));
        if (page.pending === 0) break;
      }
      reader.close();
      return seqs;
    };
    const one = await pages(false);
    expect(one).toHaveLength(70);
    expect(await pages(true)).toEqual(one);
    await nc.close();
  });
});
