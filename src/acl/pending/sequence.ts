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
  /** To be called of a record before those that it follows. */
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

/** So many records of a branch get their places by one record of the log: each costs some hundred bytes of it. */
const BRIDGED_AT_ONCE = 1000;

/** What planning asks of the device. */
export interface SequencePort {
  state: AclState;
  /** What waits here, the one that is planned among it. */
  held: HeldRecords;
  /** Whether changes of members name this record of a lost branch. */
  isNamed(recordId: Uint8Array): boolean;
  /** Why the owner's next record could not consist of these ops. */
  faultOf(ops: readonly AclOp[], minClock: number): Refusal | undefined;
}

/** What the next record is to hold, perhaps nothing, with the parts that from now on wait for themselves. */
interface Sequence {
  readonly ops: AclOp[];
  readonly minClock: number;
  readonly placed: AclRecord[];
  readonly parts: PendingRecord[];
}

/**
 * What an owner's device makes of a proposal, or of a record of a branch that lost: it goes into the next record
 * (`compose`), or it is forgotten (`drop`), or kept for later (`wait`).
 */
type SequencePlan = { compose(): Sequence } | { drop: Refusal } | { wait: Refusal };

/**
 * Plans how what somebody asked for is proposed again on the head of the moment. Its author's rights are those of now. A
 * record that can no longer take effect is given a place all the same where changes name it or one that follows it.
 */
export type Sequencer = (pending: PendingRecord) => SequencePlan;

/** Plans for one state of the log and what is held. What it found of a record's branch it need not look for again. */
export function createSequencer(port: SequencePort): Sequencer {
  const bridgeTo = createBridges(port);
  return (pending) => {
    const known = tookEffect(port.state, pending.id);
    if (known) return { drop: known };
    if (pending.kind === "acl") return planRecord(port, bridgeTo(pending), pending);
    if (!port.state.positions.has(bytesToHex(pending.basis))) return { wait: refusal("acl.basis_unknown") };
    const ops: AclOp[] = [{ op: "sequenced", pending: pending.bytes }];
    const fault = superseded(port.state, pending, pending.basis) ?? port.faultOf(ops, 0);
    return fault ? { drop: fault } : { compose: () => ({ ops, minClock: 0, placed: [], parts: [] }) };
  };
}

/** The records without a place between the log and a record that waits, as a list from its end. */
interface Bridge {
  /** The record with a place that the first of them follows. */
  readonly from: Uint8Array;
  /** The last of them, with those before it; undefined where the record follows what has a place. */
  readonly last: { readonly record: AclRecord; readonly bridge: Bridge } | undefined;
}

/**
 * Finds the bridge to each record, or why there is none. What was found of one is the beginning of what is found of those that
 * follow it, so that a branch is planned in time that grows with its length, not with the square of it.
 */
function createBridges({ state, held }: SequencePort): (record: AclRecord) => Bridge | Refusal {
  const known = new Map<string, Bridge | Refusal>();

  /** What this record follows, unless that has a place. */
  const before = ({ prev }: AclRecord): AclRecord | undefined => {
    if (!prev || state.positions.has(bytesToHex(prev))) return undefined;
    const found = held.byId(prev);
    return found?.kind === "acl" ? found : undefined;
  };

  /** When that of the record before is known. */
  const extended = (record: AclRecord): Bridge | Refusal => {
    const last = before(record);
    if (!last) {
      const isPlaced = record.prev && state.positions.has(bytesToHex(record.prev));
      return isPlaced ? { from: record.prev!, last: undefined } : refusal("acl.prev_unplaced");
    }
    if (record.clock < last.clock) return refusal("acl.clock_misfit");
    const bridge = known.get(bytesToHex(last.id))!;
    return "code" in bridge ? bridge : { from: bridge.from, last: { record: last, bridge } };
  };

  return (record) => {
    const unknown: AclRecord[] = [];
    for (let at: AclRecord | undefined = record; at && !known.has(bytesToHex(at.id)); at = before(at)) unknown.push(at);
    for (const one of unknown.reverse()) known.set(bytesToHex(one.id), extended(one));
    return known.get(bytesToHex(record.id))!;
  };
}

