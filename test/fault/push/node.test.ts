/** A push node of the executable: whom it wakes, what it refuses, and what providers' errors do (docs/push.md). */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { DevicesReply, PUSH_BOUNDS, PUSH_HEADERS, PUSH_PATHS, TopicsPage } from "../../../src/protocol/push-node.ts";
import { requestStatement } from "../../../src/push-link/statements.ts";
import type { FakeApns } from "../../support/push/fake-apns.ts";
import { type FakeFcm, fcmBadToken, fcmError } from "../../support/push/fake-fcm.ts";
import { type PushNode, startNode } from "../../support/push/node.ts";
import { accountAt, type Providers, pairAt, startProviders } from "../../support/push/providers.ts";
import { devicesOf, deviceTag, type PushAccount, spaceKeyOf } from "../../support/push/push-account.ts";
import { rule } from "../../support/rule.ts";
import { openSocket } from "../../support/server/raw-http.ts";

const LONG_MS = 60_000;

let providers: Providers;
let fcm: FakeFcm;
let apns: FakeApns;
let node: PushNode;

beforeAll(async () => {
  providers = await startProviders();
  ({ fcm, apns } = providers);
  node = await startNode(providers.options);
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  await providers[Symbol.asyncDispose]();
});

const account = (name: string): PushAccount => accountAt(node, name);
const pair = (name: string, platform: "ios" | "android", token: string) => pairAt(node, name, platform, token);
const arrivals = (token: string): number => providers.arrivals(token);
const untilArrived = (token: string, count?: number, timeoutMs?: number): Promise<void> =>
  providers.untilArrived(token, count, timeoutMs);

describe("who is woken, and how", () => {
  rule("[PUSH-7] an Android device gets the sealed bytes at high priority, once, with a collapse key", async () => {
    const { space, watcher, sender } = await pair("android", "android", "fcm-android");
    expect(await sender.send(space, { topics: ["chats", watcher.id] })).toEqual({ devices: 1 });
    await sender.send(space, { topics: ["chats", watcher.id], chat: "the next one" });
    await untilArrived("fcm-android", 2);
    const [arrival, ...more] = fcm.of("fcm-android");
    expect(more.map(({ message }) => message.android.collapse_key)).toEqual([
      expect.not.stringMatching(`^${arrival!.message.android.collapse_key}$`),
    ]);
    expect(arrival!.message.data).toMatchObject({ v: "1", kind: "message", spaceKey: space.spaceKey });
    expect(arrival!.message.android).toMatchObject({ priority: "HIGH", ttl: "604800s" });
    expect(arrival!.message.android.collapse_key).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(arrival!.message).not.toHaveProperty("notification");
  });

  rule("[PUSH-7] an iPhone gets an alert with a placeholder that its extension replaces", async () => {
    const { space, sender } = await pair("iphone", "ios", "aa01");
    await sender.send(space);
    await untilArrived("aa01");
    const { headers, payload } = apns.of("aa01")[0]!;
    expect(payload.aps).toEqual({
      alert: { title: expect.any(String), body: expect.any(String) },
      sound: "default",
      "mutable-content": 1,
    });
    expect(headers).toMatchObject({ "apns-push-type": "alert", "apns-priority": "10" });
    const expiryDays = (Number(headers["apns-expiration"]) - Date.now() / 1000) / 86_400;
    expect(Math.round(expiryDays)).toBe(7);
  });

  rule(
    "[PUSH-3] the author's own devices hear nothing of a message; a reading is for the others of them alone",
    async () => {
      const space = spaceKeyOf("own");
      const [olga, gustav] = [account("Olga"), account("Gustav")];
      await olga.register("android", "olga-phone", "phone");
      await olga.register("ios", "01fa", "tablet");
      await gustav.register("android", "gustav-phone");
      await olga.watch(space, ["chats", olga.id]);
      await gustav.watch(space, ["chats", gustav.id]);
      expect(await olga.send(space)).toEqual({ devices: 1 });
      await untilArrived("gustav-phone");
      expect(await olga.send(space, { kind: "read", topics: [olga.id], device: "phone" })).toEqual({ devices: 1 });
      await untilArrived("01fa");
      await node.untilDelivered();
      expect([arrivals("olga-phone"), arrivals("01fa"), arrivals("gustav-phone")]).toEqual([0, 1, 1]);
      const [reading] = apns.of("01fa");
      expect(reading!.payload.aps).toEqual({ "content-available": 1 });
      expect(reading!.headers).toMatchObject({ "apns-push-type": "background", "apns-priority": "5" });
    },
  );

  rule("[PUSH-7] notifications of one chat collapse for a token, and for no other chat or token", async () => {
    const { space, sender, watcher } = await pair("collapse", "android", "collapse-1");
    await watcher.register("android", "collapse-2", "other");
    for (const chat of ["one", "one", "two"]) await sender.send(space, { chat });
    await untilArrived("collapse-1", 3);
    await untilArrived("collapse-2", 3);
    const keys = (token: string) => fcm.of(token).map(({ message }) => message.android.collapse_key);
    expect(new Set(keys("collapse-1")).size).toBe(2);
    expect(new Set([...keys("collapse-1"), ...keys("collapse-2")]).size).toBe(4);
  });

  rule("[PUSH-7] a token goes to the account that registered it last; a revoked one is woken no more", async () => {
    const { space, watcher, sender } = await pair("displaced", "android", "shared-token");
    const next = account("displaced next");
    await next.register("android", "shared-token");
    expect(await sender.send(space)).toEqual({ devices: 0 });
    await next.watch(space, ["chats"]);
    expect(await sender.send(space)).toEqual({ devices: 1 });
    await untilArrived("shared-token");
    await next.revoke();
    expect(await sender.send(space)).toEqual({ devices: 0 });
    expect(await watcher.calls.post(PUSH_PATHS.devices, DevicesReply, {})).toEqual({ devices: [] });
  });

  rule("[PUSH-7] a topic that is watched no longer wakes nobody", async () => {
    const { space, watcher, sender } = await pair("unwatched", "android", "unwatched-token");
    await watcher.unwatch(space, ["chats"]);
    expect(await sender.send(space)).toEqual({ devices: 0 });
    expect(await sender.send(space, { topics: ["chats", watcher.id] })).toEqual({ devices: 1 });
    const list = await watcher.calls.post(PUSH_PATHS.topicsList, TopicsPage, {});
    expect(list).toEqual({ topics: [{ spaceKey: space.spaceKey, topic: watcher.id }], more: false });
  });
});

