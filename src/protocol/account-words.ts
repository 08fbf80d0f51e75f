/** Wordings for faults of accounts and of the wallets that hold them; they belong to the one table of `refusals.ts`. */
export const ACCOUNT_WORDS = {
  // What is asked of one
  "index.range": ({ most }: { most: number }) => `an integer from 0 to ${most}`,
  "passkey.empty": "must not be empty; leave it out for a wallet without one",
  "auth.one_way": "does not go with mnemonic: select a wallet or restore one",
  "auth.index_alone": "goes with mnemonic only",
  "auth.no_account_made": "goes with no account to be made",
  "auth.new_device":
    "--new-device gives the account that is here fresh device keys: it goes with neither a phrase nor --new",

  // A wallet file
  "account.in_use": ({ accountId, pid }: { accountId: string; pid?: number }) =>
    `Another process${pid === undefined ? "" : ` (process ${pid})`} serves account ${accountId}; stop it, or use another account`,
  "wallet.unreadable": "The wallet in this account's directory cannot be read; move it away, then restore the account",
  "wallet.payload_object": "its payload is not an object",
  "wallet.index": "index is not an integer",
  "wallet.other_account": "accountId is not that of its account key",
  "wallet.other_device": "peerId is not that of its device key",
  "wallet.payload_base64": "its payload is not base64",
  "wallet.object": "it is not a JSON object",
  "wallet.version": "version is not known",
  "wallet.account_id": "accountId is not an account id",
  "wallet.peer_id": "peerId is not a peer id",
  "wallet.machine": "machine is not a text",
  "wallet.no_payload": "payload is absent",
  "wallet.checksum": "its checksum does not agree",
  "wallet.kdf_name": "kdf.name is not argon2id",
  "wallet.kdf_number": "kdf has a parameter that is not a number",
  "wallet.json": "it is not JSON",
  "wallet.too_long": ({ limitChars }: { limitChars: number }) => `it is longer than ${limitChars} characters`,
  "wallet.kind": ({ kind }: { kind: string }) => `kind is not "${kind}"`,
  "wallet.salt": ({ bytes }: { bytes: number }) => `kdf.salt is not base64 of ${bytes} bytes`,
  "wallet.secret": ({ field, bytes }: { field: string; bytes: number }) => `${field} is not ${bytes} bytes of hex`,
  "wallet.newer": ({ version, known }: { version: number; known: number }) =>
    `The wallet file is of version ${version}, this program knows version ${known}: use a newer one`,
  "wallet.kdf_cost": ({ part, least, most }: { part: string; least: number; most: number }) =>
    `kdf.${part} must be an integer from ${least} to ${most}`,
} as const;
