import { UsageError } from "../io/exit.ts";
import type { InputReader } from "../io/input-reader.ts";
import type { FlagSpecs } from "../parse/flag-parser.ts";

/**
 * The phrase of an account to restore, and the passkey of its wallet. Other users of the machine cannot see them on
 * stdin.
 */
export const SECRET_FLAGS = {
  mnemonic: {
    kind: "text",
    hint: "WORDS",
    summary: "Restore: the 12 words (other users may see arguments; prefer --mnemonic-stdin)",
  },
  "mnemonic-stdin": { kind: "switch", summary: "Restore: read the 12 words from the first line of stdin" },
  "passkey-stdin": {
    kind: "switch",
    summary: "Read the wallet's passkey from stdin, from the line after the words where both are read",
  },
} as const satisfies FlagSpecs;

interface SecretFlagValues {
  mnemonic?: string;
  "mnemonic-stdin"?: boolean;
  "passkey-stdin"?: boolean;
}

/** Reads the secrets of {@link SECRET_FLAGS}; one that was not given is absent. */
export async function readSecrets(
  flags: SecretFlagValues,
  reader: InputReader,
): Promise<{ mnemonic?: string; passkey?: string }> {
  if (flags.mnemonic !== undefined && flags["mnemonic-stdin"]) {
    throw new UsageError("--mnemonic and --mnemonic-stdin both give the words; use one");
  }
  const wanted = (["mnemonic", "passkey"] as const).filter((secret) => flags[`${secret}-stdin`]);
  const lines = wanted.length === 0 ? [] : await reader.secretLines(wanted.map((secret) => `--${secret}-stdin`));
  const fromStdin: { mnemonic?: string; passkey?: string } = {};
  for (const [index, secret] of wanted.entries()) fromStdin[secret] = lines[index] as string;
  return { ...(flags.mnemonic === undefined ? {} : { mnemonic: flags.mnemonic }), ...fromStdin };
}

/** Precedes or accompanies the phrase of a new account, because nothing else can restore the account. */
export const PHRASE_WARNING = "Recovery phrase, shown only this once. Write it down:";
