import { EXIT, type ExitCode } from "../io/exit.ts";
import { localCommand } from "./command.ts";

export const run = localCommand({
  summary: "Run the server in the foreground",
  examples: [
    "run",
    "run --addr 127.0.0.1:0 --data-dir ./scratch --log-level debug",
    "run --config svc.yaml --passkey-stdin < passkey.txt",
  ],

  flags: {
    addr: {
      kind: "text",
      hint: "host:port",
      summary: "Loopback address to bind (default 127.0.0.1:7001; port 0 takes a free one)",
    },
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
  run: async ({ flags }, { reader }): Promise<ExitCode> => {
    const [passkey] = flags["passkey-stdin"] ? await reader.secretLines(["--passkey-stdin"]) : [];
    const { createServer } = await import("../../src/serve.ts");
    const server = await createServer({ flags, passkey });
    await server.finished;
    // After the drain's deadline something may still keep the process alive; the exit code is 0 all the same.
    process.exit(EXIT.ok);
  },
});
