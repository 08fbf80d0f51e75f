/** From a chat message on one server to the notification on others' phones, through a real node and both providers. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type OpenedNotification, openNotification } from "../../docs/push/decoder.ts";
import { type FakeApns, startFakeApns } from "../support/push/fake-apns.ts";
import { type FakeFcm, startFakeFcm } from "../support/push/fake-fcm.ts";
import { type PushNode, startNode } from "../support/push/node.ts";
import { type NodeProxy, startNodeProxy } from "../support/push/node-proxy.ts";
import { untilPushed } from "../support/push/outbox.ts";
import { rule } from "../support/rule.ts";
import { type SpaceInfo, until, type WriteResult } from "../support/server/client.ts";
import { type Device, joinOpen, startDevice, untilStatus } from "../support/server/devices.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

const LONG_MS = 120_000;
const CANARY = "canary-7f3a";

let fcm: FakeFcm;
let apns: FakeApns;
let node: PushNode;
let proxy: NodeProxy;
/** Olga's phone and tablet, Gustav's phone, and Greta's, who joins by a guest key. */
let olga: Device;
let tablet: Device;
let gustav: Device;
let greta: Device;
let space: SpaceInfo;
let chat: string;
/** The keys that each device has ever seen in its rows, as an app keeps them. */
const keysByDevice = new Map<Device, Map<string, string>>();

beforeAll(async () => {
  fcm = startFakeFcm();
  apns = await startFakeApns();
  proxy = startNodeProxy(() => node.url);
  node = await startNode({ fcm, apns, more: `url: ${proxy.url}` });
  const options = { lan: true, env: { SVC_PUSH_URL: proxy.url } };
  olga = await startDevice(options);
  [tablet, gustav, greta] = await Promise.all([
    startDevice({ ...options, mnemonic: olga.mnemonic }),
    startDevice(options),
    startDevice(options),
  ]);
  await olga.server.client.put("/v1/account/metadata", { name: `${CANARY} Olga` });
  const tokens: [Device, "ios" | "android", string][] = [
    [olga, "android", "olga-phone"],
    [tablet, "ios", "01a4"],
    [gustav, "android", "gustav-phone"],
    [greta, "ios", "93e7a"],
  ];
  for (const [device, platform, token] of tokens)
    await device.server.client.post("/v1/push/token", { platform, token }, 204);
  space = await createSpace(olga.server.client, `${CANARY} space`);
  const body = { types: ["chat"], initialProperties: { svc: { name: `${CANARY} chat` } } };
  chat = (await createObject(olga.server.client, space.id, body)).id;
  await joinOpen(olga, gustav, space.id);
  const path = `/v1/spaces/${space.id}/guest-key`;
  const { inviteToken } = await olga.server.client.post<{ inviteToken: string }>(path, {}, 201);
  await greta.server.client.post("/v1/spaces/join", { inviteToken }, 202);
  for (const device of [tablet, gustav, greta]) {
    await untilStatus(device, space.id, "active");
    await untilChat(device);
  }
  for (const device of [olga, gustav, greta]) await untilFollowed(device);
}, LONG_MS);

afterAll(async () => {
  for (const device of [olga, tablet, gustav, greta]) await device?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
  proxy?.[Symbol.dispose]();
  await apns?.[Symbol.asyncDispose]();
  fcm?.[Symbol.dispose]();
}, LONG_MS);

const client = (device: Device) => device.server.client;
const untilChat = (device: Device): Promise<void> =>
  until(
    async () => {
      const body = { filter: { id: chat } };
      const reply = await client(device).request("POST", `/v1/spaces/${space.id}/objects/query`, { body });
      return ((reply.json as { records?: object[] }).records ?? []).length > 0;
    },
    "the chat to come",
    60_000,
  );

/** Waits until the node watches for a device's account exactly what the device says it should. */
async function untilFollowed(device: Device): Promise<void> {
  let state = "";
  await until(
    async () => {
      const { subscriptions } = await client(device).get<{ subscriptions: { spaceKey: string; topic: string }[] }>(
        "/v1/push/subscriptions",
      );
      const wanted = subscriptions.map(({ spaceKey, topic }) => `${spaceKey} ${topic}`).sort();
      const held = topicsAtNode(device.accountId);
      state = JSON.stringify({ wanted, held });
      return JSON.stringify(wanted) === JSON.stringify(held);
    },
    "the node to be told",
    20_000,
  ).catch((error: Error) => {
    throw new Error(`${error.message}: ${state}`);
  });
}

