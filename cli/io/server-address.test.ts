import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fakeServer, type SeenRequest, spawnCli } from "../../test/support/server/command-line.ts";

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

test("[CLI-3] the target is where the configuration says that the server listens", async () => {
  expect(await inHome(server.addr, ["status"]).ran).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await inHome(undefined, ["status"], { SVC_LISTEN_ADDR: server.addr }).ran).toMatchObject({ exitCode: 0 });
  // The environment takes precedence over the file, and a flag over both.
  expect(await inHome("127.0.0.1:1", ["status"], { SVC_LISTEN_ADDR: server.addr }).ran).toMatchObject({ exitCode: 0 });
  const flag = inHome("127.0.0.1:1", ["status", "--addr", server.addr], { SVC_LISTEN_ADDR: "127.0.0.1:2" });
  expect(await flag.ran).toMatchObject({ exitCode: 0 });
});

test("[CLI-3] an unreachable one says which setting it came from", async () => {
  const { file, ran } = inHome("127.0.0.1:1", ["status"]);
  expect(await ran).toEqual({
    exitCode: 3,
    stdout: "",
    stderr: `svc: no server answers at 127.0.0.1:1, from listen.addr (${file}:4)\nstart one with: svc run\n`,
  });
  const byVariable = inHome(undefined, ["status"], { SVC_LISTEN_ADDR: "127.0.0.1:1" });
  expect((await byVariable.ran).stderr).toContain("at 127.0.0.1:1, from listen.addr (SVC_LISTEN_ADDR)");
});

test("[CLI-2] no command is advised that would be refused", async () => {
  const { stderr } = await inHome(undefined, ["status", "--addr", "10.255.255.1:7001", "--timeout", "200ms"]).ran;
  expect(stderr).not.toContain("svc run --addr");
  const named = await inHome(undefined, ["status", "--addr", "nowhere.invalid:7001"]).ran;
  expect(named.stderr).toContain("a server listens on its own machine alone");
});

test("[CLI-3] trigger and program ask the server for its control API, or call one at whose address it is", async () => {
  const paths: string[] = [];
  const noting =
    (name: string, answers: Record<string, unknown>) =>
    ({ path }: SeenRequest): Response => {
      paths.push(`${name} ${path}`);
      const answer = answers[path];
      const error = { code: "request.not_found", message: "no" };
      return answer ? Response.json(answer) : Response.json({ error }, { status: 404 });
    };
  using control = fakeServer(noting("control", { "/triggers": { triggers: [] }, "/programs": { programs: [] } }));
  const controlUrl = `http://${control.addr}`;
  using main = fakeServer(noting("main", { "/v1/health": { status: "ok", controlUrl } }));
  using off = fakeServer(noting("off", { "/v1/health": { status: "ok" } }));
  expect(await inHome(main.addr, ["trigger", "list"]).ran).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await inHome(undefined, ["program", "list", "--addr", main.addr]).ran).toMatchObject({ exitCode: 0 });
  expect(await inHome(main.addr, ["trigger", "list", "--addr", control.addr]).ran).toMatchObject({ exitCode: 0 });
  expect(paths).toEqual([
    "main /v1/health",
    "control /triggers",
    "main /v1/health",
    "control /programs",
    "control /v1/health",
    "control /triggers",
  ]);
  const none = await inHome(off.addr, ["trigger", "list"]).ran;
  expect(none).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("turned off (runtime.enabled)") });
});

test("[CLI-3] what the server would refuse is refused, and a free port cannot be called", async () => {
  const bad = await inHome("example.com:1", ["status"]).ran;
  expect(bad).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("listen.addr must be a loopback address") });
  const free = await inHome("127.0.0.1:0", ["status"]).ran;
  expect(free).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("--addr names the one it took") });
});

test("[CLI-3] without any setting it is 127.0.0.1:7001", async () => {
  const { stderr } = await inHome(undefined, ["status", "--verbose", "--timeout", "1ms"]).ran;
  expect(stderr).toContain("> GET http://127.0.0.1:7001/v1/health\n");
});
