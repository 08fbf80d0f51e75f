import type { ObjectId, SpaceId } from "../../base/ids.ts";
import { deriveObjectKey, open, seal } from "../../crypto/seal.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { type ChangeBody, decodeBody, encodeBody } from "./change-body.ts";
import type { Change } from "./change-codec.ts";
import type { KeyRing } from "./ports.ts";
import { type SealedParts, sealedPartsOf } from "./stored-change.ts";

const MAX_CACHED_KEYS = 4096;

/**
 * Why a body cannot be read: there is only a stub; the key may still come; bytes that do not open or are no body never
 * will.
 */
export type OpenedBody =
  | { body: ChangeBody; openedBytes: number }
  | { stub: true }
  | { missingKey: Uint8Array }
  | { broken: Refusal };

/** Seals and opens the bodies of a space's changes under keys derived per object and epoch. */
export type BodyOpener = ReturnType<typeof createBodyOpener>;

export function createBodyOpener(spaceId: SpaceId, keys: KeyRing) {
  let derived = new Map<string, Uint8Array>();

  const objectKey = (keyId: Uint8Array, readKey: Uint8Array, objectId: ObjectId): Uint8Array => {
    const name = `${keyId.toHex()}${objectId}`;
    const known = derived.get(name);
    if (known) return known;
    if (derived.size >= MAX_CACHED_KEYS) derived = new Map();
    const key = deriveObjectKey(readKey, spaceId, objectId, "change");
    derived.set(name, key);
    return key;
  };

  const openParts = (parts: SealedParts | undefined, objectId: ObjectId): OpenedBody => {
    if (!parts) return { stub: true };
    const { keyId, headerBytes, sealed } = parts;
    const readKey = keys.byId(keyId);
    if (!readKey) return { missingKey: keyId };
    const plain = open(objectKey(keyId, readKey, objectId), sealed, headerBytes);
    if (!plain) return { broken: refusal("change.body_key") };
    return decodeBody(plain) ?? { broken: refusal("change.no_body") };
  };

  return {
    /** Undefined when the body is larger than one may be. */
    seal(
      body: ChangeBody,
      objectId: ObjectId,
      epoch: { id: Uint8Array; key: Uint8Array },
      headerBytes: Uint8Array,
    ): Uint8Array | undefined {
      const plain = encodeBody(body);
      return plain && seal(objectKey(epoch.id, epoch.key, objectId), plain, headerBytes);
    },
    open: ({ header, headerBytes, sealed }: Change, objectId: ObjectId): OpenedBody =>
      openParts(sealed && { keyId: header.keyId, headerBytes, sealed }, objectId),
    /** The same for a change that is in the log, by its bytes. */
    openStored: (bytes: Uint8Array, objectId: ObjectId): OpenedBody => openParts(sealedPartsOf(bytes), objectId),
  };
}
