import type { PendingRecord } from "../../acl/record/record.ts";
import { equalBytes } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { isStub } from "../../change/codec/change-stub.ts";
import type { Reach } from "../../store/tables/sync-table.ts";
import type { Claim, RemoteState, Replica } from "../port/replica.ts";
import { coverage, hasOurBodies } from "./own-vector.ts";
import type { ReplicaSource } from "./source.ts";

/** How many changes, and how many bytes of them, are asked back at most. */
const SAMPLE_CHANGES = 16;
const SAMPLE_BYTES = 256 << 10;

/** The part of a replica that counts what peers keep. */
export const claims = (space: ReplicaSource, pendingDigest: () => Uint8Array): Pick<Replica, "claimOf"> => {
  const unkept = space.store.memo(() => unkeptOf(space));
  return { claimOf: (state) => claimOf(space, unkept(), pendingDigest(), state) };
};

/** What no peer is known to keep. */
interface Unkept {
  /** Whether any changes are among it. */
  readonly changes: boolean;
  /** Position of the first such record of the ACL log. */
  readonly from: number;
  /** Pending records. */
  readonly pending: readonly PendingRecord[];
}

function unkeptOf({ acl, store: { sync } }: ReplicaSource): Unkept {
  const isNew = ({ id }: { readonly id: Uint8Array }): boolean => !sync.hasRecord("peer", id);
  const log = acl.records();
  const from = log.findIndex(isNew);
  return {
    changes: !sync.hasAll("peer"),
    from: from < 0 ? log.length : from,
    pending: acl.pending.list().flatMap(({ pending }) => (isNew(pending) ? [pending] : [])),
  };
}

/**
 * What a remote in this state claims to keep and no peer was known to keep. Undefined when that is nothing, and while the remote
 * lacks bodies that are here.
 */
function claimOf(
  space: ReplicaSource,
  unkept: Unkept,
  pendingDigest: Uint8Array,
  state: RemoteState,
): Claim | undefined {
  if (!hasOurBodies(space, state)) return undefined;
  const { store } = space;
  const { sync } = store;
  const mark = sync.markOf("peer");
  const reach = unkept.changes
    ? sync.reachOf("peer", coverage(space, state.vector))
    : { upto: mark, again: [], isPart: false };
  const doubtsBefore = sync.doubts();
  const log = space.acl.records();
  // A replica that has a record of the log has all records before it.
  const theirs = log.slice(0, log.findIndex(({ id }) => equalBytes(id, state.aclHead)) + 1);
  const from = Math.min(unkept.from, theirs.length);
  const records = theirs.slice(from);
  const pending = equalBytes(state.pending, pendingDigest) ? unkept.pending : [];
  const isNothing = reach.upto <= mark && reach.again.length + records.length + pending.length === 0;
  if (isNothing) return undefined;
  return {
    isPart: reach.isPart,
    changeIds: sampleOf(space, mark, reach),
    from,
    records: records.map(({ bytes }) => bytes),
    pending: pending.map(({ bytes }) => bytes),
    accept: () =>
      space.engine.writeNotes(() => {
        // A writer of whom nothing counted when the claim was made may have changes that count by now: those were passed
        // over, and are asked for next time.
        if (sync.doubts() === doubtsBefore) sync.advance("peer", reach);
        for (const { id } of [...records, ...pending]) sync.noteRecord("peer", id);
      }),
  };
}

/** Ids of some changes, by their numbers in the order of arrival here; `after` is exclusive. */
function sampleOf({ engine, store: { changes } }: ReplicaSource, after: number, { upto, again }: Reach): Uint8Array[] {
  const ids: Uint8Array[] = [];
  let bytes = 0;
  for (const no of [...someOf(again), ...numbersWithin(after, upto)]) {
    const change = changes.byNo(no);
    // Derived roots are nobody's: every device computes them. Stubs prove nothing: deleted objects may be kept as stubs,
    // and this side may have no more itself.
    if (!change || change.writer === 0 || isStub(change.bytes) || engine.objects.byNo(change.objectNo)?.deleted)
      continue;
    if (!change.counts) continue; // if the remote did not know the author when the change came, it has only a stub
    bytes += change.bytes.length;
    if (bytes > SAMPLE_BYTES && ids.length > 0) break;
    ids.push(change.id);
  }
  return ids;
}

function someOf(numbers: readonly number[]): number[] {
  return [...numbersWithin(-1, numbers.length - 1)].map((index) => numbers[index]!);
}

function numbersWithin(after: number, upto: number): Set<number> {
  const span = upto - after;
  if (span <= SAMPLE_CHANGES) return new Set(Array.from({ length: span }, (_, index) => upto - index));
  const numbers = new Set([upto]);
  while (numbers.size < SAMPLE_CHANGES) {
    const random = Buffer.from(randomBytes(6)).readUIntBE(0, 6);
    numbers.add(after + 1 + (random % span));
  }
  return numbers;
}
