import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StartRefusal } from "../start-refusal.ts";
import { type ConfigFlags, loadConfig } from "./config.ts";
import { environmentNameOf } from "./config-keys.ts";

const root = mkdtempSync(join(tmpdir(), "svc-config-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let homes = 0;

interface Case {
  yaml?: string;
  env?: Record<string, string>;
  flags?: ConfigFlags;
}

/** Loads with a home of its own; `yaml` is its `~/.config/svc/config.yaml`. */
function load({ yaml, env = {}, flags = {} }: Case) {
  const homeDir = join(root, `home${++homes}`);
  mkdirSync(join(homeDir, ".config", "svc"), { recursive: true });
  const file = join(homeDir, ".config", "svc", "config.yaml");
  if (yaml !== undefined) writeFileSync(file, yaml);
  return { homeDir, file, config: loadConfig({ env, flags, homeDir, cwd: "/work" }) };
}

async function refusal(of: Case): Promise<string> {
  const { config, homeDir } = load(of);
  const error = await config.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StartRefusal);
  return (error as Error).message.replace(homeDir, "~");
}

test("[SRV-5] defaults without any source", async () => {
  const { config, homeDir } = load({});
  expect(await config).toMatchObject({
    dataDir: join(homeDir, ".svc"),
    "listen.addr": { hostname: "127.0.0.1", port: 7001 },
    "webUI.enabled": true,
    "http.allowedOrigins": ["tauri://localhost"],
    "log.defaultLevel": "info",
    "index.enabled": true,
    file: undefined,
    passkey: undefined,
  });
});

test("[SRV-5] file under environment under flags", async () => {
  const yaml =
    "listen: {addr: 127.0.0.1:1}\nlog:\n  defaultLevel: warn\nwebUI.enabled: false\nindex:\nfiles:\n  gcInterval: 5m\n";
  const env = {
    SVC_LISTEN_ADDR: "127.0.0.1:2",
    SVC_LOG_LEVEL: "error",
    SVC_WEB_UI_ENABLED: "",
    SVC_WALLET_PASSKEY: "pk",
  };
  const config = await load({ yaml, env, flags: { addr: "[::1]:3" } }).config;
  expect(config["listen.addr"]).toEqual({ hostname: "::1", port: 3 });
  expect(config["log.defaultLevel"]).toBe("error");
  expect(config["webUI.enabled"]).toBe(false);
  expect(config["files.gcInterval"]).toBe(300_000);
  expect(config.passkey).toBe("pk");
  expect([...config.given].sort()).toEqual(["files.gcInterval", "listen.addr", "log.defaultLevel", "webUI.enabled"]);
});

test("[SRV-5] every setting has its variable", () => {
  expect(
    ["webUI.enabled", "runtime.llm.baseUrl", "dataDir", "listen.addr", "runtime.maxMemoryMiB", "network.tls.ca"].map(
      environmentNameOf,
    ),
  ).toEqual([
    "SVC_WEB_UI_ENABLED",
    "SVC_RUNTIME_LLM_BASE_URL",
    "SVC_DATA_DIR",
    "SVC_LISTEN_ADDR",
    "SVC_RUNTIME_MAX_MEMORY_MIB",
    "SVC_NETWORK_TLS_CA",
  ]);
});

test("[SRV-5] lists, sizes, paths and secrets", async () => {
  const { config, homeDir, file } = load({
    yaml: "log: {addOutputPaths: [a.log, ~/b.log, /c.log]}\nfiles: {cacheLimit: 2GiB}\nruntime: {secrets: {github: GH_TOKEN}}\n",
    env: { SVC_HTTP_ALLOWED_ORIGINS: "http://a:1, http://b:2", SVC_DATA_DIR: "data", SVC_P2P_PORT: "0" },
  });
  const got = await config;
  expect(got["log.addOutputPaths"]).toEqual([join(file, "../a.log"), join(homeDir, "b.log"), "/c.log"]);
  expect(got["files.cacheLimit"]).toBe(2 ** 31);
  expect({ ...got["runtime.secrets"] }).toEqual({ github: "GH_TOKEN" });
  expect(got["http.allowedOrigins"]).toEqual(["http://a:1", "http://b:2"]);
  expect(got.dataDir).toBe("/work/data");
  expect((await load({ env: { SVC_RUNTIME_SECRETS_GITHUB: "GH" } }).config)["runtime.secrets"]["github"]).toBe("GH");
});

test("[SRV-5] an unknown key or a bad value refuses the start and names key, file and line", async () => {
  const file = "~/.config/svc/config.yaml";
  const cases: [of: Case, message: string][] = [
    [{ yaml: "\nlisten:\n  adr: 1\n" }, `${file}:3: unknown setting listen.adr`],
    [{ yaml: "webui:\n  enabled: true\n" }, `${file}:1: unknown setting webui`],
    [{ yaml: "WebUI.Enabled: true\n" }, `${file}:1: unknown setting WebUI.Enabled; did you mean webUI.enabled?`],
    [
      { yaml: "log:\n  defaultLevel: loud\n" },
      `${file}:2: log.defaultLevel must be one of debug, info, warn, error; it is "loud"`,
    ],
    [{ yaml: "index:\n  enabled: 'yes'\n" }, `${file}:2: index.enabled must be true or false; it is "yes"`],
    [
      { yaml: "files: {gcInterval: 30}\n" },
      `${file}:1: files.gcInterval must be a duration such as 30s, 5m or 24h; it is 30`,
    ],
    [{ yaml: "files: 3\n" }, `${file}:1: files must be a map of settings`],
    [{ yaml: "- a\n" }, `${file}:1: the file must be a map of settings`],
    [{ yaml: "a: [\n" }, `${file}:`],
    [{ yaml: "log.format: json\nlog: {format: json}\n" }, `${file}:2: log.format is given twice`],
    [
      { yaml: "runtime: {secrets: {k: 'not a name'}}\n" },
      `${file}:1: runtime.secrets must be the name of an environment variable`,
    ],
    [{ env: { SVC_INDEX_ENABLED: "maybe" } }, 'SVC_INDEX_ENABLED: index.enabled must be true or false; it is "maybe"'],
    [{ env: { SVC_HTTP_ALLOWED_ORIGINS: "*" } }, "SVC_HTTP_ALLOWED_ORIGINS: http.allowedOrigins must name origins"],
    [{ flags: { "log-level": "x" } }, "--log-level: log.defaultLevel must be one of"],
    [{ flags: { config: "/nowhere/config.yaml" } }, "--config names /nowhere/config.yaml, which does not exist"],
  ];
  for (const [of, message] of cases) expect(await refusal(of)).toStartWith(message);
});

test("[SRV-12] only loopback addresses are listened on", async () => {
  for (const addr of ["127.0.0.1:0", "127.9.8.7:1", "localhost:65535", "LOCALHOST:1", "[::1]:7001"]) {
    expect((await load({ flags: { addr } }).config)["listen.addr"].port).toBeNumber();
  }
  for (const addr of [
    "0.0.0.0:7001",
    "192.168.1.2:1",
    "[::]:1",
    "example.com:1",
    "127.0.0.256:1",
    "localhost.evil:1",
  ]) {
    expect(await refusal({ flags: { addr } })).toContain("remote access is not supported");
  }
  for (const addr of ["127.0.0.1", "127.0.0.1:65536", ":7001", "::1:7001", "127.0.0.1:-1"]) {
    expect(await refusal({ flags: { addr } })).toContain("must be host:port");
  }
});

test("[SRV-5] the first file found is the only one read", async () => {
  const { homeDir } = load({ yaml: "log: {format: json}\n" });
  const xdg = join(homeDir, "xdg");
  mkdirSync(join(xdg, "svc"), { recursive: true });
  writeFileSync(join(xdg, "svc", "config.yaml"), "log: {defaultLevel: debug}\n");
  mkdirSync(join(homeDir, ".svc"));
  writeFileSync(join(homeDir, ".svc", "config.yaml"), "bogus: 1\n");
  const config = await loadConfig({ env: { XDG_CONFIG_HOME: xdg }, homeDir });
  expect([config["log.defaultLevel"], config["log.format"]]).toEqual(["debug", undefined]);
  expect((await loadConfig({ env: {}, homeDir }))["log.format"]).toBe("json");
});

test("[SRV-5] variables that mean nothing are named", async () => {
  const config = await load({ env: { SVC_LISTEN_ADRR: "x", SVC_LOG_LEVEL: "info", OTHER: "1" } }).config;
  expect(config.unknownVariables).toEqual(["SVC_LISTEN_ADRR"]);
});
