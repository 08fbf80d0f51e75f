import { equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import { sharedSecret } from "../../crypto/box.ts";
import { deriveKey } from "../../crypto/derive.ts";

/** The read key of a derived space: nothing is stored, every device of the account computes it. */
export function derivedReadKey(account: Account, name: string): Uint8Array {
  return deriveAccountSecret(account.seed, `derived-space/${name}`);
}

/** What the two accounts of a one-to-one space derive from: undefined when the account is none of them. */
export function oneToOneSecret(account: Account, pair: readonly [Uint8Array, Uint8Array]): Uint8Array | undefined {
  const [low, high] = pair;
  if (equalBytes(low, account.signer.publicKey)) return sharedSecret(account.seed, high);
  return equalBytes(high, account.signer.publicKey) ? sharedSecret(account.seed, low) : undefined;
}

/** The read key of a one-to-one space: stored nowhere, and the same for ever. */
export function oneToOneReadKey(secret: Uint8Array, spaceId: SpaceId): Uint8Array {
  return deriveKey(secret, "one-to-one-read-key", spaceId);
}

/** The secret of an epoch's place on the network, by which it is found and read there: whoever holds the read key has it. */
export function transportSecretOf(spaceId: SpaceId, readKey: Uint8Array): Uint8Array {
  return deriveKey(readKey, "transport", spaceId);
}

/** The key by which two who hold a read key recognise each other on the LAN. Former members have none of a new epoch. */
export function linkKeyOf(spaceId: SpaceId, readKey: Uint8Array): Uint8Array {
  return deriveKey(readKey, "link", spaceId);
}

/** The same between a space's members and whoever was given the secret of this invite or guest key. */
export function inviteLinkKeyOf(spaceId: SpaceId, inviteKey: Uint8Array): Uint8Array {
  return deriveKey(inviteKey, "link-invite", spaceId);
}

/** The same between two accounts of a space: whoever missed a change of keys, or was just added, is recognised by it. */
export function pairLinkKeyOf(spaceId: SpaceId, account: Account, other: Uint8Array): Uint8Array {
  return deriveKey(sharedSecret(account.seed, other), "link-pair", spaceId);
}

/** By which an account is recognised by those who have an inbox message for it: whoever knows its id computes this. */
export function inboxLinkKeyOf(account: Uint8Array): Uint8Array {
  return deriveKey(account, "link-inbox");
}
