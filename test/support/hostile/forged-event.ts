import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { encodeCbor } from "../../../src/base/dag-cbor.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { deriveKey } from "../../../src/crypto/derive.ts";
import { peerIdOf } from "../../../src/crypto/peer-id.ts";
import { seal } from "../../../src/crypto/seal.ts";
import { signEnvelope } from "../../../src/crypto/signed-envelope.ts";

/** An event as a member of a space can make one: signed, sealed, and saying whatever it likes. */
export function forgeEvent(
  spaceId: SpaceId,
  epoch: { readonly id: Uint8Array; readonly key: Uint8Array },
  author: Account,
  /** `data` is JSON. */
  said: { topic: string; data: string; peer?: string },
): Uint8Array {
  const { topic, data, peer = peerIdOf(author.signer.publicKey) } = said;
  const fields = { v: 1, space: spaceId, topic, peer, time: Date.now(), data: utf8ToBytes(data) };
  const signed = signEnvelope("event", encodeCbor({ ...fields, author: author.signer.publicKey }), author.signer);
  return encodeCbor({ k: epoch.id, b: seal(deriveKey(epoch.key, "event", spaceId), signed, epoch.id) }).slice();
}
