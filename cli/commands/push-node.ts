import { CliError, EXIT, type ExitCode, UsageError } from "../io/exit.ts";
import { localCommand } from "./command.ts";

export const pushNode = localCommand({
  summary: "Run a push node in the foreground, for devices of any account",
  flags: {
    config: { kind: "text", hint: "FILE", summary: "Configuration file in YAML (docs/push.md)", required: true },
  },
  run: async ({ flags }): Promise<ExitCode> => {
    if (!flags.config) throw new UsageError("--config names the node's configuration; docs/push.md shows one");
    const { startPushNode } = await import("../../src/push-node/push-node.ts");
    const { NodeConfigError } = await import("../../src/push-node/node-config.ts");
    const node = await startPushNode({ configFile: flags.config }).catch((error: unknown) => {
      throw error instanceof NodeConfigError ? new CliError(error.message, EXIT.user) : error;
    });
    process.stdout.write(`LISTENING ${node.address}\n`);
    await new Promise<void>((resolve) => {
      process.once("SIGINT", () => resolve());
      process.once("SIGTERM", () => resolve());
    });
    await node.stop();
    // A provider's connection may still keep the process alive.
    process.exit(EXIT.ok);
  },
});
