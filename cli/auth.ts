import type { JsonObject } from "../src/protocol/json.ts";
import { command, group } from "./command.ts";
import { UsageError } from "./exit.ts";

export const auth = group("The account the server runs", {
  login: command({
    summary: "Open an account in a running server: a new one, one restored from its phrase, or one of its wallets",
    route: "POST /v1/auth",
    flags: {
      mnemonic: {
        kind: "text",
        hint: "WORDS",
        summary: "Restore: the 12 words (other users may see arguments; prefer --mnemonic-stdin)",
        field: "mnemonic",
      },
      "mnemonic-stdin": { kind: "switch", summary: "Restore: read the 12 words from the first line of stdin" },
      index: { kind: "integer", summary: "Restore: derivation index (default 1)", field: "index" },
      account: { kind: "text", hint: "ID", summary: "Select: an account whose wallet is there", field: "accountId" },
      "passkey-stdin": {
        kind: "switch",
        summary: "Read the wallet's passkey from stdin, from the line after the words where both are read",
      },
    },
    body: async ({ flags }, { reader }) => {
      if (flags.mnemonic !== undefined && flags["mnemonic-stdin"]) {
        throw new UsageError("--mnemonic and --mnemonic-stdin both give the words; use one");
      }
      const wanted = [
        ...(flags["mnemonic-stdin"] ? [{ flag: "--mnemonic-stdin", field: "mnemonic" }] : []),
        ...(flags["passkey-stdin"] ? [{ flag: "--passkey-stdin", field: "passkey" }] : []),
      ];
      if (wanted.length === 0) return {};
      const lines = await reader.secretLines(wanted.map(({ flag }) => flag));
      return Object.fromEntries(wanted.map(({ field }, index) => [field, lines[index]])) as JsonObject;
    },
  }),
  status: command({ summary: "Show whether an account is open, and the wallets there are", route: "GET /v1/auth" }),
});
