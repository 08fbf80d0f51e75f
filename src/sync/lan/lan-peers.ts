import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { Replica } from "../../space/replica.ts";
import { createGuestProofs } from "./guest-proofs.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

interface LanPeersDeps {
  readonly links: Pick<LinkManager, "links">;
  /** The account's own space: for its own devices alone. */
  readonly techId: SpaceId;
  open(spaceId: string): Promise<Replica | undefined>;
}

/** Which peers on the LAN may know of a space, hold it, and may have its content. */
export type LanPeers = ReturnType<typeof createLanPeers>;

export function createLanPeers(deps: LanPeersDeps) {
  /** Peers that said they do not hold a space; asked again every round. */
  const withoutBySpace = new Map<SpaceId, Set<PeerId>>();
  const guests = createGuestProofs();

  const shares = (link: PeerLink, spaceId: SpaceId): boolean =>
    link.own || (spaceId !== deps.techId && link.sharedSpaces().includes(spaceId));
  const sharers = (spaceId: SpaceId): PeerLink[] => deps.links.links().filter((link) => shares(link, spaceId));

  return {
    guests,
    shares,
    sharers,
    holders: (spaceId: SpaceId): PeerLink[] =>
      sharers(spaceId).filter((link) => !withoutBySpace.get(spaceId)?.has(link.peerId)),
    noteHolder(spaceId: SpaceId, peerId: PeerId, holds: boolean): void {
      const without = withoutBySpace.get(spaceId) ?? new Set();
      if (holds) without.delete(peerId);
      else without.add(peerId);
      withoutBySpace.set(spaceId, without);
    },
    forget: (spaceId: SpaceId): void => void withoutBySpace.delete(spaceId),
    /** The space, if the keys that matched say that the peer may know of it. */
    async shared(link: PeerLink, spaceId: string): Promise<Replica | undefined> {
      const replica = await deps.open(spaceId);
      return replica && shares(link, replica.id) ? replica : undefined;
    },
    /** Whether the ACL log gives the peer the content too. */
    mayHaveContent: (link: PeerLink, replica: Replica): boolean =>
      link.own || replica.acl.mayRead(link.accountId) || guests.isGuest(link, replica),
  };
}
