import { EXIT, type ExitCode } from "../io/exit.ts";
import { prettyJson, say, writeOut } from "../io/output.ts";
import { localCommand } from "./command.ts";
import { PHRASE_WARNING, readSecrets, SECRET_FLAGS } from "./secret-input.ts";

export const init = localCommand({
  summary: "Create the data root and an account's wallet on this machine, or restore one from its phrase",
  examples: ["init", "init --mnemonic-stdin < words.txt", "init --new --data-dir ./scratch", "init --new-device"],

  flags: {
    ...SECRET_FLAGS,
    index: {
      kind: "integer",
      summary: "Restore: derivation index (default 1; 0 for an account derived by another scheme)",
    },
    "new-device": {
      kind: "switch",
      summary: "Give the account here fresh device keys, for a data root that is a copy of another; all else stays",
    },
    new: { kind: "switch", summary: "Create an additional account even if there is one" },
    "data-dir": { kind: "text", hint: "PATH", summary: "Data root (default ~/.svc)" },
    config: {
      kind: "text",
      hint: "PATH",
      summary: "Configuration file in YAML; otherwise the usual places are looked at",
    },
  },
  run: async ({ flags }, { reader }): Promise<ExitCode> => {
    const { mnemonic: words, passkey } = await readSecrets(flags, reader);
    const { initAccount } = await import("../../src/engine/account/account-init.ts");
    const result = await initAccount({
      mnemonic: words,
      passkey,
      index: flags.index,
      forceNew: flags.new,
      newDevice: flags["new-device"],
      dataDir: flags["data-dir"],
      configPath: flags.config,
    });
    if ("accounts" in result) say("There is an account here already; --new makes another one.");
    const { mnemonic, ...facts } = { mnemonic: undefined, ...result };
    if (mnemonic !== undefined) say(`${PHRASE_WARNING}\n\n  ${mnemonic}\n`);
    await writeOut(prettyJson(facts));
    return EXIT.ok;
  },
});
