import { localCommand } from "./command.ts";
import { EXIT, type ExitCode } from "./exit.ts";

export const run = localCommand({
  summary: "Run the server in the foreground (--addr is the loopback address it binds)",
  flags: {
    config: {
      kind: "text",
      hint: "PATH",
      summary: "Configuration file in YAML; otherwise the usual places are looked at",
    },
    "data-dir": { kind: "text", hint: "PATH", summary: "Data root (default ~/.svc)" },
    account: { kind: "text", hint: "ID", summary: "Account to serve, where the data root holds several" },
    wallet: { kind: "text", hint: "PATH", summary: "Wallet file to open; the data then lies flat at the data root" },
    "passkey-stdin": { kind: "switch", summary: "Read the wallet's passkey from the first line of stdin" },
    "log-level": { kind: "text", hint: "debug|info|warn|error", summary: "Log level of this run" },
  },
  run: async ({ flags }, { globals, reader }): Promise<ExitCode> => {
    const [passkey] = flags["passkey-stdin"] ? await reader.secretLines(["--passkey-stdin"]) : [];
    const module: string = "../src/serve.ts";
    const { createServer } = await import(module);
    await createServer({ flags: { ...flags, addr: globals.addr }, passkey });
    return EXIT.ok;
  },
});
