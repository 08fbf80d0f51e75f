import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { AclContext } from "../compose/compose.ts";
import { openEpochKey, openPreviousKey } from "../record/epoch.ts";
import type { AclOp } from "../record/op.ts";
import type { AclRecord, PendingRecord } from "../record/record.ts";
import { sequencedPending } from "../record/signed-parts.ts";
import { tookEffect } from "../reducer/reducer.ts";
import { type AclState, pendingRequestOf } from "../reducer/state.ts";
import { superseded } from "../reducer/superseded.ts";

/** The pending records, by id and by the record they follow. */
export interface HeldRecords {
  byId(id: Uint8Array): PendingRecord | undefined;
  /** Whether one of these records follows this one. */
  isFollowed(id: Uint8Array): boolean;
  /** Whether one of these records takes back this account's request. */
  isTakenBack(request: Uint8Array, account: Uint8Array): boolean;
  /** Call this for a record before those that it follows. */
  drop(record: PendingRecord): void;
  all(): PendingRecord[];
}

export function heldRecords(records: readonly PendingRecord[]): HeldRecords {
  const byId = new Map(records.map((record) => [bytesToHex(record.id), record]));
  /** How many follow a record, and how many take back a request. */
  const counts = new Map<string, number>();
  const count = (record: PendingRecord, by: number): void => {
    for (const name of namesOf(record)) counts.set(name, (counts.get(name) ?? 0) + by);
  };
  for (const record of byId.values()) count(record, 1);
  return {
    byId: (id) => byId.get(bytesToHex(id)),
    isFollowed: (id) => (counts.get(bytesToHex(id)) ?? 0) > 0,
    isTakenBack: (request, account) => (counts.get(takenBack(request, account)) ?? 0) > 0,
    drop(record) {
      if (byId.delete(bytesToHex(record.id))) count(record, -1);
    },
    all: () => [...byId.values()],
  };
}

const takenBack = (request: Uint8Array, account: Uint8Array): string => `${bytesToHex(request)}/${bytesToHex(account)}`;

/** What a record follows or takes back. */
function namesOf(record: PendingRecord): string[] {
  if (record.kind === "acl") return record.prev ? [bytesToHex(record.prev)] : [];
  return record.ops.flatMap((op) => (op.op === "requestCancel" ? [takenBack(op.request, record.author)] : []));
}

/**
 * One record of the log gives at most this many records of a branch their positions: each takes some hundred bytes of it.
 */
const BRIDGED_AT_ONCE = 1000;

/** What planning needs from the device. */
export interface SequencePort {
  state: AclState;
  /** The records that wait here, including the one that is planned. */
  held: HeldRecords;
  /** Whether changes of members name this record of a lost branch. */
  isNamed(recordId: Uint8Array): boolean;
  /** Why the owner's next record could not consist of these ops. */
  faultOf(ops: readonly AclOp[], minClock: number): Refusal | undefined;
}

/** What the next record is to hold (perhaps nothing), and the parts that from now on wait by themselves. */
interface Sequence {
  readonly ops: AclOp[];
  readonly minClock: number;
  readonly positioned: AclRecord[];
  readonly parts: PendingRecord[];
}

/**
 * What an owner's device does with a proposal or a record of a lost branch: it goes into the next record (`compose`), it
 * is forgotten (`drop`), or it is kept for later (`wait`).
 */
type SequencePlan = { compose(): Sequence } | { drop: Refusal } | { wait: Refusal };

/**
 * Plans how a request is proposed again on the current head. Its author's current rights apply. A record that can no
 * longer take effect still gets a position where changes name it or a record that follows it.
 */
export type Sequencer = (pending: PendingRecord) => SequencePlan;

