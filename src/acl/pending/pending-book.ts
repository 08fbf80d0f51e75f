import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclLog } from "../log/acl-log.ts";
import { inOrder } from "../log/pending.ts";
import type { AclOp } from "../record/op.ts";
import type { PendingRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { tookEffect, tryAclOps } from "../reducer/reducer.ts";
import { permissionOf } from "../reducer/state.ts";
import { type HeldRecords, heldRecords, type SequencePort, sequenceProposal } from "./sequence.ts";

/** What waits for its place in the log, judged by the log as it is now. */
export type PendingBook = ReturnType<typeof createPendingBook>;

export function createPendingBook(deps: {
  header: SpaceHeader;
  accountKey: Uint8Array;
  store: SpaceStore;
  acl: AclLog;
  clock: Clock;
}) {
  const { acl, store, accountKey } = deps;

  /** Whether changes of members wait for this record or stand where it stood. */
  const isNamed = (recordId: Uint8Array): boolean =>
    acl.dropped(recordId)?.named === true ||
    store.parked.waitingFor("acl", recordId).some(({ author }) => permissionOf(acl.state, author) !== "none");

  const isOwn = (pending: PendingRecord): boolean => equalBytes(pending.author, accountKey);

  const waiting = (): PendingRecord[] => acl.pending.list().map(({ pending }) => pending);

  /** What sequencing would see if these records waited here. */
  const sequencePort = (held: HeldRecords = heldRecords(waiting())): SequencePort => {
    const { state } = acl;
    return {
      state,
      held,
      isNamed,
      faultOf(ops, minClock) {
        if (!state.owner) return refusal("acl.no_owner");
        const clock = Math.max(state.clocks.at(-1)!, minClock);
        const tried = tryAclOps(state, deps.header, { space: state.space!, author: state.owner, clock, ops });
        return "fault" in tried ? tried.fault : undefined;
      },
    };
  };

  /** Why this account's next record could not consist of these ops. */
  const ownFaultOf = (ops: readonly AclOp[]): Refusal | undefined => {
    const { state } = acl;
    const record = { space: state.space!, author: accountKey, clock: state.clocks.at(-1)!, ops };
    const tried = tryAclOps(state, deps.header, record);
    return "fault" in tried ? tried.fault : undefined;
  };

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

  /** Of these, and of what they follow, those that may yet take effect, and those that such a one follows. */
  const alive = (records: readonly PendingRecord[]): HeldRecords => {
    const ordered = inOrder(withAncestors(records));
    const left = heldRecords(ordered);
    const port = sequencePort(left);
    for (const pending of ordered.toReversed()) if ("drop" in sequenceProposal(port, pending)) left.drop(pending);
    return left;
  };

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
      const isAwaited = store.parked.waitingFor("acl", lost.id).length > 0;
      let record = isAwaited && isNamed(lost.id) ? lost : undefined;
      for (
        ;
        record && !tookEffect(acl.state, record.id);
        record = record.prev ? acl.pending.lostRecord(record.prev) : undefined
      )
        if (!acl.pending.has(record.id)) again.set(bytesToHex(record.id), record);
    }
    return [...again.values()];
  };

  /** What waits and never can take effect, and what does not wait although such a one follows it that may. */
  const misplaced = (): { dead: PendingRecord[]; again: PendingRecord[] } => {
    const records = waiting();
    const left = alive(records);
    return {
      dead: records.filter(({ id }) => !left.byId(id)),
      again: left.all().filter(({ id }) => !acl.pending.has(id)),
    };
  };

  /** What the log has made impossible waits for nobody, and nothing waits for it. */
  const forgetDead = (): void => {
    const { dead, again } = misplaced();
    for (const pending of dead) acl.pending.drop(pending.id);
    for (const pending of again) acl.pending.put(pending, deps.clock.nowMs(), true);
  };

  const hasMisplaced = (): boolean => {
    const { dead, again } = misplaced();
    return dead.length + again.length > 0;
  };

  return { isOwn, waiting, alive, sequencePort, ownFaultOf, keep: keepPending, namedAgain, forgetDead, hasMisplaced };
}
