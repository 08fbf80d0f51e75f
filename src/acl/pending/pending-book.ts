import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { atOnce, inSlices } from "../../base/slices.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { AclLog } from "../log/acl-log.ts";
import { type HeldPending, inOrder } from "../log/pending.ts";
import type { AclOp } from "../record/op.ts";
import type { PendingRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { tookEffect, tryAclOps } from "../reducer/reducer.ts";
import { createSequencer, type HeldRecords, heldRecords, type Sequencer } from "./sequence.ts";

/** What waits and never can take effect, and what does not wait although something follows it that may. */
interface Misplaced {
  readonly dead: readonly PendingRecord[];
  readonly again: readonly PendingRecord[];
}

/** What waits for its place in the log, judged by the log as it is now. */
export type PendingBook = ReturnType<typeof createPendingBook>;

/** Of so many, those that wait in vain are looked for in the write that moved the log; it takes a few milliseconds. */
const LOOKED_THROUGH_AT_ONCE = 256;

export function createPendingBook(deps: { header: SpaceHeader; accountKey: Uint8Array; acl: AclLog; clock: Clock }) {
  const { acl, accountKey } = deps;

  const isOwn = (pending: PendingRecord): boolean => equalBytes(pending.author, accountKey);

  const waiting = (): PendingRecord[] => acl.pending.list().map(({ pending }) => pending);

  /** Why the owner's next record could not consist of these ops. */
  const ownersFaultOf = (ops: readonly AclOp[], minClock: number): Refusal | undefined => {
    const { state } = acl;
    if (!state.owner) return refusal("acl.no_owner");
    const clock = Math.max(state.clocks.at(-1)!, minClock);
    const tried = tryAclOps(state, deps.header, { space: state.space!, author: state.owner, clock, ops });
    return "fault" in tried ? tried.fault : undefined;
  };

  /** Why this account's next record could not consist of these ops. */
  const ownFaultOf = (ops: readonly AclOp[]): Refusal | undefined => {
    const { state } = acl;
    const record = { space: state.space!, author: accountKey, clock: state.clocks.at(-1)!, ops };
    const tried = tryAclOps(state, deps.header, record);
    return "fault" in tried ? tried.fault : undefined;
  };

  /** What is planned on the log of this moment if these records wait here. */
  const sequencer = (held: HeldRecords = heldRecords(waiting()), faultOf = ownersFaultOf): Sequencer =>
    createSequencer({ state: acl.state, held, isNamed: acl.isAwaited, faultOf });

  /** With the records of lost branches that they follow and that are still known: without those they never get a place. */
  const withAncestors = (records: readonly PendingRecord[]): PendingRecord[] => {
    const found = new Map(records.map((pending) => [bytesToHex(pending.id), pending]));
    for (const pending of records) {
      let prev = pending.kind === "acl" ? pending.prev : undefined;
      while (prev && !found.has(bytesToHex(prev)) && !tookEffect(acl.state, prev)) {
        const before = acl.pending.lostRecord(prev);
        if (before) found.set(bytesToHex(prev), before);
        prev = before?.prev;
      }
    }
    return [...found.values()];
  };

  /** Of these, and of what they follow, those that may yet take effect, and those that such a one follows. A record a step. */
  function* living(records: readonly PendingRecord[]): Generator<void, HeldRecords> {
    const ordered = inOrder(withAncestors(records));
    const left = heldRecords(ordered);
    const plan = sequencer(left);
    for (const pending of ordered.toReversed()) {
      yield;
      if ("drop" in plan(pending)) left.drop(pending);
    }
    return left;
  }

  /** Keeps records; when there is no room, those go first that can no longer take effect. Answers what had no room. */
  const keepPending = (records: readonly PendingRecord[]): PendingRecord[] => {
    const nowMs = deps.clock.nowMs();
    const full = records.filter((pending) => !acl.pending.put(pending, nowMs));
    if (full.length === 0) return [];
    forgetDead();
    return full.filter((pending) => !acl.pending.put(pending, nowMs));
  };

  /**
   * Records of lost branches that were forgotten, but that changes which came since name, with those they follow: they
   * wait again. Answers them.
   */
  const namedAgain = (): PendingRecord[] => {
    const again = new Map<string, PendingRecord>();
    for (const lost of acl.pending.lost()) {
      let record = acl.isAwaited(lost.id) ? lost : undefined;
      for (
        ;
        record && !tookEffect(acl.state, record.id);
        record = record.prev ? acl.pending.lostRecord(record.prev) : undefined
      )
        if (!acl.pending.has(record.id)) again.set(bytesToHex(record.id), record);
    }
    return [...again.values()];
  };

  function* misplaced(): Generator<void, Misplaced> {
    const records = waiting();
    const left = yield* living(records);
    return {
      dead: records.filter(({ id }) => !left.byId(id)),
      again: left.all().filter(({ id }) => !acl.pending.has(id)),
    };
  }

  function* nextDue(
    held: readonly HeldPending[],
    from: number,
    mayGo: (one: HeldPending) => boolean,
  ): Generator<void, number> {
    const plan = sequencer();
    for (let at = from; at < held.length; at++) {
      yield;
      const one = held[at]!;
      if (acl.pending.has(one.pending.id) && mayGo(one) && !("wait" in plan(one.pending))) return at;
    }
    return held.length;
  }

  const putRight = ({ dead, again }: Misplaced): void => {
    for (const pending of dead) acl.pending.drop(pending.id);
    for (const pending of again) acl.pending.put(pending, deps.clock.nowMs(), true);
  };

  /** What the log has made impossible waits for nobody, and nothing waits for it. */
  const forgetDead = (): void => putRight(atOnce(misplaced()));

  return {
    isOwn,
    sequencer,
    faultOf: ownersFaultOf,
    ownFaultOf,
    /** Of these and what waits, what may yet take effect. */
    living: (records: readonly PendingRecord[]): HeldRecords => atOnce(living([...waiting(), ...records])),
    keep: keepPending,
    namedAgain,
    /** The index, from one on, of what can be sequenced now, or forgotten; their length where nothing is. In slices. */
    nextDue: (held: readonly HeldPending[], from: number, mayGo: (one: HeldPending) => boolean): Promise<number> =>
      inSlices(nextDue(held, from, mayGo)),
    /** In a write, after the log has moved. Where very much waits that is left to `findDead`. */
    forgetDeadOfFew(): void {
      if (acl.pending.count() <= LOOKED_THROUGH_AT_ONCE) forgetDead();
    },
    /** Looks for them in slices. Answers how to forget them, in a write; undefined where there are none. */
    async findDead(): Promise<(() => void) | undefined> {
      const { id } = acl.head();
      const found = await inSlices(misplaced());
      if (found.dead.length + found.again.length === 0) return undefined;
      return () => {
        // Found of an earlier log, it is looked for anew next time.
        if (equalBytes(acl.head().id, id)) putRight(found);
      };
    },
  };
}
