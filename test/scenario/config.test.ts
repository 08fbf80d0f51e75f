/** Configuration: YAML, environment, flags, in increasing precedence; refusals that name what is wrong and where. */
import { describe, expect } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/network/free-port.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { refusedStart, startServer } from "../support/server/server.ts";
import { svc } from "../support/server/svc.ts";

describe("precedence", () => {
  rule("[SRV-5] listen.addr from YAML is used", async () => {
    const port = await freePort();
    await using server = await startServer({
      addr: null,
      account: false,
      config: `listen:\n  addr: 127.0.0.1:${port}\n`,
    });
    expect(server.port).toBe(port);
  });

  rule("[SRV-5] the environment wins over YAML", async () => {
    const [inFile, inEnv] = [await freePort(), await freePort()];
    await using server = await startServer({
      addr: null,
      account: false,
      config: `listen:\n  addr: 127.0.0.1:${inFile}\n`,
      env: { SVC_LISTEN_ADDR: `127.0.0.1:${inEnv}` },
    });
    expect(server.port).toBe(inEnv);
  });

  rule("[SRV-5] a flag wins over the environment", async () => {
    const [inEnv, inFlag] = [await freePort(), await freePort()];
    await using server = await startServer({
      addr: `127.0.0.1:${inFlag}`,
      account: false,
      env: { SVC_LISTEN_ADDR: `127.0.0.1:${inEnv}` },
    });
    expect(server.port).toBe(inFlag);
  });

  rule("[SRV-5] <data-dir>/config.yaml is found by itself", async () => {
    using root = scratchDir();
    const port = await freePort();
    writeFileSync(join(root.path, "config.yaml"), `listen:\n  addr: 127.0.0.1:${port}\n`);
    await using server = await startServer({ dataDir: root.path, addr: null, account: false });
    expect(server.port).toBe(port);
  });

  rule("[SRV-5] an explicit config wins over a found one; they are not merged", async () => {
    using root = scratchDir();
    writeFileSync(join(root.path, "config.yaml"), "webUI:\n  enabled: false\n");
    await using server = await startServer({ dataDir: root.path, account: false, config: "log:\n  format: json\n" });
    expect((await server.client.request("GET", "/ui/")).status).toBe(200);
  });

  rule("[SRV-5] $XDG_CONFIG_HOME/svc/config.yaml is found before <data-dir>/config.yaml", async () => {
    using xdg = scratchDir();
    using root = scratchDir();
    mkdirSync(join(xdg.path, "svc"));
    writeFileSync(join(xdg.path, "svc", "config.yaml"), "log:\n  format: json\n");
    writeFileSync(join(root.path, "config.yaml"), "log:\n  format: plaintext\n");
    const formats: boolean[] = [];
    for (const env of [{ XDG_CONFIG_HOME: xdg.path }, {}]) {
      await using server = await startServer({ dataDir: root.path, account: false, env });
      formats.push(server.stderr().startsWith("{"));
    }
    expect(formats).toEqual([true, false]);
  });

  rule("[SRV-5] webUI.enabled: false turns /ui off; SVC_WEB_UI_ENABLED says the same", async () => {
    for (const options of [{ config: "webUI:\n  enabled: false\n" }, { env: { SVC_WEB_UI_ENABLED: "false" } }]) {
      await using server = await startServer({ account: false, ...options });
      await server.client.fails("GET", "/ui", undefined, 404, "request.not_found");
      await server.client.fails("GET", "/ui/", undefined, 404, "request.not_found");
    }
  });
});

