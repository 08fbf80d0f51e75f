import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import { decodeChange, isDerivedRoot } from "../change/codec/change-codec.ts";
import { versionOf } from "../change/codec/version.ts";
import type { ObjectEntry } from "../change/graph/object-cache.ts";
import type { ChangeEngine } from "../change/space-engine.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import type {
  ObjectDebug,
  ObjectSyncStatus,
  P2pState,
  SpaceDebug,
  SpaceSyncStatus,
  SyncState,
} from "../protocol/sync.ts";
import type { Space } from "../space/space.ts";
import { cutChangesOf } from "./cut-changes.ts";
import { PATIENCE_ROUNDS } from "./patience.ts";
import { countersOf, type SpaceProgress, timeText } from "./progress.ts";

/** Who can be reached of those that keep a space. */
export interface Reach {
  readonly networkPeers: number;
  readonly localPeers: number;
  readonly p2p: P2pState;
  /** Names of those that are reached now, as progress knows them. */
  readonly names: readonly string[];
  /** Why the network does not serve although it is reached; undefined when it does. */
  readonly fault: string | undefined;
}

const LAST_SYNCED_KEY = "sync.lastSyncedAt";
const PARKED_LOOKED_AT = 1000;
const QUARANTINE_SHOWN = 50;

/** What this device has that nobody else is known to keep, and what it has received but not judged or not read. */
interface Backlog {
  /** Changes by object number. */
  readonly unconfirmed: ReadonlyMap<number, number>;
  readonly unconfirmedCount: number;
  /** Hex ids of objects with parked changes. */
  readonly parkedObjects: ReadonlySet<string>;
  readonly parkedCount: number;
  readonly stale: boolean;
  /** What of the rights nobody else is known to have: records of the chain, and this account's proposals. */
  readonly rightsCount: number;
}

function backlogOf(space: Space): Backlog {
  const { engine } = space;
  const { sync, parked, unopened } = engine.store;
  const unconfirmed = sync.keptNowhereElse();
  const parkedObjects = new Set<string>();
  const waiting = parked.waitingCount(PATIENCE_ROUNDS);
  const unread = unopened.waitingCount(PATIENCE_ROUNDS);
  if (waiting > 0) {
    for (const bytes of parked.waiting(PATIENCE_ROUNDS, PARKED_LOOKED_AT)) {
      const object = objectOf(bytes);
      if (object) parkedObjects.add(bytesToHex(object));
    }
  }
  if (unread > 0) {
    for (const no of unopened.waitingObjects(PATIENCE_ROUNDS, PARKED_LOOKED_AT))
      parkedObjects.add(bytesToHex(engine.objects.byNo(no)!.id));
  }
  return {
    unconfirmed,
    unconfirmedCount: [...unconfirmed.values()].reduce((sum, count) => sum + count, 0),
    parkedObjects,
    parkedCount: waiting + unread,
    stale: engine.objects.stale().length > 0,
    rightsCount: rightsKeptNowhereElse(space),
  };
}

function rightsKeptNowhereElse({ engine, acl, accountKey }: Space): number {
  const { sync } = engine.store;
  const proposals = acl.units
    .list()
    .filter(({ unit }) => equalBytes(unit.author, accountKey) && !sync.hasRecord("peer", unit.id));
  return sync.recordsKeptNowhereElse() + proposals.length;
}

/** Nothing at all is unconfirmed or unjudged. */
const isComplete = ({ unconfirmedCount, parkedCount, stale, rightsCount }: Backlog): boolean =>
  unconfirmedCount === 0 && parkedCount === 0 && !stale && rightsCount === 0;

/** The object a parked change belongs to, when its format is known. */
function objectOf(bytes: Uint8Array): Uint8Array | undefined {
  try {
    const change = decodeChange(bytes);
    return isDerivedRoot(change) ? change.id : (change.header.object ?? change.id);
  } catch {
    return undefined; // a later version's: parked for exactly that
  }
}

/**
 * The state by the definitions of the interface: never `synced` by default or by time-out. `complete`: nothing of what it
 * is about is unconfirmed or unjudged here.
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

/** What a space's database says for its status. It stands until something happens to the space, open or not. */
export interface SpaceFacts {
  readonly complete: boolean;
  /** Objects, and those of them with something unconfirmed or unjudged. */
  readonly total: number;
  readonly waiting: number;
  /** When the space was found synced last, over restarts. Unix milliseconds. */
  readonly lastSyncedMs: number | undefined;
  /** Objects wait to be folded anew, which is not told of. */
  readonly stale: boolean;
}

export function factsOf(space: Space): SpaceFacts {
  const { engine } = space;
  const backlog = backlogOf(space);
  const counted = new Set<number>();
  for (const no of backlog.unconfirmed.keys()) {
    const object = engine.objects.byNo(no);
    if (object && !object.derived && !object.deleted) counted.add(no);
  }
  for (const hex of backlog.parkedObjects) {
    const object = engine.objects.byId(Buffer.from(hex, "hex"));
    if (object && !object.derived && !object.deleted) counted.add(object.no);
  }
  return {
    complete: isComplete(backlog),
    total: engine.store.sync.regularObjects(),
    waiting: counted.size,
    lastSyncedMs: lastSyncedAt(engine),
    stale: backlog.stale,
  };
}

