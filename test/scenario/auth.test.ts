/** `GET` and `POST /v1/auth`: every mode, every error. */
import { describe, expect } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import {
  accountPublicKey,
  decodeAccountId,
  findWallets,
  moveAccount,
  rootWith,
  ZERO_MNEMONIC,
} from "../support/server/accounts.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

interface AuthReply {
  accountId: string;
  created: boolean;
  mnemonic?: string;
}
interface AccountReply {
  id: string;
  peerId: string;
}

const bareServer = () => startServer({ account: false });

describe("generate", () => {
  rule("[ACC-3] [ACC-7] an empty body generates an account and returns its mnemonic once", async () => {
    await using server = await bareServer();
    const made = await server.client.post<AuthReply>("/v1/auth", {});
    expect(made.created).toBe(true);
    expect(made.mnemonic!.split(" ")).toHaveLength(12);
    expect(await server.client.get("/v1/auth")).toMatchObject({
      authorized: true,
      accountId: made.accountId,
      accounts: [{ id: made.accountId }],
    });
    const account = await server.client.request("GET", "/v1/account");
    expect(account.json).toMatchObject({ id: made.accountId });
    expect(account.text).not.toContain(made.mnemonic!.split(" ").slice(0, 3).join(" "));
  });

  rule("[ACC-3] an absent body is an empty body", async () => {
    await using server = await bareServer();
    const made = await server.client.post<AuthReply>("/v1/auth");
    expect(made).toMatchObject({ created: true });
    expect(made.mnemonic).toBeString();
  });

  rule("[ACC-3] the engine boots in place: no restart is needed", async () => {
    await using server = await bareServer();
    await server.client.fails("GET", "/v1/spaces", undefined, 401, "auth.required");
    await server.client.post("/v1/auth", {});
    expect(await server.client.get<unknown[]>("/v1/spaces")).toEqual([]);
  });

  rule("[ACC-3] the mnemonic is written to no log and, in clear, to no file", async () => {
    await using server = await startServer({ account: false, args: ["--log-level", "debug"] });
    const made = await server.client.post<AuthReply>("/v1/auth", {});
    await server.client.untilBootstrapped();
    await server.stop();
    expect(server.stderr() + server.stdout()).not.toContain(made.mnemonic!);
    for (const name of readdirSync(server.dataDir, { recursive: true }).map(String)) {
      const path = join(server.dataDir, name);
      const file = Bun.file(path);
      if ((await file.stat()).isFile()) expect(readFileSync(path).includes(made.mnemonic!)).toBe(false);
    }
  });
});

