/** What is kept of pushes when a server or a node is killed, and several nodes over one state. */
import { describe, expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bytesToBase58 } from "../../../src/base/base58.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { DevicesReply, PUSH_PATHS } from "../../../src/protocol/push-node.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startFakeFcm } from "../../support/push/fake-fcm.ts";
import { startNode } from "../../support/push/node.ts";
import { startNodeProxy } from "../../support/push/node-proxy.ts";
import { untilPushed } from "../../support/push/outbox.ts";
import { pushAccount, spaceKeyOf } from "../../support/push/push-account.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until, type WriteResult } from "../../support/server/client.ts";
import { startDevice } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { startServer } from "../../support/server/server.ts";

const LONG_MS = 90_000;

describe("a server that is killed", () => {
  rule(
    "[PUSH-4] what it had answered for is pushed after its next start, and its token is told again",
    async () => {
      using fcm = startFakeFcm();
      await using node = await startNode({ fcm });
      using proxy = startNodeProxy(() => node.url);
      await node.kill();
      await using _node = await startNode({
        fcm,
        directory: node.directory,
        port: node.port,
        more: `url: ${proxy.url}`,
      });
      using root = scratchDir("push-killed");
      const options = { dataDir: root.path, env: { SVC_PUSH_URL: proxy.url } };
      const first = await startServer(options);
      await first.client.post("/v1/push/token", { platform: "android", token: "killed-server" }, 204);
      const space = await createSpace(first.client, "killed");
      const chat = await createObject(first.client, space.id, { types: ["chat"] });
      await until(() => proxy.count(PUSH_PATHS.token) > 0, "the token to be told", 10_000);
      proxy.cut();
      const path = `/v1/spaces/${space.id}/objects/${chat.id}/chat/messages`;
      const sent: string[] = [];
      for (let index = 0; index < 3; index++) {
        // An audience of its own each, so that none is merged with another.
        const text = `svc://m/${space.id}/${pushAccount(node.url, `somebody ${index}`).id}`;
        sent.push((await first.client.post<WriteResult>(path, { text }, 201)).recordIds[0]!);
      }
      first.signal("SIGKILL");
      await first.exited;
      proxy.restore();
      const before = proxy.count(PUSH_PATHS.messages);
      await using second = await startServer(options);
      await until(() => proxy.count(PUSH_PATHS.messages) - before >= sent.length, "the messages to be told", 20_000);
      await until(() => proxy.count(PUSH_PATHS.token) > 1, "the token to be told again", 10_000);
      expect(await second.client.get<object>("/v1/push/token")).toEqual({ registered: true, platform: "android" });
      await untilPushed(second);
      expect(proxy.count(PUSH_PATHS.messages) - before).toBe(sent.length);
    },
    LONG_MS,
  );
});

describe.each(["from its first byte", "from its middle on"])(
  "a server whose queue of pushes is damaged %s",
  (where) => {
    rule(
      "[PUSH-4] starts all the same, keeps the damaged file aside, and pushes what is written from then on",
      async () => {
        using fcm = startFakeFcm();
        await using node = await startNode({ fcm });
        using root = scratchDir("push-damaged");
        const options = { dataDir: root.path, env: { SVC_PUSH_URL: node.url } };
        const first = await startServer(options);
        const { account } = await first.client.get<{ account: string }>("/v1/health");
        const space = await createSpace(first.client, "damaged");
        const chat = await createObject(first.client, space.id, { types: ["chat"] });
        await first.stop();
        const file = join(root.path, account, "push.db");
        const bytes = readFileSync(file);
        const from = where === "from its middle on" ? Math.floor(bytes.length / 2) : 0;
        writeFileSync(file, Buffer.concat([bytes.subarray(0, from), Buffer.alloc(bytes.length - from, 0xa5)]));

        await using second = await startServer(options);
        expect(existsSync(`${file}.damaged`)).toBe(true);
        const watcher = pushAccount(node.url, `damaged ${where}`);
        await watcher.register("android", "damaged-watcher");
        const { push } = await second.client.get<{ push: { spaceKey: string } }>(`/v1/spaces/${space.id}`);
        const signer = createSigner(new Uint8Array(Buffer.from(push.spaceKey, "base64")));
        await watcher.watch({ spaceKey: bytesToBase58(signer.publicKey), signer }, ["chats"]);
        const path = `/v1/spaces/${space.id}/objects/${chat.id}/chat/messages`;
        await second.client.post(path, { text: "after the damage" }, 201);
        await until(() => fcm.of("damaged-watcher").length === 1, "the notification", 15_000);
      },
      LONG_MS,
    );
  },
);

