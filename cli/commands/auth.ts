import { command, group } from "./command.ts";
import { PHRASE_WARNING, readSecrets, SECRET_FLAGS } from "./secret-input.ts";

export const auth = group("The account the server runs", {
  login: command({
    summary: "Open an account in a running server: a new one, one restored from its phrase, or one of its wallets",
    route: "POST /v1/auth",
    flags: {
      ...SECRET_FLAGS,
      index: { kind: "integer", summary: "Restore: derivation index (default 1)", field: "index" },
      account: { kind: "text", hint: "ID", summary: "Select: an account whose wallet is there", field: "accountId" },
    },
    body: ({ flags }, { reader }) => readSecrets(flags, reader),
    // The phrase itself is part of the answer, on stdout.
    remark: ({ accountId, created, mnemonic }) => {
      if (created !== true) return undefined;
      const made = `A new wallet was made on this machine, for the account ${String(accountId)}.`;
      return mnemonic === undefined ? made : `${made}\n${PHRASE_WARNING} it is the member "mnemonic" of the answer.`;
    },
    examples: ["auth login", "auth login --mnemonic-stdin < words.txt", "auth login --account A5x…"],
  }),
  status: command({ summary: "Show whether an account is open, and the wallets there are", route: "GET /v1/auth" }),
});