describe("restore", () => {
  rule("[ACC-3] {mnemonic} restores: same account id, no mnemonic in the answer, created true", async () => {
    await using first = await bareServer();
    const made = await first.client.post<AuthReply>("/v1/auth", {});
    await using second = await bareServer();
    const restored = await second.client.post<AuthReply>("/v1/auth", { mnemonic: made.mnemonic });
    expect(restored).toEqual({ accountId: made.accountId, created: true });
  });

  rule("[ACC-1] the same mnemonic on a second machine has a new peer id", async () => {
    await using first = await bareServer();
    const made = await first.client.post<AuthReply>("/v1/auth", {});
    await using second = await bareServer();
    await second.client.post("/v1/auth", { mnemonic: made.mnemonic });
    const [one, two] = [
      await first.client.get<AccountReply>("/v1/account"),
      await second.client.get<AccountReply>("/v1/account"),
    ];
    expect(two.id).toBe(one.id);
    expect(two.peerId).not.toBe(one.peerId);
    for (const { peerId } of [one, two]) expect(peerId).toMatch(/^12D3KooW[1-9A-HJ-NP-Za-km-z]{44}$/);
  });

  for (const [index, body] of [
    [1, {}],
    [1, { index: 1 }],
    [0, { index: 0 }],
    [7, { index: 7 }],
  ] as const) {
    rule(`[ACC-1] ${JSON.stringify(body)}: the id holds the SLIP-10 key at m/44'/2046'/${index}'/0'`, async () => {
      await using server = await bareServer();
      const made = await server.client.post<AuthReply>("/v1/auth", { mnemonic: ZERO_MNEMONIC, ...body });
      const id = decodeAccountId(made.accountId);
      expect(made.accountId).toStartWith("A");
      expect(id.version).toBe(0x5b);
      expect(Buffer.from(id.publicKey).toString("hex")).toBe(
        Buffer.from(accountPublicKey(ZERO_MNEMONIC, index)).toString("hex"),
      );
      expect(id.checksum).toHaveLength(2);
    });
  }

  for (const [what, mnemonic] of [
    ["a wrong checksum", "abandon ".repeat(12).trim()],
    ["an unknown word", `${"abandon ".repeat(11)}svc`],
    ["eleven words", "abandon ".repeat(11).trim()],
    ["no words", ""],
    ["something else", "correct horse battery staple"],
  ]) {
    rule(`[ACC-3] ${what} is 400 auth.bad_mnemonic and creates nothing`, async () => {
      await using server = await bareServer();
      const error = await server.client.fails("POST", "/v1/auth", { mnemonic }, 400, "auth.bad_mnemonic");
      if (mnemonic) expect(JSON.stringify(error)).not.toContain(mnemonic!);
      expect(findWallets(server.dataDir)).toEqual([]);
      expect(await server.client.get("/v1/auth")).toMatchObject({ authorized: false });
    });
  }

  rule("[ACC-3] a wallet on disk that disagrees with the phrase is 409 and is left as it was", async () => {
    using other = await rootWith("flat");
    await using server = await bareServer();
    using wanted = await rootWith("flat", { mnemonic: ZERO_MNEMONIC });
    const dir = join(server.dataDir, wanted.account.id);
    mkdirSync(dir);
    moveAccount(other.path, dir);
    const before = readFileSync(join(dir, "wallet.key"));
    await server.client.fails("POST", "/v1/auth", { mnemonic: ZERO_MNEMONIC }, 409, "auth.mnemonic_mismatch");
    expect(readFileSync(join(dir, "wallet.key"))).toEqual(before);
  });

  rule("[ACC-3] restoring what is already on disk opens it: created false, same peer id", async () => {
    await using first = await bareServer();
    const made = await first.client.post<AuthReply>("/v1/auth", {});
    const { peerId } = await first.client.get<AccountReply>("/v1/account");
    using kept = scratchDir();
    await first.stop();
    await using second = await startServer({ dataDir: kept.path, account: false });
    moveAccount(join(findWallets(first.dataDir)[0]!, ".."), join(kept.path, made.accountId));
    const again = await second.client.post<AuthReply>("/v1/auth", { mnemonic: made.mnemonic });
    expect(again).toMatchObject({ accountId: made.accountId, created: false });
    expect((await second.client.get<AccountReply>("/v1/account")).peerId).toBe(peerId);
  });
});

describe("select", () => {
  rule("[ACC-3] {accountId} selects a local wallet: created false, no mnemonic", async () => {
    using one = await rootWith("nested");
    using two = await rootWith("nested");
    moveAccount(two.account.dir, join(one.path, two.account.id));
    await using server = await startServer({ dataDir: one.path, account: false });
    expect(await server.client.post<AuthReply>("/v1/auth", { accountId: two.account.id })).toEqual({
      accountId: two.account.id,
      created: false,
    });
  });

  rule("[ACC-3] an id without a local wallet is 404", async () => {
    using elsewhere = await rootWith("flat");
    await using server = await bareServer();
    await server.client.fails("POST", "/v1/auth", { accountId: elsewhere.account.id }, 404, "auth.account_not_found");
    await server.client.fails("POST", "/v1/auth", { accountId: "../etc" }, 404, "auth.account_not_found");
  });
});

