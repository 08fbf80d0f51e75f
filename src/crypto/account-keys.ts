import { refusedPart } from "../protocol/errors.ts";
import { refusal } from "../protocol/refusals.ts";
import { deriveKey } from "./derive.ts";
import { entropyToMnemonic, mnemonicToSeed } from "./mnemonic.ts";
import { deriveSlip10 } from "./slip10.ts";

/** Derivation index of new accounts; index 0 restores accounts of the other scheme, along the same path. */
export const DEFAULT_ACCOUNT_INDEX = 1;
const MAX_ACCOUNT_INDEX = 2 ** 31 - 1;
/** SLIP-0044 coin type. */
const COIN_TYPE = 2046;

/** Names one of an account's own secrets; each is the same on every device of the account. */
export type AccountSecretLabel = "tech-space" | `derived-space/${string}` | "network" | "p2p" | "inbox" | "push";

/**
 * Derives the 32-byte Ed25519 seed of an account's signing key: BIP-39 seed of the entropy, then SLIP-0010 at
 * m/44'/2046'/index'/0'. Costs a few milliseconds (PBKDF2). Refuses an index outside 0 … 2^31 − 1.
 */
export async function deriveAccountSeed(entropy: Uint8Array, index: number): Promise<Uint8Array> {
  checkAccountIndex(index);
  const seed = await mnemonicToSeed(await entropyToMnemonic(entropy));
  return deriveSlip10(seed, [44, COIN_TYPE, index, 0]).key;
}

/** Throws `request.invalid_field` unless the index is an integer from 0 to 2^31 − 1. */
export function checkAccountIndex(index: number): void {
  if (!Number.isInteger(index) || index < 0 || index > MAX_ACCOUNT_INDEX) {
    throw refusedPart(
      "request.invalid_field",
      { field: "index" },
      refusal("index.range", { most: MAX_ACCOUNT_INDEX }),
      "must",
    );
  }
}

/**
 * Derives a 32-byte secret of the account for one purpose, by HKDF-SHA256 from its signing seed: a read key, or the
 * Ed25519 seed of a separate protocol, so that the account key never signs what a stranger chose.
 */
export function deriveAccountSecret(accountSeed: Uint8Array, label: AccountSecretLabel): Uint8Array {
  return deriveKey(accountSeed, "account-secret", label);
}
