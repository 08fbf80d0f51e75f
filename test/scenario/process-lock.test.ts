/** The pid lock: one server for each account. */
import { describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { moveAccount, rootWith } from "../support/server/accounts.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

const firstNumber = (text: string): number => Number(/\d+/.exec(text)?.[0]);

describe("pid lock", () => {
  rule("[SRV-2] booting an account writes <account-dir>/server.pid with the server's pid", async () => {
    using root = await rootWith("nested");
    await using server = await startServer({ dataDir: root.path });
    expect(firstNumber(readFileSync(join(root.account.dir, "server.pid"), "utf8"))).toBe(server.pid);
  });

  rule("[SRV-2] in the flat layout the lock lies at the root itself", async () => {
    using root = await rootWith("flat");
    await using server = await startServer({ dataDir: root.path });
    expect(firstNumber(readFileSync(join(root.path, "server.pid"), "utf8"))).toBe(server.pid);
  });

  rule("[SRV-2] a lock held by a live server fails the boot of a second one and leaves the first alone", async () => {
    using root = await rootWith("nested");
    await using server = await startServer({ dataDir: root.path });
    const refused = await refusedStart({ dataDir: root.path });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("auth.account_in_use");
    expect(refused.stdout).not.toContain("LISTENING");
    await server.client.get("/v1/health");
    expect(firstNumber(readFileSync(join(root.account.dir, "server.pid"), "utf8"))).toBe(server.pid);
  });

  rule("[SRV-2] POST /v1/auth for an account that another server holds is 409 auth.account_in_use", async () => {
    using one = await rootWith("nested");
    using two = await rootWith("nested");
    moveAccount(two.account.dir, join(one.path, two.account.id));
    await using holder = await startServer({ dataDir: one.path, args: ["--account", one.account.id] });
    await using other = await startServer({ dataDir: one.path, account: false });
    const body = { accountId: one.account.id };
    const error = await other.client.fails("POST", "/v1/auth", body, 409, "auth.account_in_use");
    expect(error.details).toEqual(body); // what the caller supplied; the message names the process
    expect(error.message).toContain(String(holder.pid));
    await holder.client.get("/v1/account");
    const selected = await other.client.post<{ accountId: string; created: boolean }>("/v1/auth", {
      accountId: two.account.id,
    });
    expect(selected).toMatchObject({ accountId: two.account.id, created: false });
  });

  rule("[SRV-2] two servers share a root when they serve different accounts on different ports", async () => {
    using root = scratchDir();
    await using first = await startServer({ dataDir: root.path, account: false });
    await using second = await startServer({ dataDir: root.path, account: false });
    const one = await first.client.post<{ accountId: string }>("/v1/auth", {});
    const two = await second.client.post<{ accountId: string }>("/v1/auth", {});
    expect(two.accountId).not.toBe(one.accountId);
    for (const [server, own] of [
      [first, one],
      [second, two],
    ] as const) {
      await server.client.post("/v1/spaces", { name: own.accountId }, 201);
      const spaces = await server.client.get<{ author: string }[]>("/v1/spaces");
      expect(spaces.map((space) => space.author)).toEqual([own.accountId]);
    }
  });

  rule("[SRV-2] the lock of a killed server is reclaimed", async () => {
    using root = await rootWith("nested");
    const first = await startServer({ dataDir: root.path });
    await first.kill();
    expect(firstNumber(readFileSync(join(root.account.dir, "server.pid"), "utf8"))).toBe(first.pid);
    await using second = await startServer({ dataDir: root.path });
    expect(firstNumber(readFileSync(join(root.account.dir, "server.pid"), "utf8"))).toBe(second.pid);
  });

  for (const [what, text] of [
    ["a pid that never was", "4194303999"],
    ["nothing", ""],
    ["garbage", "not a pid\n"],
  ] as const) {
    rule(`[SRV-2] a lock file that holds ${what} does not keep the account shut`, async () => {
      using root = await rootWith("nested");
      writeFileSync(join(root.account.dir, "server.pid"), text);
      await using server = await startServer({ dataDir: root.path });
      expect(firstNumber(readFileSync(join(root.account.dir, "server.pid"), "utf8"))).toBe(server.pid);
    });
  }

  rule("[SRV-2] of several servers that start at once on one account exactly one boots it", async () => {
    using root = await rootWith("nested");
    const starts = await Promise.allSettled([1, 2, 3, 4].map(() => startServer({ dataDir: root.path })));
    const served = starts.filter((start) => start.status === "fulfilled").map((start) => start.value);
    try {
      expect(served).toHaveLength(1);
    } finally {
      for (const server of served) await server[Symbol.asyncDispose]();
    }
  });

  rule("[SRV-2] a graceful stop gives the lock back: the next start needs no reclaiming", async () => {
    using root = await rootWith("nested");
    const first = await startServer({ dataDir: root.path });
    await first.stop();
    expect(await Bun.file(join(root.account.dir, "server.pid")).exists()).toBe(false);
    await using second = await startServer({ dataDir: root.path });
    await second.client.get("/v1/account");
  });
});
