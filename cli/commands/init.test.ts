import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli, spawnCli } from "../../test/support/server/command-line.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
// An empty file keeps the machine's own configuration out of the test.
const configPath = join(folder, "config.yaml");
await Bun.write(configPath, "");
const init = (root: string, ...more: string[]) => [
  "init",
  "--data-dir",
  join(folder, root),
  "--config",
  configPath,
  ...more,
];
const PHRASE = /^ {2}((?:[a-z]+ ){11}[a-z]+)$/m;

test("[ACC-4] init shows the phrase once, on stderr alone, and the account as JSON", async () => {
  const first = await runCli(init("one"));
  expect(first.exitCode).toBe(0);
  const made = JSON.parse(first.stdout);
  expect([made.created, typeof made.peerId]).toEqual([true, "string"]);
  expect(made.accountId).toMatch(/^A/);
  const phrase = PHRASE.exec(first.stderr)?.[1] as string;
  expect(first.stdout).not.toContain(phrase);
  expect(statSync(join(made.accountDir, "wallet.key")).mode & 0o777).toBe(0o600);

  const again = await runCli(init("one"));
  expect(again.exitCode).toBe(0);
  expect(JSON.parse(again.stdout)).toMatchObject({ created: false, accounts: [{ id: made.accountId }] });
  expect(again.stderr).not.toMatch(PHRASE);

  // The phrase comes from stdin, into another root: it is the same account on a new device, and the phrase is not shown
  // again.
  const restored = await spawnCli(init("two", "--mnemonic-stdin"), { stdin: `${phrase}\n` });
  expect(restored).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(restored.stdout)).toMatchObject({ created: true, accountId: made.accountId });
  expect(JSON.parse(restored.stdout).peerId).not.toBe(made.peerId);
});

test("[SRV-7] [ACC-4] a refusal of the engine shows its code and ends in 1", async () => {
  expect(await runCli(init("three", "--mnemonic", "not words"))).toMatchObject({
    exitCode: 1,
    stdout: "",
    stderr: expect.stringContaining("auth.bad_mnemonic"),
  });
  expect(await runCli(init("three", "--index", "1"))).toMatchObject({ exitCode: 1, stdout: "" });
});

test("[SRV-12] run refuses an address that is not loopback, before anything is served", async () => {
  const refused = await spawnCli([
    "run",
    "--addr",
    "0.0.0.0:0",
    "--config",
    configPath,
    "--data-dir",
    join(folder, "four"),
  ]);
  expect(refused).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringMatching(/^svc: .*not supported/) });
});

test("run takes what init made: it serves that account until it is stopped, then exits 0", async () => {
  const made = JSON.parse((await runCli(init("five"))).stdout);
  const child = Bun.spawn(
    [
      process.execPath,
      `${import.meta.dir}/../main.ts`,
      "run",
      "--addr",
      "127.0.0.1:0",
      "--config",
      configPath,
      "--data-dir",
      join(folder, "five"),
    ],
    { stdout: "pipe", stderr: "pipe", env: { ...process.env, SVC_P2P_ENABLED: "false", SVC_RUNTIME_ENABLED: "false" } },
  );
  const { value } = await child.stdout.getReader().read();
  const addr = /^LISTENING (\S+)/.exec(new TextDecoder().decode(value))?.[1] as string;
  expect(JSON.parse((await runCli(["status", "--addr", addr])).stdout)).toMatchObject({ account: made.accountId });
  expect(await runCli(["stop", "--addr", addr])).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  expect(await child.exited).toBe(0);
});