describe("refusals", () => {
  const YAML: [string, string, string[]][] = [
    ["an unknown key", "listen:\n  addr: 127.0.0.1:0\n  adress: x\n", ["listen.adress", "3"]],
    ["an unknown top-level key", "log:\n  format: json\nlisten_addr: x\n", ["listen_addr", "3"]],
    ["a bad choice", "log:\n  format: xml\n", ["log.format", "2"]],
    ["a bad level", "log:\n  defaultLevel: loud\n", ["log.defaultLevel", "2"]],
    ["a wrong type", 'webUI:\n  enabled: "maybe"\n', ["webUI.enabled", "2"]],
    ["a bad duration", "files:\n  gcInterval: soon\n", ["files.gcInterval", "2"]],
    ["a list where a string belongs", "listen:\n  addr: [1, 2]\n", ["listen.addr", "2"]],
    ["an account that is no id", "log:\n  format: json\naccount: work\n", ["account", "3", "account id"]],
    [
      "a log file in a folder that is not there",
      "log:\n  addOutputPaths:\n    - /nowhere/at/all.log\n",
      ["log.addOutputPaths", "/nowhere/at/all.log", "folders that exist", ":2:"],
    ],
    ["a log path that is no text", "log:\n  addOutputPaths: [3]\n", ["log.addOutputPaths", "2"]],
    ["a non-loopback address", "listen:\n  addr: 0.0.0.0:7001\n", ["listen.addr"]],
  ];
  for (const [what, config, named] of YAML) {
    rule(`[SRV-5] ${what} refuses the start and names the key, the file and the line`, async () => {
      const refused = await refusedStart({ addr: null, config });
      expect(refused.code).not.toBe(0);
      for (const part of ["svc-config.yaml", ...named]) expect(refused.stderr).toContain(part);
    });
  }

  rule("[SRV-5] a bad value in the file is refused though a flag or a variable overrides it", async () => {
    for (const [config, override, key] of [
      ["log:\n  defaultLevel: loud\n", { args: ["--log-level", "info"] }, "log.defaultLevel"],
      ["listen:\n  addr: everywhere\n", { addr: "127.0.0.1:0" }, "listen.addr"],
      ["webUI:\n  enabled: maybe\n", { env: { SVC_WEB_UI_ENABLED: "true" } }, "webUI.enabled"],
    ] as const) {
      const refused = await refusedStart({ config, ...override } as never);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(`svc-config.yaml:2: ${key} must be`);
    }
  });

  rule("[SRV-5] a refusal does not repeat what may be a secret", async () => {
    const config = "runtime:\n  secrets:\n    github: ghp-canary/1\n";
    const refused = await refusedStart({ config });
    expect(refused.stderr).toContain("runtime.secrets must be the name of an environment variable");
    expect(refused.stderr).not.toContain("ghp-canary");
  });

  rule("[SRV-5] YAML that does not parse refuses the start and names the file", async () => {
    const refused = await refusedStart({ config: "listen:\n  addr: [\n" });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("svc-config.yaml");
  });

  for (const [name, value] of [
    ["SVC_LISTEN_ADDR", "nowhere"],
    ["SVC_LOG_LEVEL", "loud"],
    ["SVC_LOG_FORMAT", "xml"],
    ["SVC_WEB_UI_ENABLED", "perhaps"],
    ["SVC_FILES_GC_INTERVAL", "-"],
    ["SVC_RUNTIME_MAX_MEMORY_MIB", "lots"],
    ["SVC_NETWORK_URL", "foo"],
    ["SVC_NETWORK_URL", "http://foo"],
  ] as const) {
    rule(`[SRV-5] a bad ${name} refuses the start and names its source`, async () => {
      const refused = await refusedStart({ addr: null, env: { [name]: value } });
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toContain(name);
    });
  }

  for (const account of [true, false]) {
    rule(
      `[SRV-5] a file that a setting names must be there and be what it says, ${account ? "with" : "without"} an account`,
      async () => {
        using dir = scratchDir();
        if (account) expect((await svc(["init"], { env: { SVC_DATA_DIR: dir.path } })).code).toBe(0);
        const [empty, missing] = [join(dir.path, "empty.pem"), join(dir.path, "missing.pem")];
        writeFileSync(empty, "");
        for (const [key, variable] of [
          ["network.tls.ca", "SVC_NETWORK_TLS_CA"],
          ["network.credsFile", "SVC_NETWORK_CREDS_FILE"],
        ] as const) {
          for (const [path, fault] of [
            [missing, "does not exist"],
            [empty, "does not hold"],
            [dir.path, "is no file"],
          ] as const) {
            const refused = await refusedStart({ dataDir: dir.path, env: { [variable]: path } });
            expect([refused.code, refused.stdout]).toEqual([1, ""]);
            expect(refused.stderr).toContain(`${variable}: ${key} names ${path}, which ${fault}`);
          }
        }
      },
    );
  }

  for (const args of [["--log-level", "loud"], ["--no-such-flag"], ["surplus-argument"]]) {
    rule(`[SRV-5] the bad flag ${args.join(" ")} refuses the start with exit 1 and names it`, async () => {
      const refused = await refusedStart({ args });
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(args[0]!.replace(/^--/, ""));
    });
  }

  rule("[SRV-5] --config that names a missing file refuses the start", async () => {
    const refused = await refusedStart({ args: ["--config", "/nonexistent/svc.yaml"] });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("/nonexistent/svc.yaml");
  });
});
