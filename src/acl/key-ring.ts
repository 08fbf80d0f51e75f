import { bytesToHex } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import type { KeyRing } from "../change/ports.ts";
import type { Account } from "../crypto/account.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { AclLog } from "./acl-log.ts";
import { ifKeyOf, isMetadataKeyOf, openEpochKey, openPreviousKey, openReadKey, sealReadKey } from "./epoch.ts";
import type { EpochOp } from "./op.ts";
import type { SpaceHeader } from "./space-header.ts";
import { derivedReadKey, oneToOneReadKey, oneToOneSecret, transportSecretOf } from "./space-keys.ts";
import type { EpochState } from "./state.ts";

/** The read keys this account can open from the ACL. Refreshed when records were added. */
export interface SpaceKeyRing extends KeyRing {
  /** Opens what can be opened by now. Answers whether there is a key that was not there before. */
  refresh(): boolean;
  /**
   * Stores what is known of these epochs' keys, sealed to the account: their branch of the chain lost, and what was
   * written under them must still open.
   */
  keep(epochs: readonly EpochState[]): void;
  /** The key of an epoch that need not be in the chain, if it was given to this account. */
  keyIn(epoch: EpochOp): Uint8Array | undefined;
  /** Of the present epoch's place on the network; undefined while its key is not open here. */
  transportSecret(): Uint8Array | undefined;
  /** Ids (hex) of epochs whose author did not give what it claims to: our box, the key before, or the metadata key. */
  broken(): readonly string[];
}

export function createKeyRing(
  spaceId: SpaceId,
  header: SpaceHeader,
  acl: Pick<AclLog, "state">,
  store: Pick<SpaceStore, "keptKeys">,
  account: Account,
): SpaceKeyRing {
  const keys = new Map<string, Uint8Array>();
  let broken = new Set<string>();
  /** Epochs that give what they claim to: none of them is looked into again with each record. */
  const sound = new WeakSet<EpochOp>();

  /** The key as it reaches us outside the chain, or sealed to us in it. */
  const openOwn = (entry: EpochState, index: number): Uint8Array | undefined => {
    if (index === 0 && header.kind === "derived") {
      const derived = ifKeyOf(derivedReadKey(account, header.name), entry.epoch.keyId);
      if (derived) return derived; // else it is another account's, who shared it with us
    }
    if (index === 0 && header.kind === "onetoone") {
      const secret = oneToOneSecret(account, header.pair);
      return secret && ifKeyOf(oneToOneReadKey(secret, spaceId), entry.epoch.keyId);
    }
    const { key, lies } = openEpochKey(spaceId, entry, account.seed);
    if (lies) broken.add(bytesToHex(entry.epoch.keyId));
    return key;
  };

  const refresh = (): boolean => {
    const before = keys.size;
    broken = new Set();
    const { epochs } = acl.state;
    // Newest first: whoever holds an epoch's key opens those before it with it.
    for (let i = epochs.length - 1; i >= 0; i--) {
      const { epoch } = epochs[i]!;
      const name = bytesToHex(epoch.keyId);
      const key = keys.get(name) ?? openOwn(epochs[i]!, i);
      if (!key || sound.has(epoch)) continue;
      keys.set(name, key);
      if (!isMetadataKeyOf(spaceId, key, epoch.metadataKey)) broken.add(name);
      for (const previous of epoch.previous) {
        const opened = openPreviousKey(key, epoch.keyId, previous);
        if (opened) keys.set(bytesToHex(previous.keyId), opened);
        else broken.add(name);
      }
      if (!broken.has(name)) sound.add(epoch);
    }
    return keys.size > before;
  };

  const current = (): { id: Uint8Array; key: Uint8Array } | undefined => {
    const epoch = acl.state.epochs.at(-1)?.epoch;
    const key = epoch && keys.get(bytesToHex(epoch.keyId));
    return key && { id: epoch.keyId, key };
  };

  for (const { id, box } of store.keptKeys.all()) {
    const opened = openReadKey(spaceId, account.seed, box, id);
    if (opened) keys.set(bytesToHex(id), opened);
  }
  refresh();

  return {
    refresh,
    keep(epochs) {
      for (const { epoch } of epochs) {
        const key = keys.get(bytesToHex(epoch.keyId));
        const [own] = key ? sealReadKey(spaceId, key, [account.signer.publicKey]) : [];
        if (own) store.keptKeys.put(epoch.keyId, own.box);
      }
    },
    current,
    byId: (id) => keys.get(bytesToHex(id)),
    keyIn: (epoch) =>
      keys.get(bytesToHex(epoch.keyId)) ?? openEpochKey(spaceId, { epoch, shared: [] }, account.seed).key,
    transportSecret() {
      const present = current();
      return present && transportSecretOf(spaceId, present.key);
    },
    broken: () => [...broken],
  };
}