describe("a device that is pruned", () => {
  rule(
    "[PUSH-4] loses its token at the node, and does not come back with it",
    async () => {
      using fcm = startFakeFcm();
      using proxy = startNodeProxy(() => node.url);
      await using node = await startNode({ fcm, more: `url: ${proxy.url}` });
      const options = { lan: true, env: { SVC_PUSH_URL: proxy.url } };
      await using phone = await startDevice(options);
      await using lost = await startDevice({ ...options, mnemonic: phone.mnemonic });
      const space = await createSpace(lost.server.client, "of the lost one");
      const chat = await createObject(lost.server.client, space.id, { types: ["chat"] });
      await phone.server.client.post("/v1/push/token", { platform: "android", token: "kept-phone" }, 204);
      await lost.server.client.post("/v1/push/token", { platform: "android", token: "lost-phone" }, 204);
      const { Database } = await import("bun:sqlite");
      const tokens = (): string[] => {
        using db = new Database(node.databasePath, { readonly: true });
        return db
          .query<{ token: string }, []>("SELECT token FROM devices ORDER BY token")
          .all()
          .map(({ token }) => token);
      };
      await until(() => tokens().length === 2, "both tokens to be told", 15_000);
      const peers = async () => (await phone.server.client.get<{ devices: object[] }>("/v1/devices")).devices;
      await until(async () => (await peers()).length === 2, "the other device to be seen", 30_000);
      const { self } = await lost.server.client.get<{ self: string }>("/v1/devices");
      await phone.server.client.del(`/v1/devices/${self}`, 204);
      await until(() => tokens().join() === "android kept-phone", "the lost one's token to go", 15_000);
      // It hears that it was pruned, and a token that it is given leads nowhere.
      const isPruned = async () =>
        (await lost.server.client.request("PUT", "/v1/devices/me", { body: { name: "x" } })).status === 409;
      await until(isPruned, "the lost one to hear of it", 30_000);
      await lost.server.client.post("/v1/push/token", { platform: "android", token: "lost-phone-again" }, 204);
      // The second message waits for longer than a token does that is to be told.
      for (const [before, text] of ["one", "two"].entries()) {
        await lost.server.client.post(`/v1/spaces/${space.id}/objects/${chat.id}/chat/messages`, { text }, 201);
        await until(() => proxy.count(PUSH_PATHS.messages) > before, `message ${text} to be told`, 15_000);
      }
      expect(tokens()).toEqual(["android kept-phone"]);
    },
    LONG_MS,
  );
});

describeWithNats("several nodes over one state", () => {
  rule(
    "[PUSH-7] serve an account by turns, and what one of them took the other delivers when it dies",
    async () => {
      using fcm = startFakeFcm();
      await using nats = await startNats();
      let turn = 0;
      let alive: { url: string }[] = [];
      using proxy = startNodeProxy(() => alive[turn++ % alive.length]!.url);
      const options = { fcm, more: `url: ${proxy.url}`, state: `state:\n  nats:\n    url: ${nats.url}` };
      await using one = await startNode(options);
      await using two = await startNode(options);
      alive = [one, two];
      const space = spaceKeyOf("shared state");
      const [watcher, sender] = [pushAccount(proxy.url, "shared watcher"), pushAccount(proxy.url, "shared sender")];
      await watcher.register("android", "shared-state");
      await watcher.watch(space, ["chats", watcher.id]);
      for (let index = 0; index < 10; index++) await sender.send(space, { chat: `chat ${index}` });
      await until(() => fcm.of("shared-state").length >= 10, "all of them", 15_000);
      fcm.fail("shared-state", [{ status: 503, retryAfter: "2", body: {} }]);
      alive = [one];
      await sender.send(space, { chat: "the last" });
      const isLeftForLater = () => [one, two].some((node) => node.stderr().includes("takes a notification later"));
      await until(isLeftForLater, "the provider to be asked", 15_000);
      // Its state has what it noted before this is answered; else it stays its own for a minute.
      await watcher.calls.post(PUSH_PATHS.devices, DevicesReply, {});
      await one.kill();
      await until(() => fcm.of("shared-state").length >= 11, "what the dead one had taken", 45_000);
      const chats = fcm.of("shared-state").map(({ message }) => message.android.collapse_key);
      expect([chats.length, new Set(chats).size]).toEqual([11, 11]);
    },
    LONG_MS,
  );
});
