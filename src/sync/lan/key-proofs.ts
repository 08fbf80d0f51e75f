import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { createSigner, type Signer } from "../../crypto/sign.ts";
import type { Replica } from "../../space/port/replica.ts";
import { decodeGuestProof, encodeGuestProof, SessionFault } from "../session/messages.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import type { PeerLink } from "./peer-link.ts";

/** For how many spaces a peer may prove a key on one link. */
const MAX_PROOFS = 4096;

/**
 * Guests read by a key that all of them share, and a holder of an open invite joins by the invite's key. Neither uses an
 * account, so the account that a link proves says nothing of them: they prove the key as well, on the link, before they ask
 * for anything.
 */
export function createKeyProofs(inviteSeedOf: (spaceId: SpaceId) => Uint8Array | undefined) {
  const shown = new WeakMap<PeerLink, Set<string>>();
  const proven = new WeakMap<PeerLink, Map<string, Uint8Array>>();

  const prove = async (link: PeerLink, spaceId: SpaceId, signer: Signer): Promise<void> => {
    const names = shown.get(link) ?? new Set();
    shown.set(link, names);
    const name = `${spaceId} ${bytesToHex(signer.publicKey)}`;
    if (names.has(name)) return;
    await link.request(SYNC_KINDS.guest, encodeGuestProof(spaceId, signer.publicKey, link.proveGuest(signer, spaceId)));
    names.add(name);
  };

  return {
    /**
     * Where this account is a space's guest, or joins it by an open invite, the peer is shown the key, once for each link.
     */
    async show(link: PeerLink, replica: Replica): Promise<void> {
      if (link.own || (replica.role() !== "guest" && replica.role() !== "none")) return;
      const seed = replica.role() === "none" ? inviteSeedOf(replica.id) : undefined;
      if (replica.role() === "guest") await prove(link, replica.id, replica.signer);
      else if (seed) await prove(link, replica.id, createSigner(seed));
    },
    prove,
    /** Takes the proof that a peer shows. Throws a SessionFault for one that proves nothing. */
    take(link: PeerLink, body: Uint8Array): void {
      const { space, key, proof } = decodeGuestProof(body);
      if (!link.isGuestProof(key, space as SpaceId, proof)) throw new SessionFault("the proof of a key does not hold");
      const keys = proven.get(link) ?? new Map<string, Uint8Array>();
      proven.set(link, keys);
      if (!keys.has(space) && keys.size >= MAX_PROOFS) throw new SessionFault("too many keys on one link");
      keys.set(space, new Uint8Array(key));
    },
    /** The key that the peer proved for a space. */
    keyOf: (link: PeerLink, spaceId: SpaceId): Uint8Array | undefined => proven.get(link)?.get(spaceId),
    /** Whether the peer proved the key that the space's guests read by now. */
    isGuest(link: PeerLink, replica: Replica): boolean {
      const guestKey = replica.acl.guestKey();
      const key = proven.get(link)?.get(replica.id);
      return guestKey !== undefined && key !== undefined && equalBytes(guestKey, key);
    },
  };
}
