/** Push on one device: the token, and the topics that follow spaces, chats and modes (PUSH-1). */
import { describe, expect } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ed25519 } from "@noble/curves/ed25519.js";
import { bytesToBase58 } from "../../src/base/base58.ts";
import { CHROMIUM, useBrowser } from "../support/page/browser.ts";
import { rule, useServer } from "../support/rule.ts";
import type { SpaceInfo } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";
import { skipUnless } from "../support/skip.ts";

const browser = useBrowser();
const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");

/** Nobody listens there: what is said of a node must not depend on reaching it. */
const NOWHERE = "http://127.0.0.1:9";
const TOKEN = "/v1/push/token";
const SUBSCRIPTIONS = "/v1/push/subscriptions";
const APPLE = { platform: "ios", token: "00ff00ff" };

const REFUSED: readonly (Omit<Scenario, "title"> & { what: string })[] = [
  {
    what: "a missing token",
    method: "POST",
    path: TOKEN,
    body: { platform: "ios" },
    status: 400,
    code: "request.missing_field",
  },
  {
    what: "a missing platform",
    method: "POST",
    path: TOKEN,
    body: { token: "t" },
    status: 400,
    code: "request.missing_field",
  },
  {
    what: "another platform",
    method: "POST",
    path: TOKEN,
    body: { platform: "web", token: "t" },
    status: 400,
    code: "request.invalid_field",
  },
  {
    what: "a token of another type",
    method: "POST",
    path: TOKEN,
    body: { platform: "ios", token: 5 },
    status: 400,
    code: "request.schema",
  },
  {
    what: "an unknown field",
    method: "POST",
    path: TOKEN,
    body: { ...APPLE, more: 1 },
    status: 400,
    code: "request.unknown_field",
  },
  {
    what: "an empty token",
    method: "POST",
    path: TOKEN,
    body: { platform: "ios", token: "" },
    status: 400,
    code: "request.invalid_field",
  },
  {
    what: "a token with spaces",
    method: "POST",
    path: TOKEN,
    body: { platform: "ios", token: "a b" },
    status: 400,
    code: "request.invalid_field",
  },
  {
    what: "a token that is too long",
    method: "POST",
    path: TOKEN,
    body: { platform: "android", token: "x".repeat(4097) },
    status: 400,
    code: "request.invalid_field",
  },
];

describe("without a push node", () => {
  const shared = useServer();
  const context = () => ({ client: shared.client, vars: {} });

  runScenarios(context, [
    ...REFUSED.map(({ what, ...rest }) => ({ title: `[PUSH-2] the body is checked first: ${what}`, ...rest })),
    {
      title: "[PUSH-2] a token is refused",
      method: "POST",
      path: TOKEN,
      body: APPLE,
      status: 409,
      code: "push.disabled",
    },
    { title: "[PUSH-2] there is no status", method: "GET", path: TOKEN, status: 409, code: "push.disabled" },
    { title: "[PUSH-2] there is nothing to revoke", method: "DELETE", path: TOKEN, status: 409, code: "push.disabled" },
    { title: "[PUSH-2] nothing is watched", method: "GET", path: SUBSCRIPTIONS, status: 409, code: "push.disabled" },
  ]);

  rule("[PUSH-2] health says nothing of push", async () => {
    expect(await shared.client.get<object>("/v1/health")).not.toHaveProperty("push");
  });
});

