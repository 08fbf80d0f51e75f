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
}

/** What is known of a space's rounds since the start. In memory: a restart knows nothing until its first round. */
export interface SpaceProgress {
  roundEnded: boolean;
  lastRoundEndedMs: number | undefined;
  /** When it was found synced last, since the start; what is stored with the space may be older. */
  lastSyncedMs: number | undefined;
  writersReplaced: number;
  readonly peers: Map<string, PeerProgress>;
}

/** Name of the network among the peers. */
export const NETWORK_PEER = "network";

export type ProgressBook = ReturnType<typeof createProgressBook>;

export function createProgressBook() {
  const spaces = new Map<SpaceId, SpaceProgress>();
  const of = (spaceId: SpaceId): SpaceProgress => {
    let known = spaces.get(spaceId);
    if (!known) {
      known = {
        roundEnded: false,
        lastRoundEndedMs: undefined,
        lastSyncedMs: undefined,
        writersReplaced: 0,
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
        known = { lastSyncAtMs: undefined, fresh: 0, changed: 0, lastError: "", missing: false };
        peers.set(peerId, known);
      }
      return known;
    },
    forget: (spaceId: SpaceId) => void spaces.delete(spaceId),
  };
}

/** Plain RFC 3339 text of an instant, or null. */
export const timeText = (atMs: number | undefined): string | null =>
  atMs === undefined ? null : new Date(atMs).toISOString();

export function countersOf(progress: SpaceProgress): PeerCounters[] {
  return [...progress.peers].map(([peerId, peer]) => ({
    peerId,
    lastSyncAt: timeText(peer.lastSyncAtMs),
    new: peer.fresh,
    changed: peer.changed,
    lastErr: peer.lastError,
  }));
}
