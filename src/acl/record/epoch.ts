import { bytesToUtf8, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import { BOX_OVERHEAD_BYTES, openWith, sealTo } from "../../crypto/box.ts";
import { deriveKey } from "../../crypto/derive.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { keyIdOf, open, seal } from "../../crypto/seal.ts";
import { refusedAs, type SvcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { ACL_BOUNDS, type EpochOp, type SealedKey, type SealedMetadata } from "./op.ts";

export const READ_KEY_BYTES = 32;

/** Context of the sealed box that carries a read key: the box opens only for this space and purpose. */
const readKeyContext = (spaceId: SpaceId): string => `svc/read-key/v1/${spaceId}`;
const metadataContext = (spaceId: SpaceId, account: AccountId): string => `svc/acl-metadata/v1/${spaceId}/${account}`;

/** Seals a read key to each account that is to hold it. */
export function sealReadKey(spaceId: SpaceId, key: Uint8Array, recipients: readonly Uint8Array[]): SealedKey[] {
  return recipients.map((to) => ({ to, box: sealTo(to, key, readKeyContext(spaceId)) }));
}

/** Opens the box with a seed and returns the read key, if it is the one that the key id commits to. */
export function openReadKey(
  spaceId: SpaceId,
  seed: Uint8Array,
  box: Uint8Array,
  keyId: Uint8Array,
): Uint8Array | undefined {
  return ifKeyOf(openWith(seed, box, readKeyContext(spaceId)), keyId);
}

/**
 * Opens an epoch's key with a seed: of a member's account, an invite or a guest key. `lies`: a box is addressed to that
 * seed but does not hold the epoch's key.
 */
export function openEpochKey(
  spaceId: SpaceId,
  entry: { epoch: EpochOp; shared: readonly SealedKey[] },
  seed: Uint8Array,
): { key: Uint8Array | undefined; lies: boolean } {
  const recipient = publicKeyOfSeed(seed);
  const boxes = [...entry.epoch.sealed, ...entry.shared].filter(({ to }) => equalBytes(to, recipient));
  for (const { box } of boxes) {
    const key = ifKeyOf(openWith(seed, box, readKeyContext(spaceId)), entry.epoch.keyId);
    if (key) return { key, lies: false };
  }
  return { key: undefined, lies: boxes.length > 0 };
}

/**
 * Makes a new epoch under `key`: it is sealed to each recipient, and the previous keys are sealed under it, the current
 * one first.
 */
export function makeEpoch(
  spaceId: SpaceId,
  key: Uint8Array,
  recipients: readonly Uint8Array[],
  previous: readonly { id: Uint8Array; key: Uint8Array }[],
): EpochOp {
  const keyId = keyIdOf(key);
  return {
    keyId,
    metadataKey: publicKeyOfSeed(metadataSeed(spaceId, key)),
    sealed: sealReadKey(spaceId, key, recipients),
    previous: previous.map((before) => ({
      keyId: before.id,
      sealed: seal(key, before.key, concatBytes(keyId, before.id)),
    })),
  };
}

/** Opens a previous key with the epoch's key. */
export function openPreviousKey(
  key: Uint8Array,
  epochKeyId: Uint8Array,
  previous: { keyId: Uint8Array; sealed: Uint8Array },
): Uint8Array | undefined {
  return ifKeyOf(open(key, previous.sealed, concatBytes(epochKeyId, previous.keyId)), previous.keyId);
}

/** Returns the key only if it is the one that its id commits to. */
export function ifKeyOf(key: Uint8Array | undefined, keyId: Uint8Array): Uint8Array | undefined {
  return key?.length === READ_KEY_BYTES && equalBytes(keyIdOf(key), keyId) ? key : undefined;
}

/** Seed of the key pair to which people who are not members yet seal; every member can open it. */
function metadataSeed(spaceId: SpaceId, readKey: Uint8Array): Uint8Array {
  return deriveKey(readKey, "acl-metadata", spaceId);
}

/**
 * Whether an epoch's metadata key belongs to its read key. A false one teaches its author nothing but locks everybody
 * out.
 */
export function isMetadataKeyOf(spaceId: SpaceId, readKey: Uint8Array, metadataKey: Uint8Array): boolean {
  return equalBytes(publicKeyOfSeed(metadataSeed(spaceId, readKey)), metadataKey);
}

/** What a member publishes to the others about itself. The profile key opens the profile that it publishes elsewhere. */
export interface MemberMetadata {
  name?: string;
  description?: string;
  iconCid?: string;
  /** Base64 of 32 bytes. */
  profileKey?: string;
}

const METADATA_FIELDS = ["name", "description", "iconCid", "profileKey"] as const;
export const MAX_METADATA_BYTES = ACL_BOUNDS.metadataBoxBytes - BOX_OVERHEAD_BYTES;

function metadataTooLarge(bytes: number): SvcError {
  const limitBytes = MAX_METADATA_BYTES;
  const reason = refusal("value.too_long", { limitBytes });
  const why = refusal("metadata.too_large", { bytes, limitBytes });
  return refusedAs("request.invalid_field", { field: "metadata", limitBytes }, why, { reason });
}

/** Seals metadata about an account to the present and future members of a space. */
export function sealMetadata(
  spaceId: SpaceId,
  epoch: Pick<EpochOp, "keyId" | "metadataKey">,
  account: AccountId,
  metadata: MemberMetadata,
): SealedMetadata {
  const bytes = utf8ToBytes(JSON.stringify(metadata));
  if (bytes.length > MAX_METADATA_BYTES) throw metadataTooLarge(bytes.length);
  return { keyId: epoch.keyId, box: sealTo(epoch.metadataKey, bytes, metadataContext(spaceId, account)) };
}

/** Opens metadata about an account with the read key of the epoch it names; undefined for what we did not seal. */
export function openMetadata(
  spaceId: SpaceId,
  readKey: Uint8Array,
  account: AccountId,
  sealed: SealedMetadata,
): MemberMetadata | undefined {
  const bytes = openWith(metadataSeed(spaceId, readKey), sealed.box, metadataContext(spaceId, account));
  const text = bytes && bytesToUtf8(bytes);
  if (text === undefined) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const metadata: MemberMetadata = {};
  for (const field of METADATA_FIELDS) {
    const known = value[field];
    if (typeof known === "string" && known !== "") metadata[field] = known;
  }
  return metadata;
}
