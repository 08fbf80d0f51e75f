/** Push nodes of a test's own: how they are set up, their quotas, what a kill or a provider that fails in mass leaves. */
import { afterAll, beforeAll, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { DeliveryReply, DevicesReply, PUSH_PATHS } from "../../../src/protocol/push-node.ts";
import { makeTestCa } from "../../support/network/test-ca.ts";
import { fcmError } from "../../support/push/fake-fcm.ts";
import { startNode } from "../../support/push/node.ts";
import { accountAt, type Providers, pairAt, startProviders } from "../../support/push/providers.ts";
import { devicesOf, type PushAccount, spaceKeyOf } from "../../support/push/push-account.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";

const LONG_MS = 60_000;

let providers: Providers;
beforeAll(async () => {
  providers = await startProviders();
});
afterAll(() => providers[Symbol.asyncDispose]());

const fault = (code: string) => expect.objectContaining({ code });

rule(
  "[PUSH-6] TLS is given by files; a configuration that is wrong refuses the start and names the place",
  async () => {
    const { certificate, privateKey, ca } = makeTestCa();
    using files = scratchDir("push-tls");
    writeFileSync(join(files.path, "cert.pem"), certificate);
    writeFileSync(join(files.path, "key.pem"), privateKey);
    const tls = `  tls: { certFile: ${files.path}/cert.pem, keyFile: ${files.path}/key.pem }`;
    await using secure = await startNode({ listen: tls });
    const url = secure.url.replace("http:", "https:") + PUSH_PATHS.health;
    expect(await (await fetch(url, { tls: { ca } })).json()).toEqual({ status: "ok" });
    expect(await fetch(secure.url + PUSH_PATHS.health).catch(() => "no plain HTTP")).toBe("no plain HTTP");
    for (const [more, place] of [
      ["limits: { topicsPerAccount: 0 }", "limits.topicsPerAccount"],
      ["surprise: 1", "surprise"],
      ["fcm: { serviceAccountFile: absent.json }", "fcm.serviceAccountFile"],
      ["upstream: { url: nowhere }", "upstream.url"],
    ] as const)
      await expect(startNode({ more })).rejects.toThrow(place);
  },
);

rule("[PUSH-6] without a token there is nothing to watch; a million topics end at the quota", async () => {
  await using small = await startNode({
    ...providers.options,
    more: "limits:\n  topicsPerAccount: 2500\n  requestBurst: 2000\n  addressRequestBurst: 2000",
  });
  const greedy = accountAt(small, "greedy");
  const space = spaceKeyOf("greedy");
  const topics = (from: number) =>
    Array.from({ length: 1000 }, (_, index) => `chats/${(from + index).toString(16).padStart(64, "0")}`);
  await expect(greedy.watch(space, ["chats"])).rejects.toEqual(fault("push.no_token"));
  await greedy.register("android", "greedy-token");
  await greedy.watch(space, topics(0));
  await greedy.watch(space, topics(1000));
  await expect(greedy.watch(space, topics(2000))).rejects.toEqual(fault("push.quota"));
  await greedy.unwatch(space, topics(0));
  await greedy.watch(space, topics(2000));
});

rule("[PUSH-6] an account that asks too often is told when to come again, and others are served", async () => {
  await using strict = await startNode({
    ...providers.options,
    more: "limits:\n  requestsPerSecond: 1\n  requestBurst: 5",
  });
  const busy = accountAt(strict, "busy");
  const calls = Array.from({ length: 12 }, () => busy.calls.post(PUSH_PATHS.devices, DevicesReply, {}));
  const results = await Promise.allSettled(calls);
  const refused = results
    .filter(({ status }) => status === "rejected")
    .map((one) => (one as PromiseRejectedResult).reason);
  expect(refused.length).toBeGreaterThanOrEqual(6);
  for (const error of refused)
    expect(error).toMatchObject({ code: "push.too_often", retryAfterMs: expect.any(Number) });
  await accountAt(strict, "calm").calls.post(PUSH_PATHS.devices, DevicesReply, {});
});

rule("[PUSH-6] an address brings only so many new accounts an hour; those that are there go on", async () => {
  await using strict = await startNode({ ...providers.options, more: "limits:\n  newAccountsPerHour: 3" });
  for (let index = 0; index < 3; index++) await accountAt(strict, `new ${index}`).register("android", `new-${index}`);
  await expect(accountAt(strict, "one too many").register("android", "new-3")).rejects.toEqual(fault("push.too_often"));
  await accountAt(strict, "new 0").register("android", "new-0-again");
});

rule(
  "[PUSH-7] refusals in mass drop no tokens",
  async () => {
    await using guarded = await startNode(providers.options);
    const watchers: PushAccount[] = [];
    const space = spaceKeyOf("mass");
    for (let index = 0; index < 40; index++) {
      const watcher = accountAt(guarded, `mass ${index}`);
      providers.fcm.fail(`mass-${index}`, [fcmError(404, "UNREGISTERED")], true);
      await watcher.register("android", `mass-${index}`);
      await watcher.watch(space, ["chats"]);
      watchers.push(watcher);
    }
    await accountAt(guarded, "mass sender").send(space);
    await until(() => guarded.stderr().includes("refused in mass"), "the guard to speak", 10_000);
    await guarded.untilDelivered();
    const left = await Promise.all(watchers.map(devicesOf));
    expect(left.filter((count) => count === 1).length).toBeGreaterThanOrEqual(20);
  },
  LONG_MS,
);

rule("[PUSH-7] a provider that swallows everything leaves the other its places, however much waits", async () => {
  const hole = createServer(() => {});
  await new Promise<void>((resolve) => hole.listen(0, "127.0.0.1", resolve));
  const { port } = hole.address() as AddressInfo;
  await using holed = await startNode({ fcm: providers.fcm, apns: { url: `http://127.0.0.1:${port}` } });
  const space = spaceKeyOf("swallowed");
  for (let index = 0; index < 5; index++) {
    const watcher = accountAt(holed, `swallowed ${index}`);
    for (let device = 0; device < 10; device++) await watcher.register("ios", `b1ac${index}${device}`, `d${device}`);
    await watcher.watch(space, ["chats"]);
  }
  expect(await accountAt(holed, "swallowed sender").send(space)).toEqual({ devices: 50 });
  const { space: other, sender } = await pairAt(holed, "beside the hole", "android", "beside-the-hole");
  const atMs = Date.now();
  await sender.send(other);
  await providers.untilArrived("beside-the-hole");
  expect(Date.now() - atMs).toBeLessThan(3_000);
  hole.close();
});

rule(
  "[PUSH-7] a node that was killed delivers what it had taken; the same message again is taken once",
  async () => {
    await using mortal = await startNode(providers.options);
    providers.fcm.fail("killed-1", [{ status: 503, retryAfter: "2", body: {} }]);
    const { space, sender } = await pairAt(mortal, "killed", "android", "killed-1");
    const id = "0123456789abcdef0123456789abcdef";
    await sender.send(space, { id });
    await mortal.kill();
    expect(providers.arrivals("killed-1")).toBe(0);
    await mortal.start();
    expect(await sender.send(space, { id })).toEqual({ devices: 1 }); // its answer had been lost
    await providers.untilArrived("killed-1");
    await mortal.untilDelivered();
    expect(providers.arrivals("killed-1")).toBe(1);
  },
  LONG_MS,
);

rule(
  "[PUSH-7] a node without credentials has another one deliver, which knows no account and no topic",
  async () => {
    const front = await startNode({});
    const id = /id=(A\w+)/.exec(front.stderr())?.[1];
    expect(id).toBeDefined();
    await front.kill();
    await using upstream = await startNode({ ...providers.options, more: `downstreams: [${id}]` });
    await using own = await startNode({ directory: front.directory, more: `upstream:\n  url: ${upstream.url}` });
    const { space, sender, watcher } = await pairAt(own, "upstream", "android", "upstream-1");
    await sender.send(space, { sealed: Buffer.from("what is sealed").toString("base64") });
    await providers.untilArrived("upstream-1");
    expect(upstream.stderr()).not.toContain(watcher.id);
    providers.fcm.fail("upstream-1", [fcmError(404, "UNREGISTERED")]);
    await sender.send(space);
    await until(async () => (await devicesOf(watcher)) === 0, "the dead token to be dropped downstream", 5_000);
    // Nobody else may use its credentials.
    const stranger = accountAt(upstream, "no downstream");
    const body = { id: "0".repeat(32), kind: "message", platform: "android", token: "t", registeredMs: 0 };
    const sealed = { chat: "0".repeat(64), spaceKey: space.spaceKey, keyId: "0".repeat(64), sealed: "AAAA" };
    await expect(
      stranger.calls.post(PUSH_PATHS.deliveries, DeliveryReply, { ...body, ...sealed }),
    ).rejects.toMatchObject({
      code: "push.not_downstream",
    });
  },
  LONG_MS,
);
