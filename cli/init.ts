import { localCommand } from "./command.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { prettyJson, say, writeOut } from "./output.ts";

export const init = localCommand({
  summary: "Create the data root and an account's wallet on this machine, or restore one from its phrase",
  flags: {
    mnemonic: {
      kind: "text",
      hint: "WORDS",
      summary: "Restore: the 12 words (other users may see arguments; prefer --mnemonic-stdin)",
    },
    "mnemonic-stdin": { kind: "switch", summary: "Restore: read the 12 words from the first line of stdin" },
    index: {
      kind: "integer",
      summary: "Restore: derivation index (default 1; 0 for an account derived by another scheme)",
    },
    new: { kind: "switch", summary: "Create an additional account even if there is one" },
    "data-dir": { kind: "text", hint: "PATH", summary: "Data root (default ~/.svc)" },
    config: {
      kind: "text",
      hint: "PATH",
      summary: "Configuration file in YAML; otherwise the usual places are looked at",
    },
    "passkey-stdin": {
      kind: "switch",
      summary: "Encrypt the wallet with the passkey on the next line of stdin (or set SVC_WALLET_PASSKEY)",
    },
  },
  run: async ({ flags }, { reader }): Promise<ExitCode> => {
    const labels = (["mnemonic-stdin", "passkey-stdin"] as const)
      .filter((name) => flags[name])
      .map((name) => `--${name}`);
    const lines = labels.length > 0 ? await reader.secretLines(labels) : [];
    const secrets = new Map(labels.map((label, index) => [label, lines[index] as string]));
    const module = ["../src/engine", "account-init.ts"].join("/");
    const { initAccount } = await import(module);
    const { mnemonic, ...result } = await initAccount({
      mnemonic: flags.mnemonic ?? secrets.get("--mnemonic-stdin"),
      index: flags.index,
      forceNew: flags.new ?? false,
      dataDir: flags["data-dir"],
      configPath: flags.config,
      passkey: secrets.get("--passkey-stdin"),
    });
    if (mnemonic)
      say(
        `Write these 12 words down. They are the only way to recover the account and are not shown again.\n\n  ${mnemonic}\n`,
      );
    await writeOut(prettyJson(result));
    return EXIT.ok;
  },
});
