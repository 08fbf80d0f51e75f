/** The sync state of a space, in words for people. */
import type { P2pDebug, P2pState, SpaceSyncStatus, SyncState } from "../../src/protocol/sync.ts";

export const STATE_WORDS: Readonly<Record<SyncState, string>> = {
  unknown: "Looking for others",
  offline: "Nobody reachable",
  syncing: "Syncing",
  synced: "In step",
  error: "Something is wrong",
};

const LAN_WORDS: Readonly<Record<P2pState, string>> = {
  unknown: "not known yet",
  notpossible: "not possible here, or switched off",
  notconnected: "no device of this space is near",
  connected: "connected",
  restricted: "held back by this machine's firewall or settings",
};

export function lanText({ p2p, localPeers }: Pick<SpaceSyncStatus, "p2p" | "localPeers">): string {
  if (localPeers > 0) return localPeers === 1 ? "1 device with this space" : `${localPeers} devices with this space`;
  return LAN_WORDS[p2p];
}

export function deviceLanText({ state, possibility }: Pick<P2pDebug, "state" | "possibility">): string {
  if (possibility === "possible" && state === "notconnected") return "no other device is connected";
  return LAN_WORDS[possibility === "possible" ? state : possibility];
}
