import { afterAll, afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../test/support/server/client.ts";
import { initAccount } from "./engine/account/account-init.ts";
import type { BootEngine } from "./engine/boot/boot-engine.ts";
import type { Engine } from "./engine/boot/engine.ts";
import { StartRefusal } from "./engine/start-refusal.ts";
import { type CreateServerOptions, createServer, type RunningServer } from "./serve.ts";

const base = mkdtempSync(join(tmpdir(), "svc-serve-"));
const servers: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));
let roots = 0;
const freshRoot = () => join(base, `root${++roots}`);

const closed: string[] = [];
const fakeBoot: BootEngine = async ({ wallet, accountDir }) =>
  ({
    accountId: wallet.accountId,
    peerId: wallet.peerId,
    bootstrapping: () => true,
    deviceCopied: () => undefined,
    unfinishedSpaces: () => [],
    close: async () => {
      closed.push(accountDir);
    },
  }) as unknown as Engine;

async function start(options: Partial<CreateServerOptions> & { root?: string } = {}) {
  const root = options.root ?? freshRoot();
  const server = await createServer({
    embedded: true,
    env: { SVC_LOG_LEVEL: "error", ...options.env },
    homeDir: base,
    bootEngine: fakeBoot,
    checkResponses: true,
    ...options,
    flags: { "data-dir": root, addr: "127.0.0.1:0", ...options.flags },
  });
  servers.push(server);
  const url = `http://${server.address}`;
  const call = async (path: string, init?: RequestInit) => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
  };
  return { server, root, url, call };
}