export function spaceStatus(
  spaceId: SpaceId,
  facts: SpaceFacts,
  progress: SpaceProgress,
  reach: Reach,
): SpaceSyncStatus {
  return {
    spaceId,
    state: stateOf(progress, reach, facts.complete),
    synced: Math.max(0, facts.total - facts.waiting),
    total: facts.total,
    networkPeers: reach.networkPeers,
    localPeers: reach.localPeers,
    p2p: reach.p2p,
    lastSyncedAt: timeText(progress.lastSyncedMs ?? facts.lastSyncedMs),
  };
}

function lastSyncedAt(engine: ChangeEngine): number | undefined {
  const stored = engine.store.meta(LAST_SYNCED_KEY);
  return stored?.length === 8 ? Number(Buffer.from(stored).readBigUInt64BE()) : undefined;
}

export async function markSynced(engine: ChangeEngine, atMs: number): Promise<void> {
  const stamp = Buffer.alloc(8);
  stamp.writeBigUInt64BE(BigInt(atMs));
  await engine.write(() => engine.store.putMeta(LAST_SYNCED_KEY, stamp));
}

/** Changes that follow rights which nobody else has are of no use to anybody else either. */
function objectState(space: Space, object: ObjectEntry, progress: SpaceProgress, reach: Reach): SyncState {
  const { engine } = space;
  const unconfirmed = engine.store.sync.keptNowhereElseOf(object.no);
  const { parked: waiting, unopened } = engine.store;
  const parked =
    unopened.waitingCountOf(object.no, PATIENCE_ROUNDS) > 0 ||
    (waiting.waitingCount(PATIENCE_ROUNDS) > 0 && backlogOf(space).parkedObjects.has(bytesToHex(object.id)));
  const stale = engine.objects.stale().length > 0;
  return stateOf(progress, reach, unconfirmed === 0 && !parked && !stale && rightsKeptNowhereElse(space) === 0);
}

const lastSyncOf = (progress: SpaceProgress): string | null => {
  const times = [...progress.peers.values()].flatMap(({ lastSyncAtMs }) => lastSyncAtMs ?? []);
  return timeText(times.length === 0 ? undefined : Math.max(...times));
};

/** An id of which nothing is known is `unknown`, as is everything before the first round. */
export function objectStatus(space: Space, objectId: string, progress: SpaceProgress, reach: Reach): ObjectSyncStatus {
  const object = space.engine.object(objectId);
  if (!object || object.deleted) return { objectId, state: "unknown", lastSyncAt: null };
  return { objectId, state: objectState(space, object, progress, reach), lastSyncAt: lastSyncOf(progress) };
}

export function spaceDebug(space: Space, progress: SpaceProgress, reach: Reach): SpaceDebug {
  const { engine, acl } = space;
  const { parked, unopened } = engine.store;
  const backlog = backlogOf(space);
  return {
    spaceId: engine.spaceId,
    peers: countersOf(progress, reach.fault),
    parked: backlog.parkedCount,
    quarantined: [
      ...parked.orphans(PATIENCE_ROUNDS, QUARANTINE_SHOWN).map(({ id, waitFor }) => ({
        id: cidFromDigest(id),
        reason: `it follows ${cidFromDigest(waitFor)}, which nobody has`,
      })),
      ...unopened.inVain(PATIENCE_ROUNDS, QUARANTINE_SHOWN).map((id) => ({
        id: cidFromDigest(id),
        reason: "its content is missing, and nobody who was asked has it",
      })),
      ...parked.quarantineList(QUARANTINE_SHOWN).map(({ id, reason }) => ({ id: cidFromDigest(id), reason })),
    ],
    unconfirmed: backlog.unconfirmedCount,
    unconfirmedRights: backlog.rightsCount,
    networkResets: progress.networkResets,
    writersReplaced: progress.writersReplaced,
    alarms: acl.alarms.list(),
    cut: cutChangesOf(space),
    proposals: acl.units.list().length,
  };
}

export function objectDebug(space: Space, object: ObjectEntry, progress: SpaceProgress, reach: Reach): ObjectDebug {
  const { changes, sync } = space.engine.store;
  const { count, newestNo } = sync.objectSize(object.no);
  const newest = changes.newestOfObject(object.no);
  const hasContent = newest !== undefined && !equalBytes(newest.id, object.id);
  return {
    objectId: object.idText,
    syncState: objectState(space, object, progress, reach),
    pending: sync.keptNowhereElseOf(object.no),
    lastSyncAt: lastSyncOf(progress),
    heads: object.heads.map(({ id }) => cidFromDigest(id)),
    headsCount: object.heads.length,
    branchCount: object.heads.length,
    treeLen: count,
    snapshots: 0,
    latestVersionId: hasContent ? versionOf(newest.lamport, newest.id) : "",
    maxAddSeq: newestNo,
  };
}