/** Plans for one state of the log and its pending records. It remembers what it found of a record's branch. */
export function createSequencer(port: SequencePort): Sequencer {
  const bridgeTo = createBridges(port);
  const waits = createWaitingParts(port);
  const plan: Sequencer = (pending) => {
    const known = tookEffect(port.state, pending.id);
    if (known) return { drop: known };
    if (pending.kind === "acl") return planRecord(port, { bridge: bridgeTo(pending), waits, plan }, pending);
    if (!port.state.positions.has(bytesToHex(pending.basis))) return { wait: refusal("acl.basis_unknown") };
    const ops: AclOp[] = [{ op: "sequenced", pending: pending.bytes }];
    const fault = superseded(port.state, pending, pending.basis) ?? port.faultOf(ops, 0);
    if (!fault) return { compose: () => ({ ops, minClock: 0, positioned: [], parts: [] }) };
    if (isBehindWithdrawal(port, pending, fault)) return { wait: refusal("acl.behind_withdrawal") };
    return isBehindRequest(waits, pending, fault) ? { wait: refusal("acl.behind_request") } : { drop: fault };
  };
  return plan;
}

/** A request whose author has one in the log, which is about to be taken back. */
function isBehindWithdrawal({ state, held }: SequencePort, { author }: PendingRecord, fault: Refusal): boolean {
  if (fault.code !== "acl.request_pending") return false;
  const earlier = pendingRequestOf(state, author);
  return earlier !== undefined && held.isTakenBack(earlier.id, author);
}

/** The withdrawal of a request, or the answer to one, that waits itself. */
function isBehindRequest(waits: WaitingParts, { ops, author }: PendingRecord, fault: Refusal): boolean {
  if (fault.code !== "acl.request_not_pending") return false;
  return ops.some((op) => {
    if (op.op !== "requestCancel" && op.op !== "requestAccept" && op.op !== "requestDecline") return false;
    const request = waits(op.request);
    return request !== undefined && (op.op !== "requestCancel" || equalBytes(request.author, author));
  });
}

/** The pending record of an id that waits for its position: alone, or in a record of a lost branch, which gave effect to it. */
type WaitingParts = (id: Uint8Array) => PendingRecord | undefined;

function createWaitingParts({ state, held }: SequencePort): WaitingParts {
  let within: ReturnType<typeof partsByIdOf> | undefined;
  return (id) => {
    if (tookEffect(state, id)) return undefined;
    const alone = held.byId(id);
    if (alone) return alone;
    within ??= partsByIdOf(held);
    return within.get(bytesToHex(id))?.find(({ record }) => held.byId(record.id))?.part;
  };
}

const partsByIdOf = (held: HeldRecords) =>
  Map.groupBy(
    held.all().flatMap((record) => (record.kind === "acl" ? partsOf(record).map((part) => ({ record, part })) : [])),
    ({ part }) => bytesToHex(part.id),
  );

/** What a record gave effect to. */
const partsOf = ({ ops }: AclRecord): PendingRecord[] =>
  ops.flatMap((op) => (op.op === "sequenced" ? (sequencedPending(op.pending) ?? []) : []));

/** The records without a position between the log and a pending record, as a list from its end. */
interface Bridge {
  /** The record with a position that the first of them follows. */
  readonly from: Uint8Array;
  /** The last of them, with those before it; undefined where the pending record follows one that has a position. */
  readonly last: { readonly record: AclRecord; readonly bridge: Bridge } | undefined;
}

/**
 * Finds the bridge to each record, or why there is none. The bridge of one record is the beginning of the bridges of
 * those that follow it, so planning a branch takes time in proportion to its length, not to its square.
 */