const refusal = async (options: Partial<CreateServerOptions> & { root?: string }): Promise<string> => {
  const thrown = await start(options).then(
    () => "started",
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(StartRefusal);
  return (thrown as Error).message;
};

test("[ACC-3] [SRV-3] [SRV-2] unauthorized start, POST /v1/auth boots in place, stop closes the engine and the lock", async () => {
  const { server, root, call } = await start();
  expect(statSync(root).mode & 0o777).toBe(0o700);
  expect((await call("/v1/health")).json()).toMatchObject({ account: "", bootstrapping: false });
  expect((await call("/v1/account")).status).toBe(401);
  const made = (await call("/v1/auth", { method: "POST" })).json();
  expect(made.mnemonic.split(" ")).toHaveLength(12);
  expect((await call("/v1/health")).json()).toMatchObject({ account: made.accountId, bootstrapping: true });
  expect((await call("/v1/auth")).json()).toEqual({
    authorized: true,
    accountId: made.accountId,
    accounts: [{ id: made.accountId }],
  });
  const pidFile = join(root, made.accountId, "server.pid");
  expect(existsSync(pidFile)).toBe(true);
  await server.stop();
  expect(closed).toContain(join(root, made.accountId));
  expect(existsSync(pidFile)).toBe(false);
});

test("[SRV-15] an account that resolves is booted before the listener binds; a failing boot refuses the start", async () => {
  const root = freshRoot();
  await initAccount({ dataDir: root, env: { HOME: base } });
  const { server, call } = await start({ root });
  expect((await call("/v1/health")).json().account).toStartWith("A");
  expect(await refusal({ root })).toContain("auth.account_in_use");
  await server.stop();
  const broken: BootEngine = async () => {
    throw new StartRefusal("the engine is broken");
  };
  expect(await refusal({ root, bootEngine: broken })).toBe("the engine is broken");
});

test("[SRV-15] a port that is taken refuses the start and names it", async () => {
  const { server } = await start();
  expect(await refusal({ flags: { addr: server.address } })).toContain(`Cannot listen on ${server.address}`);
});

test("[SRV-4] POST /v1/shutdown answers, then the server is gone", async () => {
  const { server, call, url } = await start();
  expect((await call("/v1/shutdown", { method: "POST" })).status).toBe(204);
  await server.finished;
  expect(
    await fetch(url).then(
      () => "answered",
      () => "refused",
    ),
  ).toBe("refused");
});

test("[SRV-4] a request that is still arriving is answered before the end", async () => {
  const { server } = await start();
  const [host, port] = server.address.split(":");
  const socket = connect(Number(port), host);
  const chunks: string[] = [];
  socket.setEncoding("utf8").on("data", (chunk: string) => chunks.push(chunk));
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(
    `POST /v1/auth HTTP/1.1\r\nHost: ${server.address}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n`,
  );
  await until(() => chunks.join("").includes("100 Continue"), "the head to arrive");
  const stopping = server.stop();
  socket.write('{"index": 1}');
  await ended;
  await stopping;
  expect(chunks.join("")).toContain("\r\n\r\nHTTP/1.1 400 ");
});

test("[SRV-13] /ui is served with a policy; off when disabled or embedded", async () => {
  const { call } = await start({ embedded: false });
  for (const path of ["/ui", "/ui/"]) {
    const page = await call(path);
    expect([path, page.status]).toEqual([path, 200]);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
    const parts = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
    expect(parts.length).toBeGreaterThan(0);
    for (const part of parts) {
      expect(part).toStartWith("/ui/");
      expect((await call(part)).status).toBe(200);
    }
  }
  const etag = (await call("/ui")).headers.get("etag") as string;
  expect((await call("/ui", { headers: { "if-none-match": etag } })).status).toBe(304);
  expect((await call("/ui/nothing.js")).status).toBe(404);
  expect((await call("/ui", { method: "POST" })).status).toBe(405);
  for (const options of [{}, { embedded: false, env: { SVC_WEB_UI_ENABLED: "false" } }]) {
    const other = await start(options);
    for (const path of ["/ui", "/ui/"]) expect((await other.call(path)).json().error.code).toBe("request.not_found");
  }
});

test("[API-12] the documentation page comes whole from the server; gone on the mobile build", async () => {
  const { call } = await start();
  const page = await call("/swagger");
  expect(page.status).toBe(200);
  expect(page.text).not.toMatch(/https?:|\/\/[a-z]/);
  for (const [, part] of page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g))
    expect((await call(part as string)).status).toBe(200);
  expect((await call("/v1/openapi.json")).json().openapi).toBe("3.1.0");
  const mobile = await start({ mobile: true });
  for (const path of ["/v1/openapi.json", "/swagger", "/ui"]) {
    expect((await mobile.call(path)).json().error.code).toBe("request.not_found");
  }
});

test("[API-3] bodies over 1 MiB are refused, declared or not", async () => {
  const { call } = await start();
  const headers = { "content-type": "application/json" };
  const big = `{"mnemonic":"${"x".repeat(1 << 20)}"}`;
  expect((await call("/v1/auth", { method: "POST", headers, body: big })).json().error).toMatchObject({
    code: "request.too_large",
    details: { limitBytes: 1 << 20 },
  });
  const chunked = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 40; i++) controller.enqueue(new TextEncoder().encode("x".repeat(64 << 10)));
      controller.close();
    },
  });
  expect((await call("/v1/auth", { method: "POST", headers, body: chunked })).status).toBe(413);
  const fitting = `{"mnemonic":"${"x".repeat((1 << 20) - 15)}"}`;
  expect(fitting.length).toBe(1 << 20);
  expect((await call("/v1/auth", { method: "POST", headers, body: fitting })).json().error.code).toBe(
    "auth.bad_mnemonic",
  );
});

test("[SRV-15] [STORE-7] the data root must be usable", async () => {
  const file = join(base, "a-file");
  await Bun.write(file, "x");
  expect(await refusal({ root: join(file, "below") })).toContain("--data-dir");
  const open = freshRoot();
  mkdirSync(open, { mode: 0o755 });
  await start({ root: open });
  expect(statSync(open).mode & 0o777).toBe(0o700);
});