describe("bodies", () => {
  for (const [what, body] of [
    ["mnemonic together with accountId", { mnemonic: ZERO_MNEMONIC, accountId: "A" }],
    ["index without mnemonic", { index: 1 }],
    ["index without mnemonic, even 0", { index: 0 }],
    ["a negative index", { mnemonic: ZERO_MNEMONIC, index: -1 }],
  ] as const) {
    rule(`[ACC-3] ${what} is 400`, async () => {
      await using server = await bareServer();
      await server.client.fails("POST", "/v1/auth", body, 400, "request.invalid_field");
      expect(findWallets(server.dataDir)).toEqual([]);
    });
  }

  rule("[API-1] wrong types are request.schema, unknown keys request.unknown_field", async () => {
    await using server = await bareServer();
    await server.client.fails("POST", "/v1/auth", { mnemonic: 5 }, 400, "request.schema");
    await server.client.fails("POST", "/v1/auth", { mnemonic: ZERO_MNEMONIC, index: "1" }, 400, "request.schema");
    await server.client.fails("POST", "/v1/auth", [], 400, "request.schema");
    const error = await server.client.fails("POST", "/v1/auth", { phrase: "x" }, 400, "request.unknown_field");
    expect(error.details).toMatchObject({ fields: ["phrase"] });
    expect(error.details!["accepted"]).toEqual(expect.arrayContaining(["mnemonic", "index", "accountId", "passkey"]));
  });

  rule("[ACC-3] any mode on an authorized server is 409", async () => {
    await using server = await startServer();
    await server.client.fails("POST", "/v1/auth", {}, 409, "auth.already_authorized");
    await server.client.fails("POST", "/v1/auth", { mnemonic: ZERO_MNEMONIC }, 409, "auth.already_authorized");
  });

  rule("[ACC-3] of two concurrent POST /v1/auth one boots and the other is 409", async () => {
    await using server = await bareServer();
    const replies = await Promise.all([1, 2, 3].map(() => server.client.request("POST", "/v1/auth", { body: {} })));
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 409, 409]);
    expect(findWallets(server.dataDir)).toHaveLength(1);
  });
});

describe("passkeys", () => {
  const PASSKEY = "tr0ub4dor & 3 ☂";

  rule("[ACC-2] a wallet made with a passkey needs it: required, wrong, right", async () => {
    using locked = await rootWith("nested", { passkey: PASSKEY });
    using other = await rootWith("nested");
    moveAccount(other.account.dir, join(locked.path, other.account.id));
    await using server = await startServer({ dataDir: locked.path, account: false });
    const accountId = locked.account.id;
    await server.client.fails("POST", "/v1/auth", { accountId }, 400, "auth.passkey_required");
    const wrong = await server.client.fails("POST", "/v1/auth", { accountId, passkey: "x" }, 400, "auth.passkey_wrong");
    expect(JSON.stringify(wrong)).not.toContain(PASSKEY);
    expect(await server.client.post<AuthReply>("/v1/auth", { accountId, passkey: PASSKEY })).toMatchObject({
      accountId,
      created: false,
    });
  });

  rule("[ACC-2] run takes the passkey from stdin or from SVC_WALLET_PASSKEY", async () => {
    using locked = await rootWith("flat", { passkey: PASSKEY });
    for (const options of [
      { args: ["--passkey-stdin"], stdin: `${PASSKEY}\n` },
      { env: { SVC_WALLET_PASSKEY: PASSKEY } },
    ]) {
      await using server = await startServer({ dataDir: locked.path, account: false, ...options });
      expect(await server.client.get("/v1/health")).toMatchObject({ account: locked.account.id });
      await server.stop();
      expect(server.stderr()).not.toContain(PASSKEY);
    }
  });

  rule("[ACC-2] run with a wrong passkey fails with auth.passkey_wrong", async () => {
    using locked = await rootWith("flat", { passkey: PASSKEY });
    const refused = await refusedStart({ dataDir: locked.path, env: { SVC_WALLET_PASSKEY: "nope" } });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("auth.passkey_wrong");
    expect(refused.stderr).not.toContain("nope");
  });

  rule("[ACC-2] an encrypted wallet shows nothing in clear: no phrase, no entropy of the zero phrase", async () => {
    using locked = await rootWith("flat", { passkey: PASSKEY, mnemonic: ZERO_MNEMONIC });
    const wallet = readFileSync(join(locked.path, "wallet.key"), "utf8");
    const envelope = JSON.parse(wallet) as Record<string, unknown>;
    expect(Object.keys(envelope).length).toBeGreaterThan(0);
    expect(wallet).not.toContain("abandon");
    expect(wallet).not.toContain("0".repeat(32)); // hex of the entropy
    expect(wallet).not.toContain("A".repeat(20)); // base64 of it
  });

  rule("[ACC-2] a truncated wallet.key fails the start with a clear error and is not overwritten", async () => {
    using root = await rootWith("flat");
    const path = join(root.path, "wallet.key");
    const whole = readFileSync(path);
    await Bun.write(path, whole.subarray(0, whole.length / 2));
    const refused = await refusedStart({ dataDir: root.path });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("wallet.key");
    expect(readFileSync(path)).toEqual(Buffer.from(whole.subarray(0, whole.length / 2)));
  });
});
