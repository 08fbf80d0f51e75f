import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { versionOf } from "../../change/codec/version.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WaitKind } from "../../store/parked-table.ts";
import { type ObjectFacts, PATIENCE_ROUNDS, type SpaceBacklog, type SpaceFacts } from "../replica.ts";
import { cutChangesOf } from "./cut-changes.ts";
import type { ReplicaSource } from "./source.ts";

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
  /** Changes here name a record of a branch that lost, and wait for its new place: nobody is asked to keep them meanwhile. */
  readonly unplaced: boolean;
  /** What of the ACL nobody else is known to have: records of the log, and this account's proposals. */
  readonly aclCount: number;
}

function backlogOf(space: ReplicaSource): Backlog {
  const { engine } = space;
  const { sync, parked, unopened } = engine.store;
  const unconfirmed = sync.keptNowhereElse();
  const parkedObjects = new Set<string>();
  const waiting = parked.waitingCount(PATIENCE_ROUNDS);
  const unread = unopened.waitingCount(PATIENCE_ROUNDS);
  if (waiting > 0) {
    for (const id of parked.waitingObjects(PATIENCE_ROUNDS, PARKED_LOOKED_AT)) parkedObjects.add(bytesToHex(id));
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
    stale: isStale(space),
    unplaced: awaitsPlace(space),
    aclCount: aclKeptNowhereElse(space),
  };
}

/** Whether rows are older than the log. */
const isStale = ({ engine }: ReplicaSource): boolean => engine.objects.stale().length > 0 || engine.isOwing();

const awaitsPlace = ({ acl }: ReplicaSource): boolean =>
  acl.pending.list().some(({ pending }) => pending.kind === "acl" && acl.dropped(pending.id)?.named === true);

function aclKeptNowhereElse({ engine, acl, accountKey }: ReplicaSource): number {
  const { sync } = engine.store;
  const proposals = acl.pending
    .list()
    .filter(({ pending }) => equalBytes(pending.author, accountKey) && !sync.hasRecord("peer", pending.id));
  return sync.recordsKeptNowhereElse() + proposals.length;
}

/** Nothing at all is unconfirmed or unjudged. */
const isComplete = ({ unconfirmedCount, parkedCount, stale, unplaced, aclCount }: Backlog): boolean =>
  unconfirmedCount === 0 && parkedCount === 0 && !stale && !unplaced && aclCount === 0;

export function factsOf(space: ReplicaSource): SpaceFacts {
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
    stale: backlog.stale,
  };
}

/** Changes that follow ACL records which nobody else has are of no use to anybody else either. */
function isObjectComplete(space: ReplicaSource, object: ObjectEntry): boolean {
  const { sync, parked, unopened } = space.engine.store;
  const waits =
    unopened.waitingCountOf(object.no, PATIENCE_ROUNDS) > 0 ||
    (parked.waitingCount(PATIENCE_ROUNDS) > 0 && backlogOf(space).parkedObjects.has(bytesToHex(object.id)));
  const isKept = sync.keptNowhereElseOf(object.no) === 0 && aclKeptNowhereElse(space) === 0;
  return isKept && !waits && !isStale(space) && !awaitsPlace(space);
}

export function objectFactsOf(space: ReplicaSource, objectId: string): ObjectFacts | undefined {
  const object = space.engine.object(objectId);
  if (!object || object.deleted) return undefined;
  const { changes, sync } = space.engine.store;
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

/** Why what waits for this does so in vain. */
const inVain = (kind: WaitKind, what: Uint8Array): Refusal =>
  kind === "change" || kind === "acl"
    ? refusal("change.follows_nothing", { what: cidFromDigest(what) })
    : refusal("change.waits_in_vain", { kind, what: bytesToHex(what) });

export function spaceBacklogOf(space: ReplicaSource): SpaceBacklog {
  const { engine, acl } = space;
  const { parked, unopened } = engine.store;
  const backlog = backlogOf(space);
  return {
    parked: backlog.parkedCount,
    quarantined: [
      ...parked.orphans(PATIENCE_ROUNDS, QUARANTINE_SHOWN).map(({ id, waitKind, waitFor }) => ({
        id: cidFromDigest(id),
        refusal: inVain(waitKind, waitFor),
      })),
      ...unopened.inVain(PATIENCE_ROUNDS, QUARANTINE_SHOWN).map((id) => ({
        id: cidFromDigest(id),
        refusal: refusal("change.body_missing"),
      })),
      ...parked.quarantineList(QUARANTINE_SHOWN).map(({ id, refusal }) => ({ id: cidFromDigest(id), refusal })),
    ],
    unconfirmed: backlog.unconfirmedCount,
    unconfirmedRights: backlog.aclCount,
    alarms: acl.alarms.list(),
    cut: cutChangesOf(space),
    proposals: acl.pending.list().length,
  };
}
