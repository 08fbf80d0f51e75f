import { rmSync } from "node:fs";
import { makeDurableDirectory } from "../../base/durable-directory.ts";
import type { Wallet } from "../../crypto/wallet.ts";
import { encodeWallet } from "../../crypto/wallet-envelope.ts";
import { createWalletFile } from "../../crypto/wallet-file.ts";
import { type AccountPaths, pathsOf } from "./account-paths.ts";

/** A new account's directory with its wallet. */
export interface CreatedAccount {
  readonly paths: AccountPaths;
  /** Removes what was created, when the account cannot be used after all. */
  remove(): void;
}

/**
 * Makes an account's directory (0700) and writes its wallet, durably. `undefined`, and nothing is touched, when there is
 * a wallet already. Throws request.invalid_field for an empty passkey.
 */
export async function createAccount(
  dataDir: string,
  wallet: Wallet,
  passkey: string | undefined,
): Promise<CreatedAccount | undefined> {
  const text = await encodeWallet(wallet, passkey);
  const paths = pathsOf(dataDir, wallet.accountId);
  const made = makeDurableDirectory(paths.accountDir);
  const remove = () => {
    // A directory that was there before may hold the account's data from another time.
    if (made) rmSync(paths.accountDir, { recursive: true, force: true });
    else rmSync(paths.walletPath, { force: true });
  };
  try {
    return (await createWalletFile(paths.walletPath, text)) ? { paths, remove } : undefined;
  } catch (error) {
    // In a directory that existed before, the wallet may belong to another process, so only what was surely created here is
    // removed.
    if (made) remove();
    throw error;
  }
}