/** The records of a bridge, oldest first. */
function recordsOf(bridge: Bridge): AclRecord[] {
  const records: AclRecord[] = [];
  for (let { last } = bridge; last; last = last.bridge.last) records.push(last.record);
  return records.reverse();
}

/**
 * What goes into the next record with a record that waits: its bridge, of which as much as one record holds. Where that is not all,
 * the record waits on behind it.
 */
function behindBridge(bridge: Bridge, record: AclRecord, whole: (before: readonly AclRecord[]) => Sequence): Sequence {
  const before = recordsOf(bridge);
  if (before.length <= BRIDGED_AT_ONCE) return whole(before);
  const placed = before.slice(0, BRIDGED_AT_ONCE);
  return { ops: placed.map(aliasOf), minClock: placed.at(-1)!.clock, placed, parts: [record] };
}

/** Stands for a bridge in a trial: all of it would have one position, so that its last record has it right behind the log. */
const trialOf = ({ from, last }: Bridge): AclOp[] => (last ? [aliasOf({ ...last.record, prev: from })] : []);

function planRecord(port: SequencePort, bridge: Bridge | Refusal, record: AclRecord): SequencePlan {
  if ("code" in bridge) return bridge.code === "acl.prev_unplaced" ? { wait: bridge } : { drop: bridge };
  if (record.ops.some((op) => op.op === "sequenced" || op.op === "alias")) return planParts(port, bridge, record);
  const trial = trialOf(bridge);
  const composed = (last: AclOp) => () =>
    behindBridge(bridge, record, (before) => {
      const ops = [...before.map(aliasOf), last];
      return { ops, minClock: record.clock, placed: [...before, record], parts: [] };
    });
  const again: AclOp = { op: "sequenced", pending: record.bytes };
  const fault = superseded(port.state, record, bridge.from) ?? port.faultOf([...trial, again], record.clock);
  if (!fault) return { compose: composed(again) };
  const place = aliasOf(record);
  if (port.isNamed(record.id) && !port.faultOf([...trial, place], record.clock)) return { compose: composed(place) };
  return port.held.isFollowed(record.id) ? { wait: refusal("acl.followed") } : { drop: fault };
}

/** A record that itself gave effect to others: what it sequenced is sequenced again, the record only if it is named. */
function planParts(port: SequencePort, bridge: Bridge, record: AclRecord): SequencePlan {
  const { state } = port;
  const aliases = record.ops.filter((op) => op.op === "alias" && !tookEffect(state, op.id));
  const parts = record.ops.flatMap((op) => {
    const pending = op.op === "sequenced" ? decodePending(op.pending) : undefined;
    return pending && !tookEffect(state, pending.id) ? [pending] : [];
  });
  const isNamed = port.isNamed(record.id);
  const withOwn = (ops: readonly AclOp[], before: readonly AclOp[]): AclOp[] =>
    isNamed ? [...ops, ...before, aliasOf(record)] : [...ops];
  const again: AclOp[] = parts.map(({ bytes }) => ({ op: "sequenced", pending: bytes }));
  for (const [ops, left] of [
    [[...aliases, ...again], []],
    [aliases, parts],
    [[], parts],
  ] as const) {
    const trial = withOwn(ops, trialOf(bridge));
    if (trial.length === 0 || port.faultOf(trial, record.clock)) continue;
    return {
      compose: () =>
        behindBridge(bridge, record, (before) => {
          const whole = withOwn(ops, before.map(aliasOf));
          // With the place of an older record go the keys that it was given it with.
          const placed = whole.some((op) => op.op === "alias") ? [record] : [];
          // And what is sequenced again gets a place of its own, under whose keys changes may have been written.
          const placedAgain = left.length > 0 ? [] : parts.flatMap((part) => (part.kind === "acl" ? [part] : []));
          return { ops: whole, minClock: record.clock, placed: [...placed, ...placedAgain], parts: [...left] };
        }),
    };
  }
  if (parts.length > 0) return { compose: () => ({ ops: [], minClock: 0, placed: [], parts }) };
  return port.held.isFollowed(record.id)
    ? { wait: refusal("acl.followed") }
    : { drop: refusal("acl.took_effect_whole") };
}

const aliasOf = (record: Pick<AclRecord, "id" | "prev" | "clock">): AclOp => ({
  op: "alias",
  id: record.id,
  prev: record.prev!,
  clock: record.clock,
});

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
