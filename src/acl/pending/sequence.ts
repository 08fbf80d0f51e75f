import { bytesToHex } from "../../base/bytes.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { AclContext } from "../compose/compose.ts";
import { openEpochKey, openPreviousKey } from "../record/epoch.ts";
import type { AclOp } from "../record/op.ts";
import { type AclRecord, decodePending, type PendingRecord } from "../record/record.ts";
import { tookEffect } from "../reducer/reducer.ts";
import type { AclState } from "../reducer/state.ts";
import { superseded } from "../reducer/superseded.ts";

/** What waits, found by its id and by what it follows. */
export interface HeldRecords {
  byId(id: Uint8Array): PendingRecord | undefined;
  /** Whether one of these records follows this one. */
  isFollowed(id: Uint8Array): boolean;
  drop(record: PendingRecord): void;
  all(): PendingRecord[];
}

export function heldRecords(records: readonly PendingRecord[]): HeldRecords {
  const byId = new Map(records.map((record) => [bytesToHex(record.id), record]));
  const followers = new Map<string, number>();
  const count = (record: PendingRecord, by: number): void => {
    if (record.kind !== "acl" || !record.prev) return;
    const name = bytesToHex(record.prev);
    followers.set(name, (followers.get(name) ?? 0) + by);
  };
  for (const record of byId.values()) count(record, 1);
  return {
    byId: (id) => byId.get(bytesToHex(id)),
    isFollowed: (id) => (followers.get(bytesToHex(id)) ?? 0) > 0,
    drop(record) {
      if (byId.delete(bytesToHex(record.id))) count(record, -1);
    },
    all: () => [...byId.values()],
  };
}

/** What planning asks of the device. */
export interface SequencePort {
  state: AclState;
  /** What waits here, this one among it. */
  held: HeldRecords;
  /** Whether changes of members name this record of a lost branch. */
  isNamed(recordId: Uint8Array): boolean;
  /** Why the owner's next record could not consist of these ops. */
  faultOf(ops: readonly AclOp[], minClock: number): Refusal | undefined;
}

/**
 * What an owner's device makes of a proposal, or of a record of a branch that lost: `ops` for the next record (perhaps
 * none), with the parts that from now on wait for themselves; or it is forgotten (`drop`), or kept for later (`wait`).
 */
export type SequencePlan =
  | { ops: AclOp[]; minClock: number; placed: AclRecord[]; parts: PendingRecord[] }
  | { drop: Refusal }
  | { wait: Refusal };

/**
 * Plans how what somebody asked for is proposed again on the head of the moment. Its author's rights are those of now. A
 * record that can no longer take effect is given a place all the same where changes name it or one that follows it.
 */
export function sequenceProposal(port: SequencePort, pending: PendingRecord): SequencePlan {
  const known = tookEffect(port.state, pending.id);
  if (known) return { drop: known };
  if (pending.kind === "acl") return planRecord(port, pending);
  if (!port.state.positions.has(bytesToHex(pending.basis))) return { wait: refusal("acl.basis_unknown") };
  const ops: AclOp[] = [{ op: "sequenced", pending: pending.bytes }];
  const fault = superseded(port.state, pending, pending.basis) ?? port.faultOf(ops, 0);
  return fault ? { drop: fault } : { ops, minClock: 0, placed: [], parts: [] };
}

function planRecord(port: SequencePort, record: AclRecord): SequencePlan {
  const ancestors = unplacedAncestors(port, record);
  if (!ancestors) return { wait: refusal("acl.prev_unplaced") };
  const plan = { minClock: record.clock, placed: [...ancestors, record], parts: [] };
  const bridge = ancestors.map(aliasOf);
  const place = [...bridge, aliasOf(record)];
  if (record.ops.some((op) => op.op === "sequenced" || op.op === "alias")) return planParts(port, record, place);
  const again: AclOp[] = [...bridge, { op: "sequenced", pending: record.bytes }];
  const fault = superseded(port.state, record, (ancestors[0] ?? record).prev!) ?? port.faultOf(again, record.clock);
  if (!fault) return { ...plan, ops: again };
  if (port.isNamed(record.id) && !port.faultOf(place, record.clock)) return { ...plan, ops: place };
  return port.held.isFollowed(record.id) ? { wait: refusal("acl.followed") } : { drop: fault };
}

