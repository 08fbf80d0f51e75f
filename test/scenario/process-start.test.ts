/** How a server starts: addresses, the LISTENING line, health, refusals. */
import { describe, expect } from "bun:test";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { JsonObject } from "../support/server/client.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

describe("addresses", () => {
  for (const addr of ["0.0.0.0:0", "[::]:0", "192.0.2.1:7001", "example.com:7001"]) {
    rule(`[SRV-12] the non-loopback address ${addr} is refused at startup, and the refusal says so`, async () => {
      const refused = await refusedStart({ addr });
      expect(refused.code).not.toBe(0);
      expect(refused.stdout).not.toContain("LISTENING");
      expect(refused.stderr.toLowerCase()).toContain("loopback");
    });
  }

  rule("[SRV-12] a refused address says that remote access is not supported", async () => {
    const refused = await refusedStart({ addr: "0.0.0.0:0" });
    expect(refused.stderr.toLowerCase()).toMatch(/remote access is (not supported|unsupported)/);
  });

  for (const addr of ["127.0.0.1:0", "localhost:0", "127.0.0.2:0"]) {
    rule(`[SRV-12] the loopback address ${addr} is served`, async () => {
      await using server = await startServer({ addr, account: false });
      expect(server.port).toBeGreaterThan(0);
      await server.client.get("/v1/health");
    });
  }

  rule("[SRV-12] with port 0 the resolved address is printed as one LISTENING line before serving", async () => {
    await using server = await startServer({ account: false });
    const lines = server.stdout().trimEnd().split("\n");
    expect(lines.filter((line) => line.startsWith("LISTENING "))).toHaveLength(1);
    expect(server.address).toMatch(/^127\.0\.0\.1:[1-9][0-9]*$/);
    await server.client.get("/v1/health");
  });

  rule("[SRV-15] a port that is taken fails the start with an error, without LISTENING", async () => {
    await using first = await startServer({ account: false });
    const second = await refusedStart({ addr: first.address });
    expect(second.code).not.toBe(0);
    expect(second.stdout).not.toContain("LISTENING");
    expect(second.stderr).toContain(String(first.port));
  });
});

describe("health", () => {
  rule("[SRV-8] the fields, with an account and without", async () => {
    await using server = await startServer({ account: false });
    const before = await server.client.get<JsonObject>("/v1/health");
    expect(Object.keys(before).sort()).toEqual(["account", "bootstrapping", "startedAt", "status", "version"]);
    expect(before).toMatchObject({ status: "ok", account: "", bootstrapping: false });
    expect(before["version"]).toMatch(/^\S+ v\d+\.\d+\.\d+\S* \(sdk v\d+\.\d+\.\d+\S*\)$/);
    expect(before["startedAt"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    const account = await server.client.post<{ accountId: string }>("/v1/auth", {});
    await server.client.untilBootstrapped();
    expect(await server.client.get<JsonObject>("/v1/health")).toMatchObject({
      status: "ok",
      account: account.accountId,
      bootstrapping: false,
      startedAt: before["startedAt"] as string,
    });
  });
});

describe("data root", () => {
  rule("[SRV-1] run never creates a wallet", async () => {
    const root = scratchDir();
    using _ = root;
    await using server = await startServer({ dataDir: root.path, account: false });
    await server.client.get("/v1/health");
    await server.stop();
    expect(readdirSync(root.path, { recursive: true }).map(String)).not.toContain("wallet.key");
  });

  rule("[SRV-2] with no account no pid lock is held", async () => {
    const root = scratchDir();
    using _ = root;
    await using server = await startServer({ dataDir: root.path, account: false });
    const files = readdirSync(root.path, { recursive: true }).map(String);
    expect(files.filter((name) => name.endsWith("server.pid"))).toEqual([]);
    expect((await server.client.get<JsonObject>("/v1/auth"))["authorized"]).toBe(false);
  });

  rule("[STORE-7] a data root is made 0700 even when it was given and open to others", async () => {
    const root = scratchDir();
    using _ = root;
    const path = join(root.path, "open");
    mkdirSync(path, { mode: 0o755 });
    await using server = await startServer({ dataDir: path });
    expect(statSync(server.dataDir).mode & 0o777).toBe(0o700);
  });

  rule("[ACC-2] wallet.key is readable by its owner alone", async () => {
    await using server = await startServer();
    const names = readdirSync(server.dataDir, { recursive: true }).map(String);
    const wallets = names.filter((name) => name.endsWith("wallet.key"));
    expect(wallets).toHaveLength(1);
    expect(statSync(join(server.dataDir, wallets[0]!)).mode & 0o777).toBe(0o600);
  });
});
