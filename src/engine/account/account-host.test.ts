import { afterAll, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf, errorOf } from "../../../test/support/errors-of.ts";
import type { AccountId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { machineId } from "../../crypto/machine-id.ts";
import { createWallet } from "../../crypto/wallet.ts";
import { encodeWallet } from "../../crypto/wallet-envelope.ts";
import type { BootEngine } from "../boot/boot-engine.ts";
import type { Engine } from "../boot/engine.ts";
import { type ConfigFlags, loadConfig } from "../config/config.ts";
import { StartRefusal } from "../start-refusal.ts";
import { createAccountHost } from "./account-host.ts";
import { initAccount } from "./account-init.ts";

const ZERO = `${"abandon ".repeat(11)}about`;
const base = mkdtempSync(join(tmpdir(), "svc-accounts-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let roots = 0;
const freshRoot = () => join(base, `root${++roots}`);

const fakeBoot: BootEngine = async ({ accountDir, wallet }) => {
  mkdirSync(join(accountDir, "sdk"), { recursive: true });
  return {
    accountId: wallet.accountId,
    peerId: wallet.peerId,
    bootstrapping: () => false,
    close: async () => {},
  } as unknown as Engine;
};

async function hostOf(root: string, options: { flags?: ConfigFlags; passkey?: string; bootEngine?: BootEngine } = {}) {
  mkdirSync(root, { recursive: true });
  const config = await loadConfig({
    env: {},
    homeDir: base,
    flags: { "data-dir": root, ...options.flags },
    passkey: options.passkey,
  });
  return createAccountHost({
    config,
    log: silentLog,
    clock: { nowMs: () => 0 },
    bootEngine: options.bootEngine ?? fakeBoot,
  });
}

/** A root with wallets: "flat" at the root, "nested" in its own directory. */
async function rootWith(...layouts: ("flat" | "nested")[]): Promise<{ root: string; ids: AccountId[] }> {
  const root = freshRoot();
  const ids: AccountId[] = [];
  for (const layout of layouts) {
    const wallet = await createWallet({ machineId: await machineId() });
    const dir = layout === "flat" ? root : join(root, wallet.accountId);
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "wallet.key"), await encodeWallet(wallet));
    ids.push(wallet.accountId);
  }
  return { root, ids };
}

test("[ACC-3] generate: a wallet in <root>/<id>/, the phrase once, then already_authorized", async () => {
  const root = freshRoot();
  const host = await hostOf(root);
  const made = await host.authorize({});
  expect(made.created).toBe(true);
  expect(made.mnemonic?.split(" ")).toHaveLength(12);
  expect(statSync(join(root, made.accountId, "wallet.key")).mode & 0o777).toBe(0o600);
  expect(statSync(join(root, made.accountId)).mode & 0o777).toBe(0o700);
  expect(readFileSync(join(root, made.accountId, "server.pid"), "utf8")).toStartWith(`${process.pid}\n`);
  expect(await codeOf(host.authorize({ mnemonic: ZERO }))).toBe("auth.already_authorized");
  await host.close();
  expect(existsSync(join(root, made.accountId, "server.pid"))).toBe(false);
  expect(await codeOf(host.authorize({}))).toBe("server.unavailable");
});

test("[ACC-1] restore: the same account id, an index of its own, a fresh device key; what is there is opened", async () => {
  const one = await hostOf(freshRoot());
  const { accountId } = await one.authorize({ mnemonic: ZERO });
  const root = freshRoot();
  const two = await hostOf(root);
  expect(await two.authorize({ mnemonic: `  ${ZERO.toUpperCase()}\n`, index: 1 })).toEqual({
    accountId,
    created: true,
  });
  expect(two.engine?.peerId).not.toBe(one.engine?.peerId);
  const peerId = two.engine?.peerId;
  await two.close();
  const again = await hostOf(root);
  expect(await again.authorize({ mnemonic: ZERO })).toEqual({ accountId, created: false });
  expect(again.engine?.peerId).toBe(peerId);
  await again.close();
  expect((await (await hostOf(freshRoot())).authorize({ mnemonic: ZERO, index: 0 })).accountId).not.toBe(accountId);
  await one.close();
});

test("[ACC-3] faults of each mode", async () => {
  const { root, ids } = await rootWith("nested", "nested");
  const host = await hostOf(root);
  const cases: [body: object, code: string][] = [
    [{ mnemonic: ZERO, accountId: ids[0] }, "request.invalid_field"],
    [{ index: 0 }, "request.invalid_field"],
    [{ accountId: ids[0], index: 1 }, "request.invalid_field"],
    [{ mnemonic: "abandon ".repeat(12) }, "auth.bad_mnemonic"],
    [{ mnemonic: "" }, "auth.bad_mnemonic"],
    [{ accountId: "../../etc" }, "auth.account_not_found"],
    [{ accountId: (await createWallet({ machineId: "m" })).accountId }, "auth.account_not_found"],
    [{ passkey: "" }, "request.invalid_field"],
  ];
  for (const [body, code] of cases) expect([body, await codeOf(host.authorize(body))]).toEqual([body, code]);
  expect(readdirSync(root).sort()).toEqual([...ids].sort());
  expect(await host.listAccounts()).toEqual([...ids].sort().map((id) => ({ id })));
});

test("[ACC-3] a wallet on disk that is another's is left alone", async () => {
  const { root, ids } = await rootWith("flat");
  const wanted = (await createWallet({ mnemonic: ZERO, machineId: "m" })).accountId;
  mkdirSync(join(root, wanted));
  cpSync(join(root, "wallet.key"), join(root, wanted, "wallet.key"));
  const host = await hostOf(root);
  expect(await codeOf(host.authorize({ mnemonic: ZERO }))).toBe("auth.mnemonic_mismatch");
  expect(await codeOf(host.authorize({ accountId: wanted }))).toBe("auth.account_not_found");
  writeFileSync(join(root, wanted, "wallet.key"), "torn");
  expect(await codeOf(host.authorize({ mnemonic: ZERO }))).toBe("auth.mnemonic_mismatch");
  expect(await host.listAccounts()).toEqual([{ id: ids[0] as AccountId, default: true }]);
});

test("[SRV-9] a boot that fails after a fresh wallet removes the new account's directory", async () => {
  const noEngine = new Error("no engine");
  const failing: BootEngine = () => Promise.reject(noEngine);
  const root = freshRoot();
  const host = await hostOf(root, { bootEngine: failing });
  expect(await errorOf(host.authorize({}))).toBe(noEngine);
  expect(readdirSync(root)).toEqual([]);
  // An existing account's files stay.
  const { root: other, ids } = await rootWith("nested");
  const failingToo = await hostOf(other, { bootEngine: failing });
  expect(await errorOf(failingToo.authorize({ accountId: ids[0] as string }))).toBe(noEngine);
  expect(existsSync(join(other, ids[0] as string, "wallet.key"))).toBe(true);
  expect(existsSync(join(other, ids[0] as string, "server.pid"))).toBe(false);
});

test("[SRV-2] an account is open once; two of one root may be open together", async () => {
  const { root, ids } = await rootWith("nested", "nested");
  const [one, two] = ids as [AccountId, AccountId];
  const first = await hostOf(root);
  const second = await hostOf(root);
  await first.authorize({ accountId: one });
  expect(await codeOf(second.authorize({ accountId: one }))).toBe("auth.account_in_use");
  expect((await second.authorize({ accountId: two })).accountId).toBe(two);
  await first.close();
  const third = await hostOf(root);
  expect((await third.authorize({ accountId: one })).created).toBe(false);
  await Promise.all([second.close(), third.close()]);
});

test("[ACC-3] of concurrent calls one boots", async () => {
  const host = await hostOf(freshRoot());
  const codes = await Promise.all([1, 2, 3].map(() => codeOf(host.authorize({}))));
  expect(codes.sort()).toEqual(["auth.already_authorized", "auth.already_authorized", "none"]);
  await host.close();
});

test("[ACC-2] passkeys: required, wrong, right, from the configuration", async () => {
  const root = freshRoot();
  const made = await hostOf(root);
  const { accountId } = await made.authorize({ passkey: "open sesame" });
  await made.close();
  const host = await hostOf(root);
  expect(await codeOf(host.authorize({ accountId }))).toBe("auth.passkey_required");
  expect(await codeOf(host.authorize({ accountId, passkey: "nope" }))).toBe("auth.passkey_wrong");
  expect((await host.authorize({ accountId, passkey: "open sesame" })).created).toBe(false);
  await host.close();
  const configured = await hostOf(root, { passkey: "open sesame" });
  await configured.bootConfigured();
  expect(configured.engine?.accountId).toBe(accountId);
  await configured.close();
});

test("[SRV-1] resolution (a), (b), (c)", async () => {
  const { root, ids } = await rootWith("flat", "nested");
  const [flat, nested] = ids as [AccountId, AccountId];
  const elsewhere = freshRoot();
  const booted = async (dir: string, flags: ConfigFlags = {}) => {
    const host = await hostOf(dir, { flags });
    try {
      await host.bootConfigured();
      return host.engine?.accountId;
    } finally {
      await host.close();
    }
  };
  expect(await booted(root)).toBe(flat);
  expect(await booted(root, { account: nested })).toBe(nested);
  expect(await booted(root, { account: flat })).toBe(flat);
  expect(await booted(elsewhere, { wallet: join(root, "wallet.key") })).toBe(flat);
  expect(existsSync(join(elsewhere, "server.lock"))).toBe(true);
  expect(await booted((await rootWith("nested")).root)).toBeString();
  expect(await booted((await rootWith("nested", "nested")).root)).toBeUndefined();
  expect(await booted(freshRoot())).toBeUndefined();
  const refusals: [flags: ConfigFlags, part: string][] = [
    [{ account: "../x" }, "must be an account id"],
    [{ account: (await createWallet({ machineId: "m" })).accountId }, "was asked for"],
    [{ wallet: join(root, "none.key") }, "never creates a wallet"],
    [{ wallet: join(root, "wallet.key"), account: nested }, nested],
  ];
  for (const [flags, part] of refusals) {
    const refused = await booted(root, flags).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StartRefusal);
    expect((refused as Error).message).toContain(part);
  }
  writeFileSync(join(root, "wallet.key"), "torn");
  const damaged = await booted(root).catch((error: unknown) => error);
  expect((damaged as Error).message).toContain("wallet.key");
});

