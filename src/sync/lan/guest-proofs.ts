import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Replica } from "../../space/replica.ts";
import { decodeGuestProof, encodeGuestProof, SessionFault } from "../session/messages.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import type { PeerLink } from "./peer-link.ts";

/** How many spaces a peer may say on one link that it is a guest of. */
const MAX_PROOFS = 4096;

/**
 * Guests read by a key that all of them share, not by their account, so the account that a link proves says nothing of
 * them: they prove the key too, on the link, before they ask for content.
 */
export function createGuestProofs() {
  const shown = new WeakMap<PeerLink, Set<string>>();
  const proven = new WeakMap<PeerLink, Map<string, Uint8Array>>();

  return {
    /** Where this account is a space's guest, the peer is told so, once a link. */
    async show(link: PeerLink, replica: Replica): Promise<void> {
      if (link.own || replica.role() !== "guest") return;
      const names = shown.get(link) ?? new Set();
      shown.set(link, names);
      const name = `${replica.id} ${bytesToHex(replica.accountKey)}`;
      if (names.has(name)) return;
      const proof = link.proveGuest(replica.signer, replica.id);
      await link.request(SYNC_KINDS.guest, encodeGuestProof(replica.id, replica.accountKey, proof));
      names.add(name);
    },
    /** Takes what a peer shows. Throws a SessionFault for what proves nothing. */
    take(link: PeerLink, body: Uint8Array): void {
      const { space, key, proof } = decodeGuestProof(body);
      if (!link.isGuestProof(key, space as SpaceId, proof))
        throw new SessionFault("the proof of a guest key does not hold");
      const keys = proven.get(link) ?? new Map<string, Uint8Array>();
      proven.set(link, keys);
      if (!keys.has(space) && keys.size >= MAX_PROOFS) throw new SessionFault("too many guest keys on one link");
      keys.set(space, new Uint8Array(key));
    },
    /** Whether the peer proved the key that the space's guests read by now. */
    isGuest(link: PeerLink, replica: Replica): boolean {
      const guestKey = replica.acl.guestKey();
      const key = proven.get(link)?.get(replica.id);
      return guestKey !== undefined && key !== undefined && equalBytes(guestKey, key);
    },
  };
}
