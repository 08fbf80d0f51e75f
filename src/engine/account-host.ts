import type { AccountId } from "../base/ids.ts";
import type { Engine } from "./engine.ts";

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

export interface AuthResult {
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
  /** `POST /v1/auth`: generates, restores or selects an account and boots its engine in place. Fails as spec § 4. */
  authorize(request: AuthRequest): Promise<AuthResult>;
}
