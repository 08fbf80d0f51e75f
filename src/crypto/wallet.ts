import type { AccountId, PeerId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { svcError } from "../protocol/errors.ts";
import { accountIdOf } from "./account-id.ts";
import { checkAccountIndex, DEFAULT_ACCOUNT_INDEX, deriveAccountSeed } from "./account-keys.ts";
import { entropyToMnemonic, generateEntropy, mnemonicToEntropy } from "./mnemonic.ts";
import { peerIdOf } from "./peer-id.ts";
import { publicKeyOfSeed, SEED_BYTES } from "./private-key.ts";

/** All the secrets of an account on one device. */
export interface Wallet {
  /** 16 bytes: the twelve words. */
  readonly entropy: Uint8Array;
  /** Derivation index of the account. */
  readonly index: number;
  /**
   * 32 bytes: seed of the account's signing key. It follows from entropy and index; it is kept so that a boot need not
   * derive it.
   */
  readonly accountSeed: Uint8Array;
  readonly accountId: AccountId;
  /** 32 random bytes: seed of this device's key. Never derived, never copied to another machine. */
  readonly deviceSeed: Uint8Array;
  readonly peerId: PeerId;
  /** `machineId()` of the machine on which the device key was made. */
  readonly machineId: string;
}

/**
 * Creates a wallet from a phrase, or from fresh entropy without one; `mnemonicOf` returns the words. The device key is
 * new unless given. Throws `auth.bad_mnemonic` for a phrase that is not 12 valid words, `request.invalid_field` for an
 * index outside 0 … 2^31 − 1.
 */
export async function createWallet(options: {
  mnemonic?: string;
  index?: number;
  deviceSeed?: Uint8Array;
  machineId: string;
}): Promise<Wallet> {
  const index = options.index ?? DEFAULT_ACCOUNT_INDEX;
  checkAccountIndex(index);
  const entropy = options.mnemonic === undefined ? generateEntropy() : await mnemonicToEntropy(options.mnemonic);
  if (!entropy) throw svcError("auth.bad_mnemonic");
  const accountSeed = await deriveAccountSeed(entropy, index);
  return assembleWallet({
    entropy,
    index,
    accountSeed,
    deviceSeed: options.deviceSeed ?? randomBytes(SEED_BYTES),
    machineId: options.machineId,
  });
}

/** Completes a wallet with the ids that follow from its keys. */
export function assembleWallet(secrets: Omit<Wallet, "accountId" | "peerId">): Wallet {
  return {
    ...secrets,
    accountId: accountIdOf(publicKeyOfSeed(secrets.accountSeed)),
    peerId: peerIdOf(publicKeyOfSeed(secrets.deviceSeed)),
  };
}

/** The wallet's twelve words. */
export function mnemonicOf(wallet: Wallet): Promise<string> {
  return entropyToMnemonic(wallet.entropy);
}

/**
 * Returns the wallet as it may be used on this machine. A wallet from another machine gets a new device key (`rebound`),
 * because two machines with one peer id would speak for each other. The caller writes the wallet and tells the user.
 */
export function rebindWallet(wallet: Wallet, machineId: string): { wallet: Wallet; rebound: boolean } {
  if (wallet.machineId === machineId) return { wallet, rebound: false };
  return { wallet: renewDevice(wallet, machineId), rebound: true };
}

/** Returns the wallet with a new device key in any case, for a data root that is a copy of another. */
export function renewDevice(wallet: Wallet, machineId: string): Wallet {
  return assembleWallet({ ...wallet, deviceSeed: randomBytes(SEED_BYTES), machineId });
}
