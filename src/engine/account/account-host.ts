import type { Clock } from "../../base/clock.ts";
import type { AccountId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { machineId } from "../../crypto/machine-id.ts";
import { createWallet, mnemonicOf, type Wallet } from "../../crypto/wallet.ts";
import { refusedPart, svcError } from "../../protocol/errors.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { BootEngine } from "../boot/boot-engine.ts";
import type { Engine } from "../boot/engine.ts";
import type { Config } from "../config/config.ts";
import { createAccount } from "./account-create.ts";
import { type AccountLock, lockAccount } from "./account-lock.ts";
import { openAccount } from "./account-open.ts";
import { type AccountPaths, findLocalWallet, isAccountId, listLocalWallets, resolvePaths } from "./account-paths.ts";

/** A wallet found in the data root. `default` only on the flat root wallet. */
export interface AccountListItem {
  id: AccountId;
  default?: true;
}

/** Body of `POST /v1/auth`, its shape already checked. */
export interface AuthRequest {
  mnemonic?: string;
  index?: number;
  accountId?: string;
  passkey?: string;
}

interface AuthResult {
  accountId: AccountId;
  /** Whether a wallet file was written. */
  created: boolean;
  /** Returned once, only when the account was generated. */
  mnemonic?: string;
}

/** Holds the one account a server runs: nothing at first (unauthorized), then a booted engine until the end. */
export interface AccountHost {
  /** The booted engine; undefined while unauthorized. */
  readonly engine: Engine | undefined;
  /** The wallets in the data root. */
  listAccounts(): Promise<AccountListItem[]>;
  /**
   * `POST /v1/auth`: generates, restores or selects an account and boots its engine in place. Throws
   * auth.already_authorized, auth.bad_mnemonic, auth.mnemonic_mismatch, auth.account_not_found, auth.account_in_use,
   * auth.passkey_required, auth.passkey_wrong, request.invalid_field.
   */
  authorize(request: AuthRequest): Promise<AuthResult>;
}

/** The account host as its server sees it. */
export interface ServerAccountHost extends AccountHost {
  /** Boots the account the configuration resolves to, if any (SRV-1). For the start of a server. */
  bootConfigured(): Promise<void>;
  /** Closes the engine and gives the account back, after any `authorize` that is under way. */
  close(): Promise<void>;
}

export interface AccountHostDeps {
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  readonly bootEngine: BootEngine;
}

interface Running {
  readonly engine: Engine;
  readonly lock: AccountLock;
}

export function createAccountHost(deps: AccountHostDeps): ServerAccountHost {
  const { config, log, clock, bootEngine } = deps;
  const { dataDir } = config;
  let running: Running | undefined;
  let closed = false;
  /** Operations that change `running` run one after the other. */
  const inTurn = createSemaphore(1);

  /** Boots the engine of a locked account; releases the lock on failure. */
  async function boot(accountDir: string, wallet: Wallet, lock: AccountLock, brandNew = false): Promise<void> {
    const accountLog = log.child({ account: wallet.accountId });
    try {
      const engine = await bootEngine({ accountDir, wallet, config, log: accountLog, clock, brandNew });
      running = { engine, lock };
    } catch (error) {
      lock.release();
      throw error;
    }
    accountLog.info("account open", { peerId: wallet.peerId });
  }

  async function openAndBoot(
    paths: AccountPaths,
    expected: AccountId | undefined,
    passkey: string | undefined,
  ): Promise<AccountId> {
    const { wallet, lock } = await openAccount({ paths, expected, passkey, log });
    await boot(paths.accountDir, wallet, lock);
    return wallet.accountId;
  }

  async function createAndBoot(wallet: Wallet, passkey: string | undefined, brandNew: boolean): Promise<void> {
    const account = await createAccount(dataDir, wallet, passkey);
    if (!account) throw svcError("auth.account_in_use", { accountId: wallet.accountId });
    try {
      const { accountDir } = account.paths;
      await boot(accountDir, wallet, lockAccount(accountDir, wallet.accountId), brandNew);
    } catch (error) {
      account.remove();
      throw error;
    }
  }

  /** When an account is selected, a wallet that belongs to another account, or cannot be read, counts as none. */
  async function findOrWarn(id: AccountId): Promise<AccountPaths | undefined> {
    try {
      return await findLocalWallet(dataDir, id);
    } catch (error) {
      log.warn("a wallet cannot be used", { account: id, err: error });
      return undefined;
    }
  }

  async function select(accountId: string, passkey: string | undefined): Promise<AuthResult> {
    const paths = isAccountId(accountId) ? await findOrWarn(accountId) : undefined;
    if (!paths) throw svcError("auth.account_not_found", { accountId });
    return { accountId: await openAndBoot(paths, accountId as AccountId, passkey), created: false };
  }

  async function restore(
    mnemonic: string,
    index: number | undefined,
    passkey: string | undefined,
  ): Promise<AuthResult> {
    const wallet = await createWallet({
      mnemonic,
      ...(index === undefined ? {} : { index }),
      machineId: await machineId(),
    });
    const { accountId } = wallet;
    const paths = await findLocalWallet(dataDir, accountId);
    if (paths) return { accountId: await openAndBoot(paths, accountId, passkey), created: false };
    await createAndBoot(wallet, passkey, false);
    return { accountId, created: true };
  }

  async function generate(passkey: string | undefined): Promise<AuthResult> {
    const wallet = await createWallet({ machineId: await machineId() });
    await createAndBoot(wallet, passkey, true);
    return { accountId: wallet.accountId, created: true, mnemonic: await mnemonicOf(wallet) };
  }

  return {
    get engine() {
      return running?.engine;
    },
    async listAccounts() {
      const wallets = await listLocalWallets(dataDir, log);
      const ids = new Map<AccountId, AccountListItem>();
      for (const { header, flat } of wallets) {
        if (!ids.has(header.accountId))
          ids.set(header.accountId, { id: header.accountId, ...(flat ? { default: true } : {}) });
      }
      return [...ids.values()];
    },
    async authorize(request) {
      checkAuthRequest(request);
      return inTurn(async () => {
        if (closed) throw svcError("server.unavailable");
        if (running) throw svcError("auth.already_authorized");
        const passkey = request.passkey ?? config.passkey;
        if (request.accountId !== undefined) return select(request.accountId, passkey);
        if (request.mnemonic !== undefined) return restore(request.mnemonic, request.index, passkey);
        return generate(passkey);
      });
    },
    bootConfigured: () =>
      inTurn(async () => {
        const resolved = await resolvePaths(config);
        if (resolved) await openAndBoot(resolved.paths, resolved.expected, config.passkey);
      }),
    close: () =>
      inTurn(async () => {
        closed = true;
        const { engine, lock } = running ?? {};
        running = undefined;
        try {
          await engine?.close();
        } finally {
          lock?.release();
        }
      }),
  };
}

/** The modes of `POST /v1/auth` exclude each other. Throws request.invalid_field. */
export function checkAuthRequest({ mnemonic, index, accountId }: AuthRequest): void {
  const refuse = (field: string, why: Refusal) => refusedPart("request.invalid_field", { field }, why, "plain");
  if (accountId !== undefined && mnemonic !== undefined) throw refuse("accountId", refusal("auth.one_way"));
  if (index !== undefined && mnemonic === undefined) throw refuse("index", refusal("auth.index_alone"));
}
