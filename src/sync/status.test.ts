import { describe, expect, test } from "bun:test";
import type { SpaceId } from "../base/ids.ts";
import type { SyncState } from "../protocol/sync.ts";
import type { PeerProgress, SpaceProgress } from "./progress.ts";
import { type Reach, type StoredStatus, spaceStatus } from "./status.ts";

const AT_MS = 1_800_000_000_000;
const WHOLE: StoredStatus = { complete: true, total: 5, waiting: 0, stale: false, lastSyncedMs: undefined };
const NOBODY: Reach = { networkPeers: 0, localPeers: 0, p2p: "notconnected", names: [], fault: undefined };
const NETWORK: Reach = { ...NOBODY, networkPeers: 1, names: ["network"] };
const FORBIDDEN: Reach = { ...NOBODY, fault: "the operator must admit it" };

const peer = (over: Partial<PeerProgress> = {}): PeerProgress => ({
  ...{ lastSyncAtMs: AT_MS, fresh: 0, changed: 0, lastError: "", missing: false, behind: 0 },
  ...over,
});
const after = (peers: Record<string, PeerProgress>, roundEnded = true): SpaceProgress => ({
  ...{ roundEnded, lastRoundEndedMs: AT_MS, lastSyncedMs: undefined, writersReplaced: 0, networkResets: 0 },
  peers: new Map(Object.entries(peers)),
});

describe("[SYNC-17] the state of a space", () => {
  const cases: [SyncState, string, SpaceProgress, Reach, Partial<StoredStatus>][] = [
    ["unknown", "no round has ended since the start", after({ network: peer() }, false), NETWORK, {}],
    ["offline", "nobody that keeps it is reached", after({ network: peer() }), NOBODY, {}],
    ["offline", "nobody is reached, and something waits", after({ network: peer() }), NOBODY, { complete: false }],
    ["syncing", "something here is unconfirmed or waits", after({ network: peer() }), NETWORK, { complete: false }],
    ["syncing", "something is known to be missing", after({ network: peer({ missing: true }) }), NETWORK, {}],
    ["syncing", "no round with those who are reached", after({ other: peer() }), NETWORK, {}],
    ["syncing", "no round with them has succeeded", after({ network: peer({ lastSyncAtMs: undefined }) }), NETWORK, {}],
    ["error", "the network refuses to serve", after({}), FORBIDDEN, {}],
    ["error", "the last round failed", after({ network: peer({ lastError: "torn" }) }), NETWORK, {}],
    [
      "error",
      "it failed, and something waits",
      after({ network: peer({ lastError: "torn" }) }),
      NETWORK,
      { complete: false },
    ],
    ["synced", "a round found nothing missing, and all is kept", after({ network: peer() }), NETWORK, {}],
    [
      "synced",
      "a peer on the LAN keeps it while the network refuses",
      after({ pal: peer() }),
      { ...FORBIDDEN, localPeers: 1, names: ["pal"] },
      {},
    ],
  ];
  test.each(cases)("is %s where %s", (state, _why, progress, reach, stored) => {
    expect(spaceStatus("space" as SpaceId, { ...WHOLE, ...stored }, progress, reach).state).toBe(state);
  });
  test("comes with how many objects are kept, and when it was synced last", () => {
    const status = (lastSyncedMs?: number) =>
      spaceStatus("space" as SpaceId, { ...WHOLE, waiting: 2, lastSyncedMs }, after({}), NOBODY);
    expect(status()).toMatchObject({ total: 5, synced: 3, lastSyncedAt: null });
    expect(status(AT_MS)).toMatchObject({ lastSyncedAt: new Date(AT_MS).toISOString() });
  });
  test("is synced at a time also before the round has ended in which it came to be", () => {
    const [earlier, later] = [peer({ lastSyncAtMs: AT_MS - 5 }), peer()];
    const status = spaceStatus("space" as SpaceId, WHOLE, after({ network: later, pal: earlier }), NETWORK);
    expect(status).toMatchObject({ state: "synced", lastSyncedAt: new Date(AT_MS).toISOString() });
  });
});
