import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { versionOf } from "../../change/codec/version.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WaitKind } from "../../store/tables/parked-table.ts";
import {
  type ObjectFacts,
  PATIENCE_ROUNDS,
  type Replica,
  type SpaceBacklog,
  type SpaceFacts,
} from "../port/replica.ts";
import { cutChangesOf } from "./cut-changes.ts";
import type { ReplicaSource } from "./source.ts";

const PARKED_LOOKED_AT = 1000;
const QUARANTINE_SHOWN = 50;

/** What nobody but this device is known to keep, and what it has received but not judged or read yet. */
interface Backlog {
  /** Changes by object number. */
  readonly unconfirmed: ReadonlyMap<number, number>;
  readonly unconfirmedCount: number;
  /** Hex ids of objects with parked changes. */
  readonly parkedObjects: ReadonlySet<string>;
  readonly parkedCount: number;
  readonly stale: boolean;
  /**
   * Changes here name a record of a branch that lost, and wait for its new position. Nobody is asked to keep them until then.
   */
  readonly awaitsPosition: boolean;
  /** How much of the ACL nobody else is known to have: records of the log, and this account's proposals. */
  readonly aclCount: number;
}

function backlogOf(space: ReplicaSource): Backlog {
  const { engine, store } = space;
  const { sync, parked, pendingBodies } = store;
  const unconfirmed = sync.keptNowhereElse();
  const parkedObjects = new Set<string>();
  const waiting = parked.waitingCount(PATIENCE_ROUNDS);
  const unread = pendingBodies.waitingCount(PATIENCE_ROUNDS);
  if (waiting > 0) {
    for (const id of parked.waitingObjects(PATIENCE_ROUNDS, PARKED_LOOKED_AT)) parkedObjects.add(bytesToHex(id));
  }
  if (unread > 0) {
    for (const no of pendingBodies.waitingObjects(PATIENCE_ROUNDS, PARKED_LOOKED_AT)) {
      // A row that the disk changed may name none, until the space is gone over.
      const object = engine.objects.byNo(no);
      if (object) parkedObjects.add(bytesToHex(object.id));
    }
  }
  return {
    unconfirmed,
    unconfirmedCount: [...unconfirmed.values()].reduce((sum, count) => sum + count, 0),
    parkedObjects,
    parkedCount: waiting + unread,
    stale: hasStaleObjects(space),
    awaitsPosition: awaitsPosition(space),
    aclCount: aclKeptNowhereElse(space),
  };
}

/** Whether objects are as an older version folded them. */
const hasStaleObjects = ({ engine }: ReplicaSource): boolean => engine.objects.stale().length > 0;

/** Whether rows are older than the log. */
const isStale = (space: ReplicaSource): boolean => hasStaleObjects(space) || space.engine.isOwing();

const awaitsPosition = ({ acl }: ReplicaSource): boolean =>
  acl.pending.list().some(({ pending }) => pending.kind === "acl" && acl.isAwaited(pending.id));

function aclKeptNowhereElse({ store: { sync }, acl, accountKey }: ReplicaSource): number {
  const proposals = acl.pending
    .list()
    .filter(({ pending }) => equalBytes(pending.author, accountKey) && !sync.hasRecord("peer", pending.id));
  return sync.recordsKeptNowhereElse() + proposals.length;
}

/** Nothing at all is unconfirmed or unjudged. */
const isComplete = ({ unconfirmedCount, parkedCount, stale, awaitsPosition, aclCount }: Backlog): boolean =>
  unconfirmedCount === 0 && parkedCount === 0 && !stale && !awaitsPosition && aclCount === 0;

/** The part of a replica that its status is computed from. */
export const statusFacts = (space: ReplicaSource): Pick<Replica, "facts" | "objectFacts" | "backlog"> => {
  const stored = space.store.memo(() => factsOf(space));
  return {
    // That the last row was folded is known without a change of the database.
    facts: () => (space.engine.isOwing() ? { ...stored(), stale: true, complete: false } : stored()),
    objectFacts: (objectId) => objectFactsOf(space, objectId),
    backlog: () => spaceBacklogOf(space),
  };
};

function factsOf(space: ReplicaSource): SpaceFacts {
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
    total: space.store.sync.regularObjects(),
    waiting: counted.size,
    stale: backlog.stale,
  };
}

/** Changes that follow ACL records which nobody else has are of no use to others either. */
function isObjectComplete(space: ReplicaSource, object: ObjectEntry): boolean {
  const { sync, parked, pendingBodies } = space.store;
  const waits =
    pendingBodies.waitingCountOf(object.no, PATIENCE_ROUNDS) > 0 ||
    (parked.waitingCount(PATIENCE_ROUNDS) > 0 && backlogOf(space).parkedObjects.has(bytesToHex(object.id)));
  const isKept = sync.keptNowhereElseOf(object.no) === 0 && aclKeptNowhereElse(space) === 0;
  return isKept && !waits && !isStale(space) && !awaitsPosition(space);
}

function objectFactsOf(space: ReplicaSource, objectId: string): ObjectFacts | undefined {
  const object = space.engine.object(objectId);
  if (!object || object.deleted) return undefined;
  const { changes, sync } = space.store;
  const { count, newestNo } = sync.objectSize(object.no);
  const newest = changes.newestOfObject(object.no);
  const hasContent = newest !== undefined && !equalBytes(newest.id, object.id);
  return {
    objectId: object.idText,
    complete: isObjectComplete(space, object),
    keptNowhereElse: sync.keptNowhereElseOf(object.no),
    heads: object.heads.map(({ id }) => cidFromDigest(id)),
    changes: count,
    newestNo,
    latestVersionId: hasContent ? versionOf(newest.lamport, newest.id) : "",
  };
}

/** Why changes wait in vain for this. */
const inVain = (kind: WaitKind, what: Uint8Array): Refusal =>
  kind === "change" || kind === "acl"
    ? refusal("change.follows_nothing", { what: cidFromDigest(what) })
    : refusal("change.waits_in_vain", { kind, what: bytesToHex(what) });

function spaceBacklogOf(space: ReplicaSource): SpaceBacklog {
  const { store, acl } = space;
  const { parked, pendingBodies } = store;
  const backlog = backlogOf(space);
  const damaged = pendingBodies.damaged(QUARANTINE_SHOWN);
  return {
    parked: backlog.parkedCount,
    quarantined: [
      ...damaged.map((id) => ({ id: cidFromDigest(id), refusal: refusal("change.damaged") })),
      ...parked.orphans(PATIENCE_ROUNDS, QUARANTINE_SHOWN).map(({ id, waitKind, waitFor }) => ({
        id: cidFromDigest(id),
        refusal: inVain(waitKind, waitFor),
      })),
      ...pendingBodies
        .inVain(PATIENCE_ROUNDS, QUARANTINE_SHOWN)
        .filter((id) => !damaged.some((other) => equalBytes(other, id)))
        .map((id) => ({ id: cidFromDigest(id), refusal: refusal("change.body_missing") })),
      ...parked.quarantineList(QUARANTINE_SHOWN).map(({ id, refusal }) => ({ id: cidFromDigest(id), refusal })),
    ],
    unconfirmed: backlog.unconfirmedCount,
    unconfirmedRights: backlog.aclCount,
    alarms: acl.alarms.list(),
    cut: cutChangesOf(space),
    proposals: acl.pending.list().length,
  };
}
