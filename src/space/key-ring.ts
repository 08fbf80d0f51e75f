import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import type { KeyRing } from "../change/ports.ts";
import { deriveAccountSecret } from "../crypto/account-keys.ts";
import { openWith } from "../crypto/box.ts";
import { keyIdOf, open } from "../crypto/seal.ts";
import type { Account } from "./account.ts";
import type { AclLog } from "./acl-log.ts";
import type { SpaceHeader } from "./space-header.ts";

/** Context of the sealed box that carries a read key: it opens for this space and purpose alone. */
export const readKeyContext = (spaceId: SpaceId): string => `svc/read-key/v1/${spaceId}`;

/** The read key of a derived space: nothing is stored, every device of the account computes it. */
export function derivedReadKey(account: Account, name: string): Uint8Array {
  return deriveAccountSecret(account.seed, `derived-space/${name}`);
}

/** The read keys this account can open from the ACL. Refreshed when records were added. */
export interface SpaceKeyRing extends KeyRing {
  refresh(): void;
}

export function createKeyRing(spaceId: SpaceId, header: SpaceHeader, acl: AclLog, account: Account): SpaceKeyRing {
  let keys = new Map<string, Uint8Array>();
  let current: { id: Uint8Array; key: Uint8Array } | undefined;

  /** A key counts only if it is the one that its id commits to. */
  const keep = (keyId: Uint8Array, key: Uint8Array | undefined): boolean => {
    if (!key || key.length !== 32 || !equalBytes(keyIdOf(key), keyId)) return false;
    keys.set(bytesToHex(keyId), key);
    return true;
  };

  const refresh = () => {
    keys = new Map();
    current = undefined;
    const { epochs } = acl.state;
    for (let i = epochs.length - 1; i >= 0; i--) {
      const { epoch } = epochs[i]!;
      const known = keys.has(bytesToHex(epoch.keyId));
      if (!known) {
        const box = epoch.sealed.find((sealed) => equalBytes(sealed.to, account.signer.publicKey))?.box;
        const key =
          header.kind === "derived" && i === 0
            ? derivedReadKey(account, header.name)
            : box && openWith(account.seed, box, readKeyContext(spaceId));
        keep(epoch.keyId, key);
      }
      const key = keys.get(bytesToHex(epoch.keyId));
      if (key && i === epochs.length - 1) current = { id: epoch.keyId, key };
      // Whoever holds an epoch's key can open the one before it.
      if (key && epoch.previous && i > 0) keep(epochs[i - 1]!.epoch.keyId, open(key, epoch.previous, epoch.keyId));
    }
  };
  refresh();

  return { refresh, current: () => current, byId: (id) => keys.get(bytesToHex(id)) };
}
