/**
 * Invariant: a wallet interrupted while being written is the old one or the new one, never half of one. The server (or
 * `svc init`) is killed at random moments around the creation of an account.
 */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { pace } from "../support/pace.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { findWallets } from "../support/server/accounts.ts";
import { BINARY, childEnv, startServer } from "../support/server/server.ts";

const ROUNDS = rounds(20);

/** The accounts that a root holds, as a server that starts on it sees them; each must boot. */
async function bootEach(root: string): Promise<string[]> {
  for (const path of findWallets(root)) expect(() => JSON.parse(readFileSync(path, "utf8")) as unknown).not.toThrow();
  await using server = await startServer({ dataDir: root, account: false });
  const state = await server.client.get<{ authorized: boolean; accounts: { id: string }[] }>("/v1/auth");
  const ids = state.accounts.map((entry) => entry.id);
  if (!state.authorized) {
    for (const accountId of ids.slice(0, 1)) await server.client.post("/v1/auth", { accountId });
  }
  if (ids.length > 0) await server.client.get("/v1/account");
  return ids;
}

describe("wallet", () => {
  rule(
    `[ACC-2] ${ROUNDS} kills around POST /v1/auth: no wallet or a whole one, and an announced account boots again`,
    async () => {
      const rng = createRng(runSeed("wallet crash"));
      const seen = { none: 0, made: 0 };
      for (let round = 0; round < ROUNDS; round++) {
        const root = scratchDir("svc-wallet");
        using _ = root;
        const server = await startServer({ dataDir: root.path, account: false });
        const asked = server.client.post<{ accountId: string }>("/v1/auth", {}).then(
          (made) => made.accountId,
          () => undefined,
        );
        await pace(rng.int(0, 25));
        await server.kill();
        const announced = await asked;
        const ids = await bootEach(root.path);
        if (announced !== undefined) expect({ round, ids }).toEqual({ round, ids: [announced] });
        expect(ids.length).toBeLessThanOrEqual(1);
        seen[ids.length === 0 ? "none" : "made"]++;
      }
      console.log(`wallet crash: ${JSON.stringify(seen)}`);
    },
    180_000,
  );

  rule(
    `[ACC-2] ${ROUNDS} kills around svc init --new: the accounts that were there stay as they were`,
    async () => {
      const rng = createRng(runSeed("init crash"));
      const root = scratchDir("svc-wallet");
      using _ = root;
      using home = scratchDir("svc-home");
      const first = await startServer({ dataDir: root.path });
      const { id: kept } = await first.client.get<{ id: string }>("/v1/account");
      await first.stop();
      const before = new Map(findWallets(root.path).map((path) => [path, readFileSync(path)]));
      for (let round = 0; round < ROUNDS; round++) {
        const child = Bun.spawn([BINARY, "init", "--new"], {
          env: childEnv(home.path, { SVC_DATA_DIR: root.path }),
          stdin: "ignore",
          stdout: "ignore",
          stderr: "ignore",
        });
        await pace(rng.int(0, 60));
        child.kill("SIGKILL");
        await child.exited;
        for (const [path, bytes] of before) expect(readFileSync(path)).toEqual(bytes);
      }
      await using server = await startServer({ dataDir: root.path, account: false, args: ["--account", kept] });
      expect(await server.client.get("/v1/health")).toMatchObject({ account: kept });
      for (const path of findWallets(root.path)) expect(JSON.parse(readFileSync(path, "utf8"))).toBeObject();
    },
    120_000,
  );
});
