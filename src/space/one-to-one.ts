import { makeEpoch } from "../acl/record/epoch.ts";
import { encodeOneToOneHeader } from "../acl/record/space-header.ts";
import { oneToOneReadKey, oneToOneSecret } from "../acl/record/space-keys.ts";
import type { Account } from "../crypto/account.ts";
import { deriveKey } from "../crypto/derive.ts";
import { createSigner } from "../crypto/sign.ts";
import { makeGenesis, type SpaceGenesis } from "./genesis.ts";

/**
 * The space of two accounts. Every byte of it follows from the two accounts, so each side computes it alone. Its root is
 * signed by a key that only these two can derive; it needs no exchange, and no record ever follows it. Throws RangeError
 * for a key that is not admissible; the caller checks that the two are different accounts.
 */
export function oneToOneGenesis(account: Account, otherPublicKey: Uint8Array): SpaceGenesis {
  const { publicKey } = account.signer;
  const encoded = encodeOneToOneHeader(publicKey, otherPublicKey);
  const secret = oneToOneSecret(account, [publicKey, otherPublicKey])!;
  const signer = createSigner(deriveKey(secret, "one-to-one-root", encoded.spaceId));
  const epoch = makeEpoch(encoded.spaceId, oneToOneReadKey(secret, encoded.spaceId), [], []);
  return makeGenesis(encoded, signer, 0, epoch);
}
