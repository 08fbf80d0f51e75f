import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fakeServer, spawnCli } from "../../test/support/server/command-line.ts";

const root = mkdtempSync(join(tmpdir(), "svc-cli-home-"));
const server = fakeServer(() => Response.json({ ok: true }));
afterAll(() => {
  server[Symbol.dispose]();
  rmSync(root, { recursive: true });
});
let homes = 0;

/** Runs with its own home, whose configuration file sets `listen`. */
function inHome(listen: string | undefined, args: string[], env: Record<string, string> = {}) {
  const home = join(root, `home${++homes}`);
  const file = join(home, ".config", "svc", "config.yaml");
  mkdirSync(join(home, ".config", "svc"), { recursive: true });
  if (listen !== undefined) writeFileSync(file, `log:\n  defaultLevel: warn\nlisten:\n  addr: ${listen}\n`);
  const scrubbed = { SVC_LISTEN_ADDR: "", SVC_DATA_DIR: "", XDG_CONFIG_HOME: "" };
  return { file, ran: spawnCli(args, { env: { ...scrubbed, HOME: home, ...env } }) };
}

test("[cli] the target is where the configuration says that the server listens", async () => {
  expect(await inHome(server.addr, ["status"]).ran).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await inHome(undefined, ["status"], { SVC_LISTEN_ADDR: server.addr }).ran).toMatchObject({ exitCode: 0 });
  // The environment takes precedence over the file, and a flag over both.
  expect(await inHome("127.0.0.1:1", ["status"], { SVC_LISTEN_ADDR: server.addr }).ran).toMatchObject({ exitCode: 0 });
  const flag = inHome("127.0.0.1:1", ["status", "--addr", server.addr], { SVC_LISTEN_ADDR: "127.0.0.1:2" });
  expect(await flag.ran).toMatchObject({ exitCode: 0 });
});

test("[cli] an unreachable one says which setting it came from", async () => {
  const { file, ran } = inHome("127.0.0.1:1", ["status"]);
  expect(await ran).toEqual({
    exitCode: 3,
    stdout: "",
    stderr: `svc: no server answers at 127.0.0.1:1, from listen.addr (${file}:4)\nstart one with: svc run\n`,
  });
  const byVariable = inHome(undefined, ["status"], { SVC_LISTEN_ADDR: "127.0.0.1:1" });
  expect((await byVariable.ran).stderr).toContain("at 127.0.0.1:1, from listen.addr (SVC_LISTEN_ADDR)");
});

test("[cli] what the server would refuse is refused, and a free port cannot be called", async () => {
  const bad = await inHome("example.com:1", ["status"]).ran;
  expect(bad).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("listen.addr must be a loopback address") });
  const free = await inHome("127.0.0.1:0", ["status"]).ran;
  expect(free).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("--addr names the one it took") });
});

test("[cli] without any setting it is 127.0.0.1:7001", async () => {
  const { stderr } = await inHome(undefined, ["status", "--verbose", "--timeout", "1ms"]).ran;
  expect(stderr).toContain("> GET http://127.0.0.1:7001/v1/health\n");
});