function createBridges({ state, held }: SequencePort): (record: AclRecord) => Bridge | Refusal {
  const known = new Map<string, Bridge | Refusal>();

  /** The record that this one follows, unless that one has a position. */
  const before = ({ prev }: AclRecord): AclRecord | undefined => {
    if (!prev || state.positions.has(bytesToHex(prev))) return undefined;
    const found = held.byId(prev);
    return found?.kind === "acl" ? found : undefined;
  };

  /** The bridge of a record whose predecessor's is known. */
  const extended = (record: AclRecord): Bridge | Refusal => {
    const last = before(record);
    if (!last) {
      const hasPosition = record.prev && state.positions.has(bytesToHex(record.prev));
      return hasPosition ? { from: record.prev!, last: undefined } : refusal("acl.prev_unplaced");
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
 * What goes into the next record for a pending record: as much of its bridge as one record can hold. Where that is not
 * all, the pending record waits for the rest.
 */
function behindBridge(bridge: Bridge, record: AclRecord, whole: (before: readonly AclRecord[]) => Sequence): Sequence {
  const before = recordsOf(bridge);
  if (before.length <= BRIDGED_AT_ONCE) return whole(before);
  const positioned = before.slice(0, BRIDGED_AT_ONCE);
  return { ops: positioned.map(aliasOf), minClock: positioned.at(-1)!.clock, positioned, parts: [record] };
}

/**
 * Stands for a bridge in a trial: the whole bridge has one position, so its last record stands for it right behind the
 * log.
 */
const trialOf = ({ from, last }: Bridge): AclOp[] => (last ? [aliasOf({ ...last.record, prev: from })] : []);

/** What planning a record of a lost branch needs to know of others. */
interface Others {
  readonly bridge: Bridge | Refusal;
  readonly waits: WaitingParts;
  readonly plan: Sequencer;
}

function planRecord(port: SequencePort, { bridge, waits, plan }: Others, record: AclRecord): SequencePlan {
  if ("code" in bridge) return bridge.code === "acl.prev_unplaced" ? { wait: bridge } : { drop: bridge };
  if (record.ops.some((op) => op.op === "sequenced" || op.op === "alias"))
    return planParts(port, { bridge, plan }, record);
  const trial = trialOf(bridge);
  const composed = (last: AclOp) => () =>
    behindBridge(bridge, record, (before) => {
      const ops = [...before.map(aliasOf), last];
      return { ops, minClock: record.clock, positioned: [...before, record], parts: [] };
    });
  const again: AclOp = { op: "sequenced", pending: record.bytes };
  const fault = superseded(port.state, record, bridge.from) ?? port.faultOf([...trial, again], record.clock);
  if (!fault) return { compose: composed(again) };
  const alias = aliasOf(record);
  if (port.isNamed(record.id) && !port.faultOf([...trial, alias], record.clock)) return { compose: composed(alias) };
  if (port.held.isFollowed(record.id)) return { wait: refusal("acl.followed") };
  return isBehindRequest(waits, record, fault) ? { wait: refusal("acl.behind_request") } : { drop: fault };
}

/**
 * Plans a record that itself gave effect to others: what it sequenced is sequenced again; the record itself only if it is
 * named.
 */
function planParts(
  port: SequencePort,
  { bridge, plan }: { readonly bridge: Bridge; readonly plan: Sequencer },
  record: AclRecord,
): SequencePlan {
  const { state } = port;
  const aliases = record.ops.filter((op) => op.op === "alias" && !tookEffect(state, op.id));
  const parts = partsOf(record).filter(({ id }) => !tookEffect(state, id));
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
          // An older record that gets its position carries the keys it was made with.
          const positioned = whole.some((op) => op.op === "alias") ? [record] : [];
          // What is sequenced again also gets a position of its own, because changes may have been written under its keys.
          const positionedAgain = left.length > 0 ? [] : parts.flatMap((part) => (part.kind === "acl" ? [part] : []));
          return {
            ops: whole,
            minClock: record.clock,
            positioned: [...positioned, ...positionedAgain],
            parts: [...left],
          };
        }),
    };
  }
  // Each part waits by itself from now on, if it may yet take effect; the record does while another one follows it.
  const isFollowed = port.held.isFollowed(record.id);
  const alone = parts.filter((part) => !port.held.byId(part.id)).map((part) => ({ part, fate: plan(part) }));
  const freed = alone.flatMap(({ part, fate }) => ("drop" in fate ? [] : [part]));
  if (freed.length > 0)
    return {
      compose: () => ({ ops: [], minClock: 0, positioned: [], parts: isFollowed ? [...freed, record] : freed }),
    };
  if (isFollowed) return { wait: refusal("acl.followed") };
  const refused = alone.find(({ fate }) => "drop" in fate)?.fate;
  return refused ?? { drop: refusal("acl.took_effect_whole") };
}

const aliasOf = (record: Pick<AclRecord, "id" | "prev" | "clock">): AclOp => ({
  op: "alias",
  id: record.id,
  prev: record.prev!,
  clock: record.clock,
});

/** Keys of a lost branch that the log does not lead to: what was written under them must open for everybody. */
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