function topicsAtNode(account: string): string[] {
  using db = new Database(node.databasePath, { readonly: true });
  const rows = db
    .query<{ spaceKey: string; topic: string }, [string]>(
      "SELECT space_key AS spaceKey, topic FROM topics WHERE account = ?",
    )
    .all(account);
  return rows.map(({ spaceKey, topic }) => `${spaceKey} ${topic}`).sort();
}

/** Sends a message; answers its id. */
async function send(device: Device, text: string, more: object = {}): Promise<string> {
  const path = `/v1/spaces/${space.id}/objects/${chat}/chat/messages`;
  const { recordIds: ids } = await client(device).post<WriteResult>(path, { text, ...more }, 201);
  return ids[0]!;
}

/** What a device's token has got, opened with the keys that the device has seen. */
async function openedBy(device: Device, token: string): Promise<(OpenedNotification | undefined)[]> {
  const keys = keysByDevice.get(device) ?? new Map<string, string>();
  keysByDevice.set(device, keys);
  const rows =
    await client(device).get<(SpaceInfo & { push?: { encKey: string; encKeyId: string } })[]>("/v1/spaces?status=all");
  for (const { push } of rows) if (push) keys.set(push.encKeyId, push.encKey);
  const data = [...fcm.of(token).map(({ message }) => message.data), ...apns.of(token).map(({ payload }) => payload)];
  return data.map((one) => openNotification(one as never, keys));
}

async function countOf(device: Device, token: string, messageId: string): Promise<number> {
  const opened = await openedBy(device, token);
  return opened.filter((one) => one?.kind === "message" && one.messageId === messageId).length;
}
const untilNotified = (device: Device, token: string, messageId: string): Promise<void> =>
  until(async () => (await countOf(device, token, messageId)) > 0, `${token} to be told`, 15_000);

/** Until everything that was written here has been told to those it is for: what has not come then does not come. */
async function untilNothingWaits(): Promise<void> {
  for (const { server } of [olga, tablet, gustav, greta]) await untilPushed(server);
  await node.untilDelivered();
}

const setMode = (device: Device, notifyMode: string) =>
  client(device).patch(`/v1/spaces/${space.id}/settings`, { set: { notifyMode } });
const setChatMode = (device: Device, notifyMode: string | null) =>
  client(device).post(`/v1/spaces/${space.id}/properties/${chat}/set/chat`, { patch: { notifyMode } });