test("[SRV-10] a wallet from another machine gets a device key of its own, for good", async () => {
  const root = freshRoot();
  mkdirSync(root);
  const foreign = await createWallet({ machineId: "another machine" });
  writeFileSync(join(root, "wallet.key"), await encodeWallet(foreign));
  const peers: string[] = [];
  for (let i = 0; i < 2; i++) {
    const host = await hostOf(root);
    await host.bootConfigured();
    peers.push(host.engine?.peerId as string);
    await host.close();
  }
  expect(peers[0]).not.toBe(foreign.peerId);
  expect(peers[1]).toBe(peers[0] as string);
});

test("[ACC-4] makes, lists, forces and restores", async () => {
  const dataDir = freshRoot();
  const env = { HOME: base };
  const made = await initAccount({ dataDir, env });
  if (!("accountId" in made)) throw new Error("an account was expected");
  expect(made).toMatchObject({ created: true, dataDir, accountDir: join(dataDir, made.accountId) });
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  expect(await initAccount({ dataDir, env })).toEqual({ created: false, dataDir, accounts: [{ id: made.accountId }] });
  const forced = await initAccount({ dataDir, env, forceNew: true });
  expect("accountId" in forced && forced.accountId !== made.accountId && forced.created).toBe(true);
  const restored = await initAccount({ dataDir, env, mnemonic: made.mnemonic });
  expect(restored).toMatchObject({ created: false, accountId: made.accountId, peerId: made.peerId });
  expect(restored).not.toHaveProperty("mnemonic");
  expect(await codeOf(initAccount({ dataDir, env, index: 1 }))).toBe("request.invalid_field");
});
