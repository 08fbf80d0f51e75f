import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { AccountId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { readWalletHeader, type WalletHeader } from "../../crypto/wallet-envelope.ts";
import { readWalletFile } from "../../crypto/wallet-file.ts";
import { SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { Config } from "../config/config.ts";
import { StartRefusal } from "../start-refusal.ts";

const WALLET_NAME = "wallet.key";

/** Where an account lives: its wallet, and the directory with its data. */
export interface AccountPaths {
  readonly walletPath: string;
  readonly accountDir: string;
}

/** A wallet found in the data root. */
export interface LocalWallet extends AccountPaths {
  readonly header: WalletHeader;
  /** The wallet at the root itself (the flat layout). */
  readonly flat: boolean;
}

const flatPaths = (dataDir: string): AccountPaths => ({ accountDir: dataDir, walletPath: join(dataDir, WALLET_NAME) });

/** Returns where an account with its own directory lives; `id` must have been parsed, because it becomes a path. */
export function pathsOf(dataDir: string, id: AccountId): AccountPaths {
  const accountDir = join(dataDir, id);
  return { accountDir, walletPath: join(accountDir, WALLET_NAME) };
}

export function isAccountId(text: string): text is AccountId {
  return parseAccountId(text) !== undefined;
}

/** The wallets of a data root, the flat one first. What is damaged or in the wrong directory is left out, with a warning. */
export async function listLocalWallets(dataDir: string, log: Log): Promise<LocalWallet[]> {
  const wallets: LocalWallet[] = [];
  for (const id of [undefined, ...accountDirectories(dataDir)]) {
    const paths = id === undefined ? flatPaths(dataDir) : pathsOf(dataDir, id);
    try {
      const header = await readHeader(paths.walletPath);
      if (!header) continue;
      if (id === undefined || header.accountId === id) wallets.push({ ...paths, header, flat: id === undefined });
      else log.warn("a wallet lies in another account's directory", { path: paths.walletPath });
    } catch (error) {
      log.warn("a wallet cannot be read", { path: paths.walletPath, err: error });
    }
  }
  return wallets;
}

/**
 * The local wallet of an account: in its own directory, else the flat one if it is that account's. Throws
 * auth.mnemonic_mismatch when the account's directory holds a wallet that is not the account's or cannot be read.
 */
export async function findLocalWallet(dataDir: string, id: AccountId): Promise<AccountPaths | undefined> {
  const own = pathsOf(dataDir, id);
  const header = await readHeader(own.walletPath).catch((cause: unknown) => {
    throw new SvcError("auth.mnemonic_mismatch", { refusal: refusal("wallet.unreadable"), cause });
  });
  if (header) {
    if (header.accountId !== id) throw svcError("auth.mnemonic_mismatch");
    return own;
  }
  const flat = flatPaths(dataDir);
  const flatHeader = await readHeader(flat.walletPath).catch(() => undefined); // an unreadable file is not this account's wallet
  return flatHeader?.accountId === id ? flat : undefined;
}

/**
 * Returns the account that a server boots, by SRV-1: (a) the configured wallet, (b) the selected account, (c) the wallet at the
 * root or the only account directory; `undefined` when there is no account. Refuses (StartRefusal) when the account that was
 * asked for does not exist.
 */
export async function resolvePaths(
  config: Config,
): Promise<{ paths: AccountPaths; expected: AccountId | undefined } | undefined> {
  const { dataDir, account } = config;
  const walletPath = config["auth.walletPath"];
  if (walletPath !== undefined) {
    if (!exists(walletPath))
      throw new StartRefusal(
        `auth.walletPath names ${walletPath}, which does not exist; svc run never creates a wallet`,
      );
    return { paths: { walletPath, accountDir: dataDir }, expected: account };
  }
  if (account !== undefined) return { paths: selectPaths(dataDir, account), expected: account };
  const flat = flatPaths(dataDir);
  if (exists(flat.walletPath)) return { paths: flat, expected: undefined };
  const ids = accountDirectories(dataDir);
  const sole = ids.length === 1 ? ids[0] : undefined;
  return sole === undefined ? undefined : { paths: pathsOf(dataDir, sole), expected: sole };
}

function selectPaths(dataDir: string, account: AccountId): AccountPaths {
  const own = pathsOf(dataDir, account);
  if (exists(own.walletPath)) return own;
  const flat = flatPaths(dataDir);
  if (exists(flat.walletPath)) return flat;
  throw new StartRefusal(`No wallet of account ${account} is in ${dataDir}; svc init restores it from its 12 words`);
}

/** Ids of the directories that are accounts: named by an id, with a wallet inside. */
function accountDirectories(dataDir: string): AccountId[] {
  const names = exists(dataDir) ? readdirSync(dataDir).sort() : [];
  return names.filter(isAccountId).filter((id) => exists(pathsOf(dataDir, id).walletPath));
}

/** Returns what the wallet at a path says unencrypted; undefined when there is none. Throws for a damaged one. */
export async function readHeader(walletPath: string): Promise<WalletHeader | undefined> {
  const text = await readWalletFile(walletPath);
  return text === undefined ? undefined : readWalletHeader(text);
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
