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

/**
 * Records that wait but can never take effect, and records that do not wait although one that may take effect follows
 * them.
 */
interface Corrections {
  readonly dead: readonly PendingRecord[];
  readonly again: readonly PendingRecord[];
}

/** The pending records, judged by the log as it is now. */
export type PendingBook = ReturnType<typeof createPendingBook>;

/** Up to this many, the write that changed the log looks for those that wait in vain; it takes a few milliseconds. */
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

  /** The sequencing plans, for the current log, if these records wait here. */
  const sequencer = (held: HeldRecords = heldRecords(waiting()), faultOf = ownersFaultOf): Sequencer =>
    createSequencer({ state: acl.state, held, isNamed: acl.isAwaited, faultOf });

  /**
   * Adds the records of lost branches that they follow and that are still known: without those they never get a position.
   */
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

  /**
   * Of these records and those they follow: the ones that may yet take effect, with the ones those follow. One record per
   * step.
   */
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

  /**
   * Keeps records; when there is no room, it first drops those that can no longer take effect. Returns those that found
   * no room.
   */
  const keepPending = (records: readonly PendingRecord[]): PendingRecord[] => {
    const nowMs = deps.clock.nowMs();
    const full = records.filter((pending) => !acl.pending.put(pending, nowMs));
    if (full.length === 0) return [];
    forgetDead();
    return full.filter((pending) => !acl.pending.put(pending, nowMs));
  };

  /**
   * Forgotten records of lost branches that changes named since, with those they follow; they wait again. Returns them.
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

  function* corrections(): Generator<void, Corrections> {
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

  const putRight = ({ dead, again }: Corrections): void => {
    for (const pending of dead) acl.pending.drop(pending.id);
    for (const pending of again) acl.pending.put(pending, deps.clock.nowMs(), true);
  };

  /** Forgets pending records that the log has made impossible, and what waits for them. */
  const forgetDead = (): void => putRight(atOnce(corrections()));

  return {
    isOwn,
    sequencer,
    faultOf: ownersFaultOf,
    ownFaultOf,
    /** Of these and the pending records, those that may yet take effect. */
    living: (records: readonly PendingRecord[]): HeldRecords => atOnce(living([...waiting(), ...records])),
    keep: keepPending,
    namedAgain,
    /**
     * The index, from `from` on, of the next record that can be sequenced or forgotten; the list's length where there is
     * none. In slices.
     */
    nextDue: (held: readonly HeldPending[], from: number, mayGo: (one: HeldPending) => boolean): Promise<number> =>
      inSlices(nextDue(held, from, mayGo)),
    /** Called in a write, after the log has changed. Where many records wait, it leaves them to `findDead`. */
    forgetDeadOfFew(): void {
      if (acl.pending.count() <= LOOKED_THROUGH_AT_ONCE) forgetDead();
    },
    /**
     * Looks for dead records in slices. Resolves to a function that forgets them in a write; to undefined where there are
     * none.
     */
    async findDead(): Promise<(() => void) | undefined> {
      const { id } = acl.head();
      const found = await inSlices(corrections());
      if (found.dead.length + found.again.length === 0) return undefined;
      return () => {
        // If the log has changed since, the next call looks again.
        if (equalBytes(acl.head().id, id)) putRight(found);
      };
    },
  };
}