describe("what is refused", () => {
  const fault = (code: string) => expect.objectContaining({ code });

  rule("[PUSH-6] nothing is taken unsigned, signed for another route or body, or twice", async () => {
    const one = account("replay");
    const post = (path: string, body: string, headers: Record<string, string> = {}) =>
      fetch(node.url + path, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
    const body = JSON.stringify({ platform: "android", token: "t", device: deviceTag("d"), registeredMs: 1 });
    for (const path of Object.values(PUSH_PATHS)) {
      if (path === PUSH_PATHS.health || path === PUSH_PATHS.challenge) continue;
      expect((await post(path, body)).status).toBe(401);
    }
    const { challenge } = (await (await post(PUSH_PATHS.challenge, JSON.stringify({ account: one.id }))).json()) as {
      challenge: string;
    };
    const bytes = new TextEncoder().encode(body);
    const of = { audience: node.url, path: PUSH_PATHS.token, account: one.id, challenge, body: bytes };
    const sign = (statement: Uint8Array) => ({
      [PUSH_HEADERS.account]: one.id,
      [PUSH_HEADERS.challenge]: challenge,
      [PUSH_HEADERS.signature]: Buffer.from(one.signer.sign("push-request", statement)).toString("base64url"),
    });
    const good = sign(requestStatement(of));
    const other = {
      audience: "http://another.example",
      path: PUSH_PATHS.devices,
      account: account("x").id,
      challenge: `${challenge}A`,
    };
    for (const [field, value] of Object.entries(other))
      expect((await post(PUSH_PATHS.token, body, sign(requestStatement({ ...of, [field]: value })))).status).toBe(401);
    expect((await post(PUSH_PATHS.token, `${body} `, good)).status).toBe(401);
    expect((await post(PUSH_PATHS.devices, body, good)).status).toBe(401);
    expect((await post(PUSH_PATHS.token, body, good)).status).toBe(204);
    expect((await post(PUSH_PATHS.token, body, good)).status).toBe(401);
  });

  rule("[PUSH-6] a challenge of one account is none of another's", async () => {
    const [one, two] = [account("challenge one"), account("challenge two")];
    const reply = await fetch(node.url + PUSH_PATHS.challenge, {
      method: "POST",
      body: JSON.stringify({ account: one.id }),
    });
    const { challenge } = (await reply.json()) as { challenge: string };
    const body = new TextEncoder().encode("{}");
    const statement = requestStatement({
      audience: node.url,
      path: PUSH_PATHS.devices,
      account: two.id,
      challenge,
      body,
    });
    const stolen = await fetch(node.url + PUSH_PATHS.devices, {
      method: "POST",
      body,
      headers: {
        [PUSH_HEADERS.account]: two.id,
        [PUSH_HEADERS.challenge]: challenge,
        [PUSH_HEADERS.signature]: Buffer.from(two.signer.sign("push-request", statement)).toString("base64url"),
      },
    });
    expect(stolen.status).toBe(401);
  });

  rule("[PUSH-6] a subscription that the space's key did not sign, or for another's name, is refused", async () => {
    const { space, watcher } = await pair("forged", "android", "forged-token");
    const stranger = account("forger");
    await stranger.register("android", "forger-token");
    const strangersKey = spaceKeyOf("stranger's own").signer;
    await expect(stranger.watch(space, ["chats"], strangersKey)).rejects.toEqual(fault("push.forbidden"));
    await expect(stranger.watch(space, ["chats"], stranger.signer)).rejects.toEqual(fault("push.forbidden"));
    // A member may not listen for another member either.
    await expect(stranger.watch(space, [watcher.id])).rejects.toEqual(fault("push.forbidden"));
    for (const topic of ["everything", "chats/../x", `chats/${"0".repeat(63)}`, "chats/*", ""])
      await expect(stranger.watch(space, [topic])).rejects.toEqual(fault("push.bad_request"));
    expect(await stranger.calls.post(PUSH_PATHS.topicsList, TopicsPage, {})).toEqual({ topics: [], more: false });
  });

  rule("[PUSH-6] a message that the space's key did not sign wakes nobody", async () => {
    const { space, sender } = await pair("foreign", "android", "foreign-token");
    const stranger = account("foreigner");
    await expect(stranger.send(space, { by: stranger.signer })).rejects.toEqual(fault("push.forbidden"));
    await expect(stranger.send(space, { by: spaceKeyOf("elsewhere").signer })).rejects.toEqual(fault("push.forbidden"));
    await sender.send(space);
    await untilArrived("foreign-token");
    expect(arrivals("foreign-token")).toBe(1);
  });

  rule("[PUSH-6] what is too large is refused before it is read to its end", async () => {
    const { space, sender } = await pair("large", "android", "large-token");
    const sealed = (length: number) => "A".repeat(length);
    await expect(sender.send(space, { sealed: sealed(PUSH_BOUNDS.sealedChars + 4) })).rejects.toEqual(
      fault("push.bad_request"),
    );
    expect(await sender.send(space, { sealed: sealed(PUSH_BOUNDS.sealedChars) })).toEqual({ devices: 1 });
    await untilArrived("large-token"); // the largest fits into what the provider takes
    await expect(sender.send(space, { sealed: sealed(PUSH_BOUNDS.bodyBytes) })).rejects.toEqual(
      fault("push.too_large"),
    );
  });

  rule("[PUSH-6] a Host that is no name, or none, is no fault of the node's", async () => {
    const { port } = node;
    for (const host of ["", "Host:\r\n", "Host: a b\r\n", "Host: [\r\n", "Host: x:99999999\r\n"]) {
      const socket = await openSocket(port);
      socket.write(`POST /v1/challenge HTTP/1.${host === "" ? 0 : 1}\r\n${host}Content-Length: 0\r\n\r\n`);
      await socket.readUntil("error");
      expect([host, /^HTTP\/1\.[01] (\d+)/.exec(socket.received())?.[1]?.[0]]).toEqual([host, "4"]);
      socket.destroy();
    }
  });
});

describe("what providers answer", () => {
  rule(
    "[PUSH-7] tokens that a provider calls dead are dropped, and a refusal for another reason drops none",
    async () => {
      const dead: [string, "ios" | "android", () => void][] = [
        ["gone-1", "android", () => fcm.fail("gone-1", [fcmError(404, "UNREGISTERED")])],
        ["gone-2", "android", () => fcm.fail("gone-2", [fcmBadToken])],
        [
          "dead3",
          "ios",
          () => apns.fail("dead3", [{ status: 410, reason: "Unregistered", timestamp: Date.now() + 1000 }]),
        ],
        // Neither environment knows it.
        ["dead4", "ios", () => apns.fail("dead4", [{ status: 400, reason: "BadDeviceToken" }])],
      ];
      const alive: [string, "ios" | "android", () => void][] = [
        ["live-1", "android", () => fcm.fail("live-1", [fcmError(400, "INVALID_ARGUMENT")])],
        ["live-2", "android", () => fcm.fail("live-2", [fcmError(403, "SENDER_ID_MISMATCH")])],
        ["a11e3", "ios", () => apns.fail("a11e3", [{ status: 400, reason: "DeviceTokenNotForTopic" }])],
        // It was registered after the moment that Apple speaks of.
        ["a11e4", "ios", () => apns.fail("a11e4", [{ status: 410, reason: "Unregistered", timestamp: 1000 }])],
      ];
      for (const [token, platform, script] of [...dead, ...alive]) {
        script();
        const { space, sender, watcher } = await pair(`prune ${token}`, platform, token);
        await sender.send(space);
        const left = dead.some(([one]) => one === token) ? 0 : 1;
        await node.untilDelivered();
        expect(await devicesOf(watcher)).toBe(left);
      }
    },
  );

  rule("[PUSH-7] a token of Apple's other environment is found there, and asked there first from then on", async () => {
    const { space, sender } = await pair("sandbox", "ios", "5a01");
    await sender.send(space);
    await untilArrived("5a01");
    const askedBefore = apns.traffic.filter((text) => text.includes("5a01")).length;
    await sender.send(space);
    await untilArrived("5a01", 2);
    expect(askedBefore).toBe(1);
    expect(apns.traffic.filter((text) => text.includes("5a01"))).toHaveLength(1);
  });

  rule("[PUSH-7] Retry-After is followed, and what came later arrives once", async () => {
    fcm.fail("later-1", [{ status: 503, retryAfter: "1", body: {} }]);
    const { space, sender } = await pair("later", "android", "later-1");
    const atMs = Date.now();
    await sender.send(space);
    await untilArrived("later-1");
    expect(Date.now() - atMs).toBeGreaterThan(950);
    await sender.send(space, { chat: "the next one" });
    await untilArrived("later-1", 2);
    expect(new Set(fcm.of("later-1").map(({ message }) => message.android.collapse_key)).size).toBe(2);
  });

  rule("[PUSH-7] an access token that is refused is asked for anew", async () => {
    const { space, sender } = await pair("access", "android", "access-1");
    const issued = fcm.tokensIssued;
    fcm.revokeAccess();
    await sender.send(space);
    await untilArrived("access-1");
    expect(fcm.tokensIssued).toBe(issued + 1);
  });

  rule("[PUSH-7] one provider token and one connection serve many notifications", async () => {
    const { space, sender } = await pair("session", "ios", "5e551");
    const sessions = apns.sessions;
    for (let index = 0; index < 20; index++) await sender.send(space, { chat: `chat ${index}` });
    await untilArrived("5e551", 20);
    expect(apns.sessions - sessions).toBeLessThanOrEqual(1);
    expect(apns.providerTokens.size).toBe(1);
  });

  rule(
    "[PUSH-7] a provider that hangs holds up neither the other one nor the next message",
    async () => {
      apns.fail("4a46", ["hang"]);
      const slow = await pair("hang", "ios", "4a46");
      const quick = await pair("quick", "android", "quick-1");
      await slow.sender.send(slow.space);
      const atMs = Date.now();
      await quick.sender.send(quick.space);
      await untilArrived("quick-1");
      expect(Date.now() - atMs).toBeLessThan(2_000);
      await untilArrived("4a46", 1, 20_000); // after the deadline, over a new connection
      await slow.sender.send(slow.space, { chat: "the next one" });
      await untilArrived("4a46", 2);
      expect(new Set(apns.of("4a46").map(({ headers }) => headers["apns-collapse-id"])).size).toBe(2);
    },
    LONG_MS,
  );
});
