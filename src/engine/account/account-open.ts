import type { AccountId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { machineId } from "../../crypto/machine-id.ts";
import { rebindWallet, type Wallet } from "../../crypto/wallet.ts";
import { encodeWallet, openWallet, readWalletHeader } from "../../crypto/wallet-envelope.ts";
import { readWalletFile, writeWalletFile } from "../../crypto/wallet-file.ts";
import { svcError } from "../../protocol/errors.ts";
import { StartRefusal } from "../start-refusal.ts";
import { type AccountLock, lockAccount } from "./account-lock.ts";
import type { AccountPaths } from "./account-paths.ts";

/** An account that this process has locked and whose wallet is open. */
export interface OpenAccount {
  readonly wallet: Wallet;
  readonly lock: AccountLock;
}

export interface OpenOptions {
  readonly paths: AccountPaths;
  /** The id the wallet must have, where one was asked for. */
  readonly expected: AccountId | undefined;
  readonly passkey: string | undefined;
  readonly log: Log;
}

/**
 * Locks an account and opens its wallet; a wallet that comes from another machine gets a device key of its own. Throws
 * auth.account_in_use, auth.passkey_required, auth.passkey_wrong; StartRefusal when the wallet is damaged or not the
 * expected one.
 */
export async function openAccount(options: OpenOptions): Promise<OpenAccount> {
  const { paths, expected, log } = options;
  const text = await readWalletFile(paths.walletPath);
  if (text === undefined) throw svcError("auth.account_not_found", { accountId: expected });
  const accountId = headerOf(paths.walletPath, text);
  if (expected !== undefined && accountId !== expected) {
    throw new StartRefusal(
      `Account ${expected} was asked for, but the wallet ${paths.walletPath} is that of ${accountId}`,
    );
  }
  const lock = lockAccount(paths.accountDir, accountId);
  try {
    return { wallet: await unlock(options, text), lock };
  } catch (error) {
    lock.release();
    throw error;
  }

  async function unlock({ passkey }: OpenOptions, walletText: string): Promise<Wallet> {
    const opened = await openWallet(walletText, passkey);
    const { wallet, rebound } = rebindWallet(opened, await machineId());
    if (!rebound) return wallet;
    await writeWalletFile(
      paths.walletPath,
      await encodeWallet(wallet, readWalletHeader(walletText).encrypted ? passkey : undefined),
    );
    log.warn("this wallet was made on another machine; this device now has a peer id of its own", {
      accountId,
      peerId: wallet.peerId,
      previousPeerId: opened.peerId,
    });
    return wallet;
  }
}

function headerOf(walletPath: string, text: string): AccountId {
  try {
    return readWalletHeader(text).accountId;
  } catch (error) {
    throw new StartRefusal(`${walletPath}: ${(error as Error).message}`);
  }
}
