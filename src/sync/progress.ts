import type { SpaceId } from "../base/ids.ts";
import type { PeerCounters } from "../protocol/sync.ts";

/** What rounds with one peer, or with the network, have brought since the start. */
export interface PeerProgress {
  lastSyncAtMs: number | undefined;
  fresh: number;
  changed: number;
  lastError: string;
  /** It is known to have something that is not here. */
  missing: boolean;
  /** About how many changes that are. */
  behind: number;
}

/** What is known of a space's rounds since the start. In memory: a restart knows nothing until its first round. */
export interface SpaceProgress {
  roundEnded: boolean;
  lastRoundEndedMs: number | undefined;
  /** When it was found synced last, since the start; what is stored with the space may be older. */
  lastSyncedMs: number | undefined;
  writersReplaced: number;
  networkResets: number;
  readonly peers: Map<string, PeerProgress>;
}

/** Name of the network among the peers. */
export const NETWORK_PEER = "network";

export type ProgressBook = ReturnType<typeof createProgressBook>;

export function createProgressBook() {
  const spaces = new Map<SpaceId, SpaceProgress>();
  /** What spaces that have ended since had taken in. */
  let forgotten = 0;
  const of = (spaceId: SpaceId): SpaceProgress => {
    let known = spaces.get(spaceId);
    if (!known) {
      known = {
        roundEnded: false,
        lastRoundEndedMs: undefined,
        lastSyncedMs: undefined,
        writersReplaced: 0,
        networkResets: 0,
        peers: new Map(),
      };
      spaces.set(spaceId, known);
    }
    return known;
  };
  return {
    of,
    peer(spaceId: SpaceId, peerId: string): PeerProgress {
      const { peers } = of(spaceId);
      let known = peers.get(peerId);
      if (!known) {
        known = { lastSyncAtMs: undefined, fresh: 0, changed: 0, lastError: "", missing: false, behind: 0 };
        peers.set(peerId, known);
      }
      return known;
    },
    /**
     * How many changes all spaces took in since the start, and how many are still missing. Where several peers have the
     * same changes, the peer that we are furthest behind counts.
     */
    sums(): { taken: number; behind: number } {
      let taken = forgotten;
      let behind = 0;
      for (const { peers } of spaces.values()) {
        let most = 0;
        for (const peer of peers.values()) {
          taken += peer.fresh + peer.changed;
          most = Math.max(most, peer.behind);
        }
        behind += most;
      }
      return { taken, behind };
    },
    forget(spaceId: SpaceId): void {
      for (const peer of spaces.get(spaceId)?.peers.values() ?? []) forgotten += peer.fresh + peer.changed;
      spaces.delete(spaceId);
    },
  };
}

/** Plain RFC 3339 text of an instant, or null. */
export const timeText = (atMs: number | undefined): string | null =>
  atMs === undefined ? null : new Date(atMs).toISOString();

/** `networkFault`: why the network does not serve the space; it may be known before any round with the network. */
export function countersOf(progress: SpaceProgress, networkFault: string | undefined): PeerCounters[] {
  const counters = [...progress.peers].map(([peerId, peer]) => ({
    peerId,
    lastSyncAt: timeText(peer.lastSyncAtMs),
    new: peer.fresh,
    changed: peer.changed,
    lastErr: peer.lastError || (peerId === NETWORK_PEER ? (networkFault ?? "") : ""),
  }));
  if (networkFault !== undefined && !progress.peers.has(NETWORK_PEER))
    counters.push({ peerId: NETWORK_PEER, lastSyncAt: null, new: 0, changed: 0, lastErr: networkFault });
  return counters;
}
