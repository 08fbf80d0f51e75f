import type { PeerId, SpaceId } from "../../base/ids.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import type { Replica } from "../../space/port/replica.ts";
import { createKeyProofs } from "./key-proofs.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

interface LanPeersDeps {
  readonly links: Pick<LinkManager, "links">;
  /** The account's own space is shared with the account's own devices alone. */
  readonly techId: SpaceId;
  open(spaceId: string): Promise<Replica | undefined>;
  /** Secret of the invite by which this account joins a space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** Which peers on the LAN may know of a space, hold it, and may have its content. */
export type LanPeers = ReturnType<typeof createLanPeers>;

export function createLanPeers(deps: LanPeersDeps) {
  /** Peers that do not hold a space, as they say or since they left it; asked again every round. */
  const withoutBySpace = new Map<SpaceId, Set<PeerId>>();
  const proofs = createKeyProofs(deps.inviteSeedOf);

  const shares = (link: PeerLink, spaceId: SpaceId): boolean =>
    link.own || (spaceId !== deps.techId && link.sharedSpaces().includes(spaceId));
  /** For peers that may only know part of a space's ACL log: how many records each link was notified of. */
  const notifiedOf = new WeakMap<PeerLink, Map<SpaceId, number>>();
  const mayHaveContent = (link: PeerLink, replica: Replica): boolean =>
    link.own || replica.acl.mayRead(link.accountId) || proofs.isGuest(link, replica);
  const recordsOf = (link: PeerLink, replica: Replica): number => {
    if (link.own) return replica.acl.count();
    const keys = [parseAccountId(link.accountId), proofs.keyOf(link, replica.id)];
    return replica.acl.recordsFor(keys.flatMap((key) => key ?? []));
  };
  const isHolder = (spaceId: SpaceId, { peerId }: PeerLink): boolean => !withoutBySpace.get(spaceId)?.has(peerId);
  const sharers = (spaceId: SpaceId): PeerLink[] => deps.links.links().filter((link) => shares(link, spaceId));

  return {
    proofs,
    shares,
    sharers,
    isHolder,
    holders: (spaceId: SpaceId): PeerLink[] => sharers(spaceId).filter((link) => isHolder(spaceId, link)),
    /** A peer said whether it holds a space. Whoever left holds none: nobody waits for it, and what it keeps is not kept. */
    noteHolder({ id, acl }: Replica, link: PeerLink, holds: boolean): void {
      const without = withoutBySpace.get(id) ?? new Set();
      if (holds && (link.own || !acl.hasLeft(link.accountId))) without.delete(link.peerId);
      else without.add(link.peerId);
      withoutBySpace.set(id, without);
    },
    forget: (spaceId: SpaceId): void => void withoutBySpace.delete(spaceId),
    /** The space, if the keys that matched say that the peer may know of it. */
    async shared(link: PeerLink, spaceId: string): Promise<Replica | undefined> {
      const replica = await deps.open(spaceId);
      return replica && shares(link, replica.id) ? replica : undefined;
    },
    /** Whether the ACL log gives the peer the content too. */
    mayHaveContent,
    /**
     * How many records of the ACL log the peer may have. An account that left may have those up to its own end, and none
     * after.
     */
    recordsFor: recordsOf,
    /**
     * Whether a peer is notified that something happened: one that reads the space is each time, any other only when the ACL log
     * has something new for it.
     */
    isToBeNotified(link: PeerLink, replica: Replica): boolean {
      if (mayHaveContent(link, replica)) return true;
      const notified = notifiedOf.get(link) ?? new Map<SpaceId, number>();
      notifiedOf.set(link, notified);
      const records = recordsOf(link, replica);
      const isNew = notified.get(replica.id) !== records;
      notified.set(replica.id, records);
      return isNew;
    },
  };
}