describe("who gets what", () => {
  rule(
    "[PUSH-3] a member's phone is told of a message, once, and opens it; the author's devices are not told",
    async () => {
      const id = await send(olga, `${CANARY} hello, Gustav`);
      await untilNotified(gustav, "gustav-phone", id);
      await untilNotified(greta, "93e7a", id);
      await untilNothingWaits();
      const opened = (await openedBy(gustav, "gustav-phone")).filter(
        (one) => one?.kind === "message" && one.messageId === id,
      );
      expect(opened).toEqual([
        {
          kind: "message",
          spaceId: space.id,
          chatId: chat,
          messageId: id,
          sender: olga.accountId,
          text: `${CANARY} hello, Gustav`,
        },
      ]);
      expect(await countOf(greta, "93e7a", id)).toBe(1);
      expect(fcm.of("olga-phone")).toEqual([]);
      expect(apns.of("01a4")).toEqual([]);
    },
  );

  rule("[PUSH-3] edits, deletions, reactions and interim messages of an agent tell nobody", async () => {
    const path = `/v1/spaces/${space.id}/objects/${chat}/chat/messages`;
    const id = await send(olga, "to be edited");
    await untilNotified(greta, "93e7a", id);
    const before = proxy.count("/v1/messages");
    await client(olga).patch(`${path}/${id}`, { text: `edited for svc://m/${space.id}/${gustav.accountId}` }, 200);
    await client(olga).post(`${path}/${id}/reactions/x`, undefined, 200);
    await send(olga, "thinking", { agent: { name: "bot", done: false } });
    await client(olga).del(`${path}/${id}`, 200);
    // It is for somebody by name, so that it is told at once and takes no other's place.
    const mention = `an answer for svc://m/${space.id}/${greta.accountId}`;
    const done = await send(olga, mention, { agent: { name: "bot", done: true } });
    await untilNotified(greta, "93e7a", done);
    await untilNothingWaits();
    expect(proxy.count("/v1/messages")).toBe(before + 1);
  });

  rule(
    "[PUSH-3] every mode of a space and of a chat, for plain messages, mentions and replies",
    async () => {
      const own = await send(gustav, "Gustav's own");
      const addressed: [string, (text: string) => Promise<string>][] = [
        ["plain", (text) => send(olga, text)],
        ["mention", (text) => send(olga, `${text} svc://m/${space.id}/${gustav.accountId}`)],
        ["reply", (text) => send(olga, text, { replyToMessageId: own })],
      ];
      await until(async () => (await messageCount(olga, own)) === 1, "Gustav's message to come", 20_000);
      const seen: string[] = [];
      const wanted: string[] = [];
      for (const mode of ["all", "mentions", "none"]) {
        await setMode(gustav, mode);
        for (const override of [null, "all", "mentions", "none"]) {
          await setChatMode(gustav, override);
          await untilFollowed(gustav);
          for (const [what, write] of addressed) {
            const name = `${mode}/${override}/${what}`;
            const effective = override ?? mode;
            const isPushed = effective === "all" || (effective === "mentions" && what !== "plain");
            wanted.push(`${name} ${isPushed ? 1 : 0}`);
            const id = await write(name);
            // Greta is told of everything: what was for Gustav is on its way by then.
            await untilNotified(greta, "93e7a", id);
            if (isPushed) await untilNotified(gustav, "gustav-phone", id).catch(() => undefined);
            else await node.untilDelivered();
            seen.push(`${name} ${await countOf(gustav, "gustav-phone", id)}`);
          }
        }
      }
      expect(seen).toEqual(wanted);
      await setMode(gustav, "all");
      await setChatMode(gustav, null);
      await untilFollowed(gustav);
    },
    LONG_MS,
  );

  rule("[PUSH-4] a burst in one chat makes few notifications, the last of them of the newest message", async () => {
    const before = proxy.count("/v1/messages");
    let last = "";
    for (let index = 0; index < 30; index++) last = await send(olga, `burst ${index}`);
    await untilNotified(gustav, "gustav-phone", last);
    expect(proxy.count("/v1/messages") - before).toBeLessThan(10);
  });

  rule(
    "[PUSH-3] reading a chat takes the notifications from the account's other devices, and tells nobody else",
    async () => {
      const id = await send(gustav, "read this");
      await untilNotified(tablet, "01a4", id);
      await until(async () => (await messageCount(olga, id)) === 1, "the message to come", 20_000);
      const [phone, others] = [fcm.of("olga-phone").length, fcm.of("gustav-phone").length + apns.of("93e7a").length];
      await client(olga).post(`/v1/spaces/${space.id}/objects/${chat}/chat/read-all`, undefined, 204);
      const isRead = async () =>
        (await openedBy(tablet, "01a4")).some((one) => one?.kind === "read" && one.chatId === chat);
      await until(isRead, "the tablet to be told", 10_000);
      await untilNothingWaits();
      const readings = apns.of("01a4").filter(({ payload }) => payload.kind === "read");
      expect(readings).toHaveLength(1);
      expect(readings[0]!.payload.aps).toEqual({ "content-available": 1 });
      expect(fcm.of("olga-phone")).toHaveLength(phone);
      expect(fcm.of("gustav-phone").length + apns.of("93e7a").length).toBe(others);
    },
  );
});

const messageCount = async (device: Device, id: string): Promise<number> => {
  const body = { objectId: chat, dataset: "chat_messages", filter: { id } };
  const { records } = await client(device).post<{ records: object[] }>(`/v1/spaces/${space.id}/query`, body, 200);
  return records.length;
};