describe("with a push node that cannot be reached", () => {
  let account = "";
  const shared = useServer({ env: { SVC_PUSH_URL: NOWHERE } }, async ({ client }) => {
    account = (await client.get<{ id: string }>("/v1/account")).id;
  });
  const file = () => join(shared.server.dataDir, account, "push-token.json");
  const tagOf = (chatId: string) => createHash("sha256").update(chatId).digest("hex");
  const topicsUnder = async (space: SpaceInfo): Promise<string[]> => {
    const { push } = await shared.client.get<SpaceInfo & { push: { spaceKey: string } }>(`/v1/spaces/${space.id}`);
    const key = publicKeyOf(push.spaceKey);
    const { subscriptions } = await shared.client.get<{ subscriptions: { spaceKey: string; topic: string }[] }>(
      SUBSCRIPTIONS,
    );
    return subscriptions.filter(({ spaceKey }) => spaceKey === key).map(({ topic }) => topic);
  };
  const createChat = async (spaceId: string) => (await createObject(shared.client, spaceId, { types: ["chat"] })).id;
  const setMode = (space: SpaceInfo, notifyMode: string) =>
    shared.client.patch(`/v1/spaces/${space.id}/settings`, { set: { notifyMode } });
  const setChatMode = (space: SpaceInfo, chat: string, notifyMode: string | null) =>
    shared.client.post(`/v1/spaces/${space.id}/properties/${chat}/set/chat`, { patch: { notifyMode } });

  runScenarios(
    () => ({ client: shared.client, vars: {} }),
    REFUSED.map(({ what, ...rest }) => ({ title: `[PUSH-2] a token is refused: ${what}`, ...rest })),
  );

  rule("[PUSH-2] health says that there is one", async () => {
    expect(await shared.client.get<object>("/v1/health")).toMatchObject({ push: true });
  });

  declare("[PAGE-4] the server's page shows whether this device has a token, and how much is watched", async () => {
    const { page, complaints } = await browser.open(shared.server.base);
    await shared.client.post(TOKEN, APPLE, 204);
    await page.goto(`${shared.server.base}/ui#/server`);
    await page.getByText("has a token (ios)").waitFor();
    await page.getByText(/^\d+ topics in \d+ spaces$/).waitFor();
    expect(complaints).toEqual([]);
    await page.close();
    await shared.client.del(TOKEN, 204);
  });

  rule("[PUSH-2] a token is kept for its owner alone, replaced and revoked", async () => {
    expect(await shared.client.get<object>(TOKEN)).toEqual({ registered: false });
    await shared.client.post(TOKEN, APPLE, 204);
    expect(await shared.client.get<object>(TOKEN)).toEqual({ registered: true, platform: "ios" });
    expect(JSON.parse(readFileSync(file(), "utf8"))).toMatchObject(APPLE);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    await shared.client.post(TOKEN, { platform: "android", token: "fcm:token_1" }, 204);
    expect(await shared.client.get<object>(TOKEN)).toEqual({ registered: true, platform: "android" });
    await shared.client.del(TOKEN, 204);
    expect(await shared.client.get<object>(TOKEN)).toEqual({ registered: false });
    await shared.client.del(TOKEN, 204);
    // The node has not heard of it yet: that is kept, and the token is not.
    expect(readFileSync(file(), "utf8")).not.toContain("fcm:token_1");
  });

  rule("[PUSH-1] a space watches all its chats and its own name; mentions the name alone; none nothing", async () => {
    const space = await createSpace(shared.client, "modes");
    expect(await topicsUnder(space)).toEqual(["chats", account]);
    await setMode(space, "mentions");
    expect(await topicsUnder(space)).toEqual([account]);
    await setMode(space, "none");
    expect(await topicsUnder(space)).toEqual([]);
    await setMode(space, "all");
    expect(await topicsUnder(space)).toEqual(["chats", account]);
  });

  rule("[PUSH-1] one chat with a mode of its own makes every chat of the space watched by itself", async () => {
    const space = await createSpace(shared.client, "overrides");
    const [loud, quiet, named] = [await createChat(space.id), await createChat(space.id), await createChat(space.id)];
    await setChatMode(space, quiet, "none");
    await setChatMode(space, named, "mentions");
    const of = (chat: string) => `chats/${tagOf(chat)}`;
    const expected = [of(loud), `${of(loud)}/${account}`, `${of(named)}/${account}`];
    expect((await topicsUnder(space)).sort()).toEqual(expected.sort());
    await setMode(space, "none");
    expect(await topicsUnder(space)).toEqual([`${of(named)}/${account}`]);
    await setMode(space, "all");
    const later = await createChat(space.id);
    expect(await topicsUnder(space)).toContain(of(later));
    await setChatMode(space, quiet, null);
    await setChatMode(space, named, null);
    expect(await topicsUnder(space)).toEqual(["chats", account]);
  });

  rule("[PUSH-1] a space that was deleted is watched no more, and its row keeps its keys", async () => {
    const space = await createSpace(shared.client, "short");
    const before = await shared.client.get<{ push?: object }>(`/v1/spaces/${space.id}`);
    expect(await topicsUnder(space)).not.toEqual([]);
    await shared.client.del(`/v1/spaces/${space.id}`, 204);
    expect(await topicsUnder(space)).toEqual([]);
    expect(await shared.client.get<object>(`/v1/spaces/${space.id}`)).toMatchObject({ push: before.push! });
  });
});

/** The base58 of the public half of a base64 Ed25519 seed, by another implementation than the server's. */
const publicKeyOf = (seedBase64: string): string =>
  bytesToBase58(ed25519.getPublicKey(new Uint8Array(Buffer.from(seedBase64, "base64"))));