/** A record that itself gave effect to others: what it sequenced is sequenced again, the record only if it is named. */
function planParts(port: SequencePort, record: AclRecord, place: AclOp[]): SequencePlan {
  const { state } = port;
  const aliases = record.ops.filter((op) => op.op === "alias" && !tookEffect(state, op.id));
  const parts = record.ops.flatMap((op) => {
    const pending = op.op === "sequenced" ? decodePending(op.pending) : undefined;
    return pending && !tookEffect(state, pending.id) ? [pending] : [];
  });
  const own = port.isNamed(record.id) ? place : [];
  const again: AclOp[] = parts.map(({ bytes }) => ({ op: "sequenced", pending: bytes }));
  for (const [ops, left] of [
    [[...aliases, ...again, ...own], []],
    [[...aliases, ...own], parts],
    [own, parts],
  ] as const) {
    if (ops.length === 0 || port.faultOf(ops, record.clock)) continue;
    // With the place of an older record go the keys that it was given it with.
    const placed = ops.some((op) => op.op === "alias") ? [record] : [];
    // And what is sequenced again gets a place of its own, under whose keys changes may have been written.
    const placedAgain = left.length > 0 ? [] : parts.flatMap((part) => (part.kind === "acl" ? [part] : []));
    return { ops: [...ops], minClock: record.clock, placed: [...placed, ...placedAgain], parts: [...left] };
  }
  if (parts.length > 0) return { ops: [], minClock: 0, placed: [], parts };
  return port.held.isFollowed(record.id)
    ? { wait: refusal("acl.followed") }
    : { drop: refusal("acl.took_effect_whole") };
}

const aliasOf = (record: AclRecord): AclOp => ({
  op: "alias",
  id: record.id,
  prev: record.prev!,
  clock: record.clock,
});

/** The records before this one, oldest first, up to one that has a place; undefined when one is not here. */
function unplacedAncestors({ state, held }: SequencePort, record: AclRecord): AclRecord[] | undefined {
  const ancestors: AclRecord[] = [];
  for (let prev = record.prev; prev && !state.positions.has(bytesToHex(prev)); ) {
    const before = held.byId(prev);
    if (before?.kind !== "acl" || !before.prev) return undefined;
    ancestors.unshift(before);
    prev = before.prev;
  }
  return record.prev ? ancestors : undefined;
}

/** Keys of a branch that lost, unless the log leads to them: what was written under them must open for all. */
export function keysOfBranch(
  context: AclContext,
  records: readonly AclRecord[],
): { id: Uint8Array; key: Uint8Array }[] {
  const reached = new Set<string>();
  for (const { epoch } of context.state.epochs)
    for (const id of [epoch.keyId, ...epoch.previous.map(({ keyId }) => keyId)]) reached.add(bytesToHex(id));
  const found = new Map<string, { id: Uint8Array; key: Uint8Array }>();
  const find = (id: Uint8Array, key: Uint8Array | undefined) => {
    if (key && !reached.has(bytesToHex(id))) found.set(bytesToHex(id), { id, key });
  };
  for (const op of records.flatMap(({ ops }) => ops)) {
    if (op.op !== "readKeyChange") continue;
    const { epoch } = op;
    const key =
      context.keys.byId(epoch.keyId) ?? openEpochKey(context.spaceId, { epoch, shared: [] }, context.account.seed).key;
    find(epoch.keyId, key);
    for (const previous of epoch.previous) find(previous.keyId, key && openPreviousKey(key, epoch.keyId, previous));
  }
  return [...found.values()];
}