describe("when the node cannot be reached", () => {
  rule(
    "[PUSH-4] what was written meanwhile comes when it is back, once, also over a restart of either",
    async () => {
      proxy.cut();
      const lostBefore = proxy.lost;
      const id = await send(olga, "written in the dark");
      await until(() => proxy.lost > lostBefore, "an attempt");
      expect(await countOf(gustav, "gustav-phone", id)).toBe(0);
      proxy.restore();
      await untilNotified(gustav, "gustav-phone", id);
      await node.untilDelivered(); // killed before, it would ask the provider again, who collapses the two
      await node.kill();
      const lostNext = proxy.lost;
      const next = await send(olga, "written while the node was dead");
      await until(() => proxy.lost > lostNext, "an attempt");
      await node.start();
      await untilNotified(gustav, "gustav-phone", next);
      await untilNothingWaits();
      expect(await countOf(gustav, "gustav-phone", id)).toBe(1);
      expect(await countOf(gustav, "gustav-phone", next)).toBe(1);
    },
    LONG_MS,
  );

  rule(
    "[PUSH-4] a node that lost everything is told everything again",
    async () => {
      await node.kill();
      for (const name of readdirSync(node.directory))
        if (name.startsWith("push-node.db")) await Bun.file(join(node.directory, name)).delete();
      await node.start();
      // What a server has to say next brings it to tell everything.
      await send(gustav, "into the void");
      await untilFollowed(gustav);
      for (const device of [olga, greta]) {
        await setMode(device, "mentions");
        await untilFollowed(device);
        await setMode(device, "all");
        await untilFollowed(device);
      }
      const id = await send(gustav, "after the loss");
      await untilNotified(greta, "93e7a", id);
      await untilNotified(olga, "olga-phone", id);
    },
    LONG_MS,
  );
});

describe("who is shut out", () => {
  rule(
    "[PUSH-3] a member that was removed hears nothing more, and its keys open nothing more; nor does a guest whose key was revoked",
    async () => {
      await openedBy(gustav, "gustav-phone"); // what it had by now, it has
      const keysBefore = new Set(keysByDevice.get(gustav)!.keys());
      await client(olga).post(`/v1/spaces/${space.id}/acl/remove`, { identities: [gustav.accountId] }, 204);
      await untilFollowed(olga);
      await until(async () => (await keyIdOf(greta)) === (await keyIdOf(olga)), "Greta to have the next key", 30_000);
      await untilFollowed(greta);
      const id = await send(olga, `${CANARY} without Gustav`);
      await untilNotified(greta, "93e7a", id);
      await untilNothingWaits();
      const { payload } = apns.of("93e7a").at(-1)!;
      expect(keysBefore.has(payload.keyId)).toBe(false);
      await openedBy(gustav, "gustav-phone");
      expect(openNotification(payload, keysByDevice.get(gustav)!)).toBeUndefined();
      expect(await countOf(gustav, "gustav-phone", id)).toBe(0);

      await client(olga).del(`/v1/spaces/${space.id}/guest-key`, 204);
      await until(async () => (await keyIdOf(olga)) !== payload.keyId, "the key after that", 20_000);
      await untilFollowed(olga);
      const before = apns.of("93e7a").length;
      const callsBefore = proxy.count("/v1/messages");
      await send(olga, `${CANARY} without Greta`);
      await until(() => proxy.count("/v1/messages") > callsBefore, "the node to be told", 10_000);
      await untilNothingWaits();
      expect(apns.of("93e7a")).toHaveLength(before);
    },
    LONG_MS,
  );

  rule(
    "[PUSH-5] [SYNC-9] nothing that passed the node or lies there, nor what providers saw, holds a name, a text or an id",
    () => {
      const files = readdirSync(node.directory).map((name) => readFileSync(join(node.directory, name), "latin1"));
      const all = { proxy: proxy.traffic, fcm: fcm.traffic, apns: apns.traffic, files, log: [node.stderr()] };
      for (const [where, texts] of Object.entries(all)) {
        for (const secret of [CANARY, space.id, chat, olga.mnemonic])
          expect(`${where}: ${texts.some((text) => text.includes(secret))}`).toBe(`${where}: false`);
      }
      // The watch is not blind: what is there is found.
      expect(proxy.traffic.some((text) => text.includes(olga.accountId))).toBe(true);
      expect(fcm.traffic.some((text) => text.includes("gustav-phone"))).toBe(true);
    },
  );
});

const keyIdOf = async (device: Device): Promise<string | undefined> =>
  (await client(device).get<SpaceInfo & { push?: { encKeyId: string } }>(`/v1/spaces/${space.id}`)).push?.encKeyId;
