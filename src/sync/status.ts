import { readUint64, writeUint64 } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import { refusalText } from "../protocol/refusals.ts";
import type {
  ObjectDebug,
  ObjectSyncStatus,
  P2pState,
  SpaceDebug,
  SpaceSyncStatus,
  SyncState,
} from "../protocol/sync.ts";
import type { ObjectFacts, Replica, SpaceFacts } from "../space/port/replica.ts";
import { countersOf, type SpaceProgress, timeText } from "./progress.ts";

/** Who of those that keep a space can be reached. */
export interface Reach {
  readonly networkPeers: number;
  readonly localPeers: number;
  readonly p2p: P2pState;
  /** Names of those that are reached now, as progress knows them. */
  readonly names: readonly string[];
  /** Why the network does not serve although it is reached; undefined when it does. */
  readonly fault: string | undefined;
}

const LAST_SYNCED = "sync.lastSyncedAt";
/** What is known after a restart is so much older at most: rounds follow each other far faster than that is worth a commit. */
const LAST_SYNCED_STEP_MS = 30_000;

/**
 * The state (SYNC-17): never `synced` by default or by time-out (SYNC-2). `complete`: nothing of the
 * space or object is unconfirmed or unjudged here.
 */
function stateOf(progress: SpaceProgress, reach: Reach, complete: boolean): SyncState {
  if (!progress.roundEnded) return "unknown";
  if (reach.fault !== undefined && reach.localPeers === 0) return "error";
  if (reach.names.length === 0) return "offline";
  const reached = reach.names.map((name) => progress.peers.get(name));
  const rounds = reached.filter((peer) => peer !== undefined);
  if (!complete || rounds.some((peer) => peer.missing)) {
    return rounds.some((peer) => peer.lastError !== "") ? "error" : "syncing";
  }
  if (rounds.some((peer) => peer.lastError !== "")) return "error";
  return rounds.some((peer) => peer.lastSyncAtMs !== undefined) ? "synced" : "syncing";
}

/** What the status of a space is made of, besides progress and reach. It holds until something happens to the space. */
export interface StoredStatus extends SpaceFacts {
  /** When the space was found synced last, over restarts. Unix milliseconds. */
  readonly lastSyncedMs: number | undefined;
}

export const storedStatusOf = (replica: Replica): StoredStatus => ({
  ...replica.facts(),
  lastSyncedMs: lastSyncedAt(replica),
});

export function spaceStatus(
  spaceId: SpaceId,
  stored: StoredStatus,
  progress: SpaceProgress,
  reach: Reach,
): SpaceSyncStatus {
  const state = stateOf(progress, reach, stored.complete);
  // What the last thing to be kept was confirmed by may come before the round ends that notes the time.
  const confirmedMs = state === "synced" ? lastConfirmedMs(progress) : undefined;
  return {
    spaceId,
    state,
    synced: Math.max(0, stored.total - stored.waiting),
    total: stored.total,
    networkPeers: reach.networkPeers,
    localPeers: reach.localPeers,
    p2p: reach.p2p,
    lastSyncedAt: timeText(progress.lastSyncedMs ?? stored.lastSyncedMs ?? confirmedMs),
  };
}

function lastSyncedAt(replica: Replica): number | undefined {
  const stored = replica.note(LAST_SYNCED);
  return stored?.length === 8 ? Number(readUint64(stored, 0)) : undefined;
}

export async function markSynced(replica: Replica, atMs: number): Promise<void> {
  const storedMs = lastSyncedAt(replica);
  if (storedMs !== undefined && Math.abs(atMs - storedMs) < LAST_SYNCED_STEP_MS) return;
  const stamp = new Uint8Array(8);
  writeUint64(stamp, 0, BigInt(atMs));
  await replica.write((write) => write.putNote(LAST_SYNCED, stamp));
}

function lastConfirmedMs(progress: SpaceProgress): number | undefined {
  const times = [...progress.peers.values()].flatMap(({ lastSyncAtMs }) => lastSyncAtMs ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

const lastSyncOf = (progress: SpaceProgress): string | null => timeText(lastConfirmedMs(progress));

/** An id that nothing is known of is `unknown`, as is everything before the first round. */
export function objectStatus(
  replica: Replica,
  objectId: string,
  progress: SpaceProgress,
  reach: Reach,
): ObjectSyncStatus {
  const facts = replica.objectFacts(objectId);
  if (!facts) return { objectId, state: "unknown", lastSyncAt: null };
  return { objectId, state: stateOf(progress, reach, facts.complete), lastSyncAt: lastSyncOf(progress) };
}

/** What sync knows of it. */
export type SyncDebug = Omit<SpaceDebug, "repairs">;

export const spaceDebug = (replica: Replica, progress: SpaceProgress, reach: Reach): SyncDebug => {
  const { quarantined, ...backlog } = replica.backlog();
  return {
    spaceId: replica.id,
    peers: countersOf(progress, reach.fault),
    networkResets: progress.networkResets,
    writersReplaced: progress.writersReplaced,
    quarantined: quarantined.map(({ id, refusal }) => ({ id, code: refusal.code, reason: refusalText(refusal) })),
    ...backlog,
  };
};

export const objectDebug = (facts: ObjectFacts, progress: SpaceProgress, reach: Reach): ObjectDebug => ({
  objectId: facts.objectId,
  syncState: stateOf(progress, reach, facts.complete),
  pending: facts.keptNowhereElse,
  lastSyncAt: lastSyncOf(progress),
  heads: [...facts.heads],
  headsCount: facts.heads.length,
  branchCount: facts.heads.length,
  treeLen: facts.changes,
  snapshots: 0,
  latestVersionId: facts.latestVersionId,
  maxAddSeq: facts.newestNo,
});
