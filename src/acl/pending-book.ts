import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { AclLog } from "./acl-log.ts";
import type { AclOp } from "./op.ts";
import type { PendingRecord } from "./record.ts";
import { tryAclOps, unitKnown } from "./reducer.ts";
import { type SequencePort, sequenceProposal } from "./sequence.ts";
import type { SpaceHeader } from "./space-header.ts";
import { permissionOf } from "./state.ts";

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

  const isOwn = (unit: PendingRecord): boolean => equalBytes(unit.author, accountKey);

  /** What sequencing would see with these units beside those that wait here. */
  const sequencePort = (more: readonly PendingRecord[] = []): SequencePort => {
    const { state } = acl;
    return {
      state,
      held: [...acl.units.list().map(({ unit }) => unit), ...more],
      isNamed,
      faultOf(ops, minClock) {
        if (!state.owner) return "the space has no owner";
        const clock = Math.max(state.clocks.at(-1)!, minClock);
        const tried = tryAclOps(state, deps.header, { space: state.space!, author: state.owner, clock, ops });
        return "fault" in tried ? tried.fault : undefined;
      },
    };
  };

  /** Why this account's next record could not consist of these ops. */
  const ownFaultOf = (ops: readonly AclOp[]): string | undefined => {
    const { state } = acl;
    const record = { space: state.space!, author: accountKey, clock: state.clocks.at(-1)!, ops };
    const tried = tryAclOps(state, deps.header, record);
    return "fault" in tried ? tried.fault : undefined;
  };

  /** Keeps units; when there is no room, those go first that can no longer take effect. Answers what had no room. */
  const keepUnits = (units: readonly PendingRecord[]): PendingRecord[] => {
    const nowMs = deps.clock.nowMs();
    const full = units.filter((unit) => !acl.units.put(unit, nowMs));
    if (full.length === 0) return [];
    const port = sequencePort();
    for (const unit of port.held) if ("drop" in sequenceProposal(port, unit)) acl.units.drop(unit.id);
    return full.filter((unit) => !acl.units.put(unit, nowMs));
  };

  /**
   * Records of lost branches that were forgotten, but that changes which came since name, with those they follow: they
   * wait again. Answers them.
   */
  const namedAgain = (): PendingRecord[] => {
    const again = new Map<string, PendingRecord>();
    for (const lost of acl.units.lost()) {
      const isAwaited = store.parked.waitingFor("acl", lost.id).length > 0;
      let record = isAwaited && isNamed(lost.id) ? lost : undefined;
      for (
        ;
        record && !unitKnown(acl.state, record.id);
        record = record.prev ? acl.units.lostRecord(record.prev) : undefined
      )
        if (!acl.units.has(record.id)) again.set(bytesToHex(record.id), record);
    }
    return [...again.values()];
  };

  /** What the chain has made impossible waits for nobody, and nothing waits for it. */
  const forgetDead = (): void => {
    const waiting = acl.units.list().filter(({ unit }) => unit.kind === "acl-proposal");
    if (waiting.length === 0) return;
    const port = sequencePort();
    for (const { unit } of waiting) if ("drop" in sequenceProposal(port, unit)) acl.units.drop(unit.id);
  };

  return { isOwn, isNamed, sequencePort, ownFaultOf, keep: keepUnits, namedAgain, forgetDead };
}
