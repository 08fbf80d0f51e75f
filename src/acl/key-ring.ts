import { bytesToHex } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import type { KeyRing } from "../change/codec/ports.ts";
import type { Account } from "../crypto/account.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { AclLog } from "./log/acl-log.ts";
import { ifKeyOf, isMetadataKeyOf, openEpochKey, openPreviousKey, openReadKey, sealReadKey } from "./record/epoch.ts";
import type { EpochOp } from "./record/op.ts";
import type { SpaceHeader } from "./record/space-header.ts";
import { derivedReadKey, oneToOneReadKey, oneToOneSecret, transportSecretOf } from "./record/space-keys.ts";
import type { EpochState } from "./reducer/state.ts";

/** The read keys this account can open from the ACL. Refreshed when records were added. */
export interface SpaceKeyRing extends KeyRing {
  /** Opens every key that can be opened by now. Returns whether it found a new one. */
  refresh(): boolean;
  /** Opens the keys of epochs that are about to be in the log, one per step, so that `refresh` has little left to do. */
  lookAhead(epochs: readonly EpochState[]): Generator<void, void>;
  /**
   * Stores the known keys of these epochs, sealed to the account: their branch of the log lost, and what was written
   * under them must still open.
   */
  keep(epochs: readonly EpochState[]): void;
  /** The key of an epoch that need not be in the log, if it was given to this account. */
  keyIn(epoch: EpochOp): Uint8Array | undefined;
  /** The transport secret of the present epoch; undefined while its key is not open here. */
  transportSecret(): Uint8Array | undefined;
  /** Ids (hex) of epochs whose author did not give what it claims: our box, the previous key, or the metadata key. */
  broken(): readonly string[];
}

/** What the key of an epoch opens. */
interface InsideEpoch {
  readonly hasItsMetadataKey: boolean;
  /** The previous keys, in the order in which the epoch names them; undefined for one that is false. */
  readonly previous: readonly (Uint8Array | undefined)[];
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
  /** Epochs that give what they claim; they are not checked again with each record. */
  const sound = new WeakSet<EpochOp>();
  /** What was found in epochs that are not known to be in the log yet. */
  const foundAhead = new WeakMap<EpochOp, InsideEpoch>();
  const ownAhead = new WeakMap<EpochOp, Uint8Array>();

  /** The key as it reaches us outside the log, or sealed to us in the log. */
  const openOwn = (entry: EpochState, index: number): Uint8Array | undefined => {
    if (index === 0 && header.kind === "derived") {
      const derived = ifKeyOf(derivedReadKey(account, header.name), entry.epoch.keyId);
      if (derived) return derived; // otherwise the space is another account's, who shared the key with us
    }
    if (index === 0 && header.kind === "onetoone") {
      const secret = oneToOneSecret(account, header.pair);
      return secret && ifKeyOf(oneToOneReadKey(secret, spaceId), entry.epoch.keyId);
    }
    const { key, lies } = openEpochKey(spaceId, entry, account.seed);
    if (lies) broken.add(bytesToHex(entry.epoch.keyId));
    return key;
  };

  const insideOf = (epoch: EpochOp, key: Uint8Array): InsideEpoch => ({
    hasItsMetadataKey: isMetadataKeyOf(spaceId, key, epoch.metadataKey),
    previous: epoch.previous.map((previous) => openPreviousKey(key, epoch.keyId, previous)),
  });

  const refresh = (): boolean => {
    const before = keys.size;
    broken = new Set();
    const { epochs } = acl.state;
    // Newest first: an epoch's key opens the keys of the epochs before it.
    for (let i = epochs.length - 1; i >= 0; i--) {
      const { epoch } = epochs[i]!;
      const name = bytesToHex(epoch.keyId);
      const key = keys.get(name) ?? ownAhead.get(epoch) ?? openOwn(epochs[i]!, i);
      if (!key || sound.has(epoch)) continue;
      keys.set(name, key);
      const inside = foundAhead.get(epoch) ?? insideOf(epoch, key);
      if (!inside.hasItsMetadataKey) broken.add(name);
      for (const [at, { keyId }] of epoch.previous.entries()) {
        const opened = inside.previous[at];
        if (opened) keys.set(bytesToHex(keyId), opened);
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

  function* lookAhead(epochs: readonly EpochState[]): Generator<void, void> {
    const given = new Map<string, Uint8Array>();
    for (let i = epochs.length - 1; i >= 0; i--) {
      const entry = epochs[i]!;
      const { epoch } = entry;
      if (sound.has(epoch)) continue;
      yield;
      const name = bytesToHex(epoch.keyId);
      const known = keys.get(name) ?? given.get(name);
      const key = known ?? openEpochKey(spaceId, entry, account.seed).key;
      if (!key) continue;
      if (!known) ownAhead.set(epoch, key);
      const inside = insideOf(epoch, key);
      foundAhead.set(epoch, inside);
      for (const [at, { keyId }] of epoch.previous.entries())
        if (inside.previous[at]) given.set(bytesToHex(keyId), inside.previous[at]);
    }
  }

  return {
    refresh,
    lookAhead,
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
