/** Which account a server boots. */
import { describe, expect } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { moveAccount, rootWith } from "../support/server/accounts.ts";
import type { Client, JsonObject } from "../support/server/client.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

const servedAccount = async (client: Client): Promise<string> =>
  (await client.get<{ account: string }>("/v1/health")).account;

describe("(a) wallet path", () => {
  for (const [source, options] of [
    ["--wallet", (path: string) => ({ args: ["--wallet", path] })],
    ["auth.walletPath", (path: string) => ({ config: `auth:\n  walletPath: ${path}\n` })],
    ["SVC_AUTH_WALLET_PATH", (path: string) => ({ env: { SVC_AUTH_WALLET_PATH: path } })],
  ] as const) {
    rule(`[SRV-1] ${source} means that wallet, with its data flat at the root`, async () => {
      using made = await rootWith("flat");
      using elsewhere = scratchDir();
      using root = scratchDir();
      const wallet = join(elsewhere.path, "my-wallet.key");
      cpSync(join(made.path, "wallet.key"), wallet);
      await using server = await startServer({ dataDir: root.path, account: false, ...options(wallet) });
      expect(await servedAccount(server.client)).toBe(made.account.id);
      expect(await Bun.file(join(root.path, "server.pid")).exists()).toBe(true);
    });
  }

  rule("[SRV-1] a wallet path wins over a wallet at the root", async () => {
    using atRoot = await rootWith("flat");
    using other = await rootWith("flat");
    using fresh = scratchDir();
    cpSync(join(atRoot.path, "wallet.key"), join(fresh.path, "wallet.key"));
    await using server = await startServer({
      dataDir: fresh.path,
      account: false,
      args: ["--wallet", join(other.path, "wallet.key")],
    });
    expect(await servedAccount(server.client)).toBe(other.account.id);
  });

  rule("[SRV-1] a wallet path that names no file fails the start; no wallet is created", async () => {
    using root = scratchDir();
    const missing = join(root.path, "nothing.key");
    const refused = await refusedStart({ dataDir: root.path, args: ["--wallet", missing] });
    expect(refused.code).not.toBe(0);
    expect(await Bun.file(missing).exists()).toBe(false);
  });
});

describe("(b) account selector", () => {
  for (const [source, options] of [
    ["--account", (id: string) => ({ args: ["--account", id] })],
    ["SVC_ACCOUNT", (id: string) => ({ env: { SVC_ACCOUNT: id } })],
    ["account:", (id: string) => ({ config: `account: ${id}\n` })],
  ] as const) {
    rule(`[SRV-1] ${source} picks <root>/<id>/ among several`, async () => {
      using one = await rootWith("nested");
      using two = await rootWith("nested");
      moveAccount(two.account.dir, join(one.path, two.account.id));
      for (const id of [one.account.id, two.account.id]) {
        await using server = await startServer({ dataDir: one.path, account: false, ...options(id) });
        expect(await servedAccount(server.client)).toBe(id);
      }
    });
  }

  rule("[SRV-1] a selector is served by the root wallet when its derived id matches", async () => {
    using root = await rootWith("flat");
    await using server = await startServer({
      dataDir: root.path,
      account: false,
      args: ["--account", root.account.id],
    });
    expect(await servedAccount(server.client)).toBe(root.account.id);
  });

  rule("[SRV-1] a selector that the root wallet does not match fails the start", async () => {
    using root = await rootWith("flat");
    using other = await rootWith("flat");
    const refused = await refusedStart({ dataDir: root.path, args: ["--account", other.account.id] });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(other.account.id);
  });

  rule("[SRV-1] the selector prefers <root>/<id>/ to a root wallet", async () => {
    using flat = await rootWith("flat");
    using nested = await rootWith("nested");
    moveAccount(nested.account.dir, join(flat.path, nested.account.id));
    await using server = await startServer({
      dataDir: flat.path,
      account: false,
      args: ["--account", nested.account.id],
    });
    expect(await servedAccount(server.client)).toBe(nested.account.id);
  });
});

describe("(c) no selector", () => {
  rule("[SRV-1] the root wallet is served if it exists", async () => {
    using flat = await rootWith("flat");
    using nested = await rootWith("nested");
    moveAccount(nested.account.dir, join(flat.path, nested.account.id));
    await using server = await startServer({ dataDir: flat.path, account: false });
    expect(await servedAccount(server.client)).toBe(flat.account.id);
  });

  rule("[SRV-1] else a sole <root>/<id>/ directory is served", async () => {
    using root = await rootWith("nested");
    await using server = await startServer({ dataDir: root.path, account: false });
    expect(await servedAccount(server.client)).toBe(root.account.id);
  });

  rule("[SRV-1] [ACC-7] several directories and no root wallet mean no account; GET /v1/auth lists them", async () => {
    using one = await rootWith("nested");
    using two = await rootWith("nested");
    moveAccount(two.account.dir, join(one.path, two.account.id));
    await using server = await startServer({ dataDir: one.path, account: false });
    const state = await server.client.get<{ authorized: boolean; accounts: JsonObject[] }>("/v1/auth");
    expect(state.authorized).toBe(false);
    expect(state.accounts.map((entry) => entry["id"]).sort()).toEqual([one.account.id, two.account.id].sort());
    for (const entry of state.accounts) expect(entry).not.toHaveProperty("default", true);
  });

  rule("[ACC-7] default:true stands on the root wallet alone", async () => {
    using flat = await rootWith("flat");
    using nested = await rootWith("nested");
    moveAccount(nested.account.dir, join(flat.path, nested.account.id));
    await using server = await startServer({ dataDir: flat.path, account: false });
    const state = await server.client.get<{ authorized: boolean; accountId: string; accounts: JsonObject[] }>(
      "/v1/auth",
    );
    expect(state).toMatchObject({ authorized: true, accountId: flat.account.id });
    const flags = Object.fromEntries(state.accounts.map((entry) => [entry["id"], entry["default"] ?? false]));
    expect(flags).toEqual({ [flat.account.id]: true, [nested.account.id]: false });
  });
});

rule("[ACC-3] a running server cannot switch accounts", async () => {
  using flat = await rootWith("flat");
  using nested = await rootWith("nested");
  moveAccount(nested.account.dir, join(flat.path, nested.account.id));
  await using server = await startServer({ dataDir: flat.path, account: false });
  await server.client.fails("POST", "/v1/auth", { accountId: nested.account.id }, 409, "auth.already_authorized");
  await server.client.fails("POST", "/v1/auth", {}, 409, "auth.already_authorized");
  expect(await servedAccount(server.client)).toBe(flat.account.id);
});
