import type { PeerId } from "../../../src/base/ids.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { DEFAULT_ACCOUNT_INDEX, deriveAccountSecret, deriveAccountSeed } from "../../../src/crypto/account-keys.ts";
import { entropyToMnemonic, generateEntropy } from "../../../src/crypto/mnemonic.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { createNetworkKey, type NetworkKey } from "../../../src/sync/network/nkey.ts";

/** An account whose keys the test has too: a server is given its phrase, and the operator its network key. */
export interface KnownAccount extends Account {
  readonly mnemonic: string;
  readonly networkKey: NetworkKey;
}

export async function knownAccount(): Promise<KnownAccount> {
  const entropy = generateEntropy();
  const seed = await deriveAccountSeed(entropy, DEFAULT_ACCOUNT_INDEX);
  const signer = createSigner(seed);
  return {
    mnemonic: await entropyToMnemonic(entropy),
    seed,
    signer,
    id: accountIdOf(signer.publicKey),
    peerId: "test" as PeerId,
    networkKey: createNetworkKey(deriveAccountSecret(seed, "network")),
  };
}
