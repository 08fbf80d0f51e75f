import type { AccountId, PeerId } from "../../base/ids.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { machineId } from "../../crypto/machine-id.ts";
import { createWallet, mnemonicOf, renewDevice, type Wallet } from "../../crypto/wallet.ts";
import { encodeWallet, readWalletHeader } from "../../crypto/wallet-envelope.ts";
import { readWalletFile, writeWalletFile } from "../../crypto/wallet-file.ts";
import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { type Config, type ConfigSources, loadConfig } from "../config/config.ts";
import { prepareDataRoot } from "../data-root.ts";
import { StartRefusal } from "../start-refusal.ts";
import { createAccount } from "./account-create.ts";
import { type AccountListItem, checkAuthRequest } from "./account-host.ts";
import { openAccount } from "./account-open.ts";
import { findLocalWallet, listLocalWallets, pathsOf, readHeader, resolvePaths } from "./account-paths.ts";

export interface InitOptions {
  /** Restores the account of these words; without them one is generated. */
  readonly mnemonic?: string | undefined;
  readonly index?: number | undefined;
  /** Give the account that is here fresh device keys, and keep everything else. */
  readonly newDevice?: boolean | undefined;
  /** Make another account even if there is one. */
  readonly forceNew?: boolean | undefined;
  readonly dataDir?: string | undefined;
  readonly configPath?: string | undefined;
  /** Encrypts the wallet; `SVC_WALLET_PASSKEY` otherwise. */
  readonly passkey?: string | undefined;
  readonly env?: ConfigSources["env"];
  readonly log?: Log;
}

export type InitResult =
  | {
      /** Whether a wallet file was written. */
      created: boolean;
      accountId: AccountId;
      peerId: PeerId;
      dataDir: string;
      accountDir: string;
      /** The words of a generated account: shown once, by the caller. */
      mnemonic?: string;
    }
  /** There are accounts and none was asked for, so nothing was done. */
  | { created: false; dataDir: string; accounts: AccountListItem[] };

/**
 * `svc init`: makes the data root and an account's wallet in `<root>/<id>/`, without a server. Throws auth.bad_mnemonic,
 * auth.mnemonic_mismatch, request.invalid_field, StartRefusal.
 */
export async function initAccount(options: InitOptions): Promise<InitResult> {
  const { mnemonic, index, forceNew, log = silentLog } = options;
  checkAuthRequest({ ...(mnemonic === undefined ? {} : { mnemonic }), ...(index === undefined ? {} : { index }) });
  const config = await loadConfig({
    flags: { config: options.configPath, "data-dir": options.dataDir },
    passkey: options.passkey,
    ...(options.env ? { env: options.env } : {}),
  });
  prepareDataRoot(config.dataDir);
  if (options.newDevice) return newDevice(options, config, log);
  if (mnemonic === undefined && !forceNew) {
    const wallets = await listLocalWallets(config.dataDir, log);
    if (wallets.length > 0) {
      const accounts = wallets.map(
        ({ header, flat }): AccountListItem => ({ id: header.accountId, ...(flat ? { default: true } : {}) }),
      );
      return { created: false, dataDir: config.dataDir, accounts };
    }
  }
  const wallet = await createWallet({
    ...(mnemonic === undefined ? {} : { mnemonic }),
    ...(index === undefined ? {} : { index }),
    machineId: await machineId(),
  });
  const result = await putWallet(wallet, config);
  return mnemonic === undefined ? { ...result, mnemonic: await mnemonicOf(wallet) } : result;
}

/**
 * Gives an account of the data root fresh device keys: its spaces continue under new writers when they are next opened. It takes
 * the only account, or the one that the configuration names. It refuses while a server has the account open.
 */
async function newDevice({ mnemonic, forceNew }: InitOptions, config: Config, log: Log): Promise<InitResult> {
  if (mnemonic !== undefined || forceNew)
    throw refusedAs("request.invalid_field", { field: "newDevice" }, refusal("auth.new_device"), {
      reason: refusal("auth.no_account_made"),
    });
  const resolved = await resolvePaths(config);
  if (!resolved)
    throw new StartRefusal(
      `Which account of ${config.dataDir} gets a device key of its own is not known: there is none, or several; name it by the setting \`account\` (SVC_ACCOUNT)`,
    );
  const { paths, expected } = resolved;
  const { wallet, lock } = await openAccount({ paths, expected, passkey: config.passkey, log });
  try {
    const renewed = renewDevice(wallet, await machineId());
    const text = await readWalletFile(paths.walletPath);
    const isEncrypted = text !== undefined && readWalletHeader(text).encrypted;
    await writeWalletFile(paths.walletPath, await encodeWallet(renewed, isEncrypted ? config.passkey : undefined));
    const { accountId, peerId } = renewed;
    return { created: false, accountId, peerId, dataDir: config.dataDir, accountDir: paths.accountDir };
  } finally {
    lock.release();
  }
}

async function putWallet(wallet: Wallet, config: Config): Promise<InitResult> {
  const { accountId } = wallet;
  const { dataDir } = config;
  const existing = await findLocalWallet(dataDir, accountId);
  const made = existing ? undefined : await createAccount(dataDir, wallet, config.passkey);
  if (made) return { created: true, accountId, peerId: wallet.peerId, dataDir, accountDir: made.paths.accountDir };
  // The wallet that exists (or that another process has just written) keeps its device key.
  const paths = existing ?? pathsOf(dataDir, accountId);
  const header = await readHeader(paths.walletPath);
  return { created: false, accountId, peerId: header?.peerId ?? wallet.peerId, dataDir, accountDir: paths.accountDir };
}
