import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import { type Refusal, refusal, refusalText } from "../../protocol/refusals.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { type AclRecord, decodeAclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { decodeAclSnapshot, encodeAclSnapshot, encodingAclSnapshot } from "../reducer/acl-snapshot.ts";
import { applyAclRecord } from "../reducer/reducer.ts";
import { type AclState, emptyAcl } from "../reducer/state.ts";

/** Thrown when a stored log does not verify: the file was damaged or written by somebody else. */
class AclDamagedError extends StoredFileError {
  constructor(message: string) {
    super("damaged", message);
  }
}

/** A log as it is stored, and the state it leads to. */
export interface StoredLog {
  readonly state: AclState;
  readonly records: StoredRecord[];
  /** The first records, this many, need not be judged when the log is opened again. */
  readonly judged: number;
}

const SNAPSHOT_KEY = "acl-snapshot";
/**
 * A new snapshot is due when opening a space would judge at least this many records, and at least a sixteenth of them all;
 * not more often, because each snapshot is written whole.
 */
const JUDGED_RECORDS = 512;

/** Reads a space's log: takes the state from the snapshot and judges the records after it. Throws AclDamagedError. */
export function loadAclLog(store: SpaceStore, header: SpaceHeader): StoredLog {
  const rows = store.aclRecords();
  if (rows.length === 0) throw new AclDamagedError(`${store.path}: the ACL log has no root`);
  const records = rows.map(({ id, bytes }) => new StoredRecord(id, bytes));
  for (const [pos, { id, bytes }] of records.entries())
    if (!equalBytes(sha256(bytes), id)) throw new AclDamagedError(`${store.path}: ACL record ${pos} was damaged`);
  const kept = keptState(store, records);
  const state = kept ?? emptyAcl();
  const judged = state.clocks.length;
  for (let pos = judged; pos < records.length; pos++) {
    const { id, bytes } = records[pos]!;
    const record = decodeAclRecord(bytes);
    const fault = record ? faultOf(state, record, header) : refusal("acl.record_malformed");
    if (fault) throw new AclDamagedError(`${store.path}: ACL record ${pos}: ${refusalText(fault)}`);
    records[pos] = new StoredRecord(id, bytes, record!);
  }
  return { state, records, judged };
}

/**
 * Judges a stored log of which no snapshot is kept, or only of a small part, and returns a snapshot to keep; one record a step.
 * Opening the log is short then. Returns undefined where it is so already. Throws AclDamagedError.
 */
export function* judgingAclLog(store: SpaceStore, header: SpaceHeader): Generator<void, Uint8Array | undefined> {
  const records: StoredRecord[] = [];
  for (const { id, bytes } of store.aclRecords()) {
    yield;
    if (!equalBytes(sha256(bytes), id)) return undefined; // opening it says what is wrong
    records.push(new StoredRecord(id, bytes));
  }
  const judged = keptState(store, records)?.clocks.length ?? 0;
  if (!isLong(records.length, judged)) return undefined;
  const state = yield* statesUpTo(store, header, records, records.length);
  return yield* encodingAclSnapshot(state, records);
}

/** Yields the state after the first `count` records of a log, in a copy of its own; one record per step. */
export function* statesUpTo(
  store: SpaceStore,
  header: SpaceHeader,
  records: readonly StoredRecord[],
  count: number,
): Generator<void, AclState> {
  const kept = keptState(store, records);
  const state = kept && kept.clocks.length <= count ? kept : emptyAcl();
  for (const { record } of records.slice(state.clocks.length, count)) {
    yield;
    const fault = faultOf(state, record, header);
    if (fault) throw new AclDamagedError(`ACL record ${bytesToHex(record.id)}: ${refusalText(fault)}`);
  }
  return state;
}

function faultOf(state: AclState, record: AclRecord, header: SpaceHeader): Refusal | undefined {
  const applied = applyAclRecord(state, record, header);
  return "fault" in applied ? applied.fault : undefined;
}

function keptState(store: SpaceStore, records: readonly StoredRecord[]): AclState | undefined {
  const bytes = store.meta(SNAPSHOT_KEY);
  return bytes && decodeAclSnapshot(bytes, records);
}

/** Whether opening this log again would take long. */
export function isSnapshotDue({ records, judged }: StoredLog): boolean {
  return isLong(records.length, judged);
}

const isLong = (count: number, judged: number): boolean => count - judged >= Math.max(JUDGED_RECORDS, count >> 4);

/** Keeps a snapshot of the log, in a write of the commit queue. */
export function withSnapshot(store: SpaceStore, log: StoredLog): StoredLog {
  putSnapshot(store, encodeAclSnapshot(log.state, log.records));
  return { ...log, judged: log.records.length };
}

/** Stores the snapshot beside its log. */
export const putSnapshot = (store: SpaceStore, snapshot: Uint8Array): void => store.putMeta(SNAPSHOT_KEY, snapshot);
