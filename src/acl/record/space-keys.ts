import { equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import { sharedSecret } from "../../crypto/box.ts";
import { deriveKey } from "../../crypto/derive.ts";

/** The read key of a derived space: it is not stored, because every device of the account computes it. */
export function derivedReadKey(account: Account, name: string): Uint8Array {
  return deriveAccountSecret(account.seed, `derived-space/${name}`);
}

/**
 * The secret from which the two accounts of a one-to-one space derive its keys; undefined when the account is neither.
 */
export function oneToOneSecret(account: Account, pair: readonly [Uint8Array, Uint8Array]): Uint8Array | undefined {
  const [low, high] = pair;
  if (equalBytes(low, account.signer.publicKey)) return sharedSecret(account.seed, high);
  return equalBytes(high, account.signer.publicKey) ? sharedSecret(account.seed, low) : undefined;
}

/** The read key of a one-to-one space: it is not stored and never changes. */
export function oneToOneReadKey(secret: Uint8Array, spaceId: SpaceId): Uint8Array {
  return deriveKey(secret, "one-to-one-read-key", spaceId);
}

/**
 * The secret of an epoch's place on the network, needed to find and read it: everybody with the read key can derive it.
 */
export function transportSecretOf(spaceId: SpaceId, readKey: Uint8Array): Uint8Array {
  return deriveKey(readKey, "transport", spaceId);
}

/**
 * The key by which two holders of a read key recognise each other on the LAN. Former members have none for a new epoch.
 */
export function linkKeyOf(spaceId: SpaceId, readKey: Uint8Array): Uint8Array {
  return deriveKey(readKey, "link", spaceId);
}

/** The key by which a space's members and the holder of this invite's or guest key's secret recognise each other. */
export function inviteLinkKeyOf(spaceId: SpaceId, inviteKey: Uint8Array): Uint8Array {
  return deriveKey(inviteKey, "link-invite", spaceId);
}

/**
 * The key by which two accounts of a space recognise each other, also when one missed a change of keys or was just added. It comes
 * from the secret that they share.
 */
export function pairLinkKeyOf(spaceId: SpaceId, secret: Uint8Array): Uint8Array {
  return deriveKey(secret, "link-pair", spaceId);
}

/**
 * The key by which those with an inbox message for an account recognise it: everybody who knows its id can compute this.
 */
export function inboxLinkKeyOf(account: Uint8Array): Uint8Array {
  return deriveKey(account, "link-inbox");
}
