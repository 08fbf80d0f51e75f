import type { AccountId, PeerId } from "../../base/ids.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { machineId } from "../../crypto/machine-id.ts";
import { createWallet, mnemonicOf, type Wallet } from "../../crypto/wallet.ts";
import { type Config, type ConfigSources, loadConfig } from "../config/config.ts";
import { prepareDataRoot } from "../data-root.ts";
import { createAccount } from "./account-create.ts";
import { type AccountListItem, checkAuthRequest } from "./account-host.ts";
import { findLocalWallet, listLocalWallets, placeOf, readHeader } from "./account-places.ts";

export interface InitOptions {
  /** Restores the account of these words; without them one is generated. */
  readonly mnemonic?: string | undefined;
  readonly index?: number | undefined;
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
  /** There are accounts and none was asked for: nothing was done. */
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
  const result = await placeWallet(wallet, config);
  return mnemonic === undefined ? { ...result, mnemonic: await mnemonicOf(wallet) } : result;
}

async function placeWallet(wallet: Wallet, config: Config): Promise<InitResult> {
  const { accountId } = wallet;
  const { dataDir } = config;
  const existing = await findLocalWallet(dataDir, accountId);
  const made = existing ? undefined : await createAccount(dataDir, wallet, config.passkey);
  if (made) return { created: true, accountId, peerId: wallet.peerId, dataDir, accountDir: made.place.accountDir };
  // The wallet that is there (or that another process has just written) keeps its device key.
  const place = existing ?? placeOf(dataDir, accountId);
  const header = await readHeader(place.walletPath);
  return { created: false, accountId, peerId: header?.peerId ?? wallet.peerId, dataDir, accountDir: place.accountDir };
}
