import { equalBytes } from "../../base/bytes.ts";
import { inSlices } from "../../base/slices.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { encodingAclSnapshot } from "../reducer/acl-snapshot.ts";
import { type AclApplied, applyAclRecord } from "../reducer/reducer.ts";
import { type AclState, copyAclState } from "../reducer/state.ts";
import { isSnapshotDue, type StoredLog } from "./stored-log.ts";

/**
 * Up to this many records are judged and stored in the write that takes them. When there are more, those that follow the
 * log go ahead of it: they are judged and stored in slices, and the write only makes them part of the log (ACL-9).
 */
export const TAKEN_AT_ONCE = 64;
/** Records that one write stores ahead of the log. */
const SLICE_RECORDS = 200;
const SLICE_BYTES = 1 << 20;

/** The part of an offer that follows the log's end, judged and stored behind it. */
export interface AclAhead {
  /** The log as it will be. */
  readonly log: StoredLog;
  readonly applied: readonly Omit<AclApplied, "undo">[];
  /** The offered records that were taken, and those that could have followed but for a fault. */
  readonly faults: ReadonlyMap<AclRecord, Refusal | undefined>;
  /** What the log will say, where a snapshot is to be kept. */
  readonly snapshot: Uint8Array | undefined;
  /** While this equals the current turn, nothing has come in between. */
  readonly turn: number;
}

/**
 * Stores records ahead of a log. A crash leaves them behind the log's end, where they have no effect and are overwritten.
 */
export function createAclAhead({ aclAhead, addAclRecord }: SpaceStore, header: SpaceHeader) {
  /** Raised whenever the records ahead are given up. */
  let turn = 0;

  /**
   * Applies the records that follow, one per step. It skips those that cannot follow, because anybody may have put them
   * there.
   */
  function* judging(log: StoredLog, offered: readonly AclRecord[]): Generator<void, Omit<AclAhead, "turn">> {
    const state: AclState = copyAclState(log.state);
    const records = [...log.records];
    const applied: Omit<AclApplied, "undo">[] = [];
    const faults = new Map<AclRecord, Refusal | undefined>();
    for (const record of offered) {
      yield;
      if (!record.prev || !equalBytes(record.prev, state.head!)) continue;
      const one = applyAclRecord(state, record, header);
      faults.set(record, "fault" in one ? one.fault : undefined);
      if ("fault" in one) continue;
      applied.push({ named: one.named, revoked: one.revoked });
      records.push(new StoredRecord(record.id, record.bytes, record));
    }
    const isKept = isSnapshotDue({ ...log, records });
    const snapshot = isKept ? yield* encodingAclSnapshot(state, records) : undefined;
    return { log: { state, records, judged: isKept ? records.length : log.judged }, applied, faults, snapshot };
  }

  return {
    /**
     * Judges, in slices, which of these records follow the log. Resolves to undefined when there are few enough to be
     * taken at once.
     */
    async judge(log: StoredLog, offered: readonly AclRecord[]): Promise<AclAhead | undefined> {
      const begun = ++turn;
      const judged = await inSlices(judging(log, offered));
      return judged.applied.length > TAKEN_AT_ONCE ? { ...judged, turn: begun } : undefined;
    },

    /** Stores the records behind the log's end, one write per slice. Resolves to whether nothing came in between. */
    async store(ahead: AclAhead, write: (run: () => boolean) => Promise<boolean>): Promise<boolean> {
      const isPresent = (): boolean => ahead.turn === turn;
      const end = ahead.log.records.length - ahead.applied.length;
      while (await write(() => isPresent() && aclAhead.drop(SLICE_RECORDS)));
      let isWhole = await write(() => {
        if (!isPresent()) return false;
        aclAhead.end();
        aclAhead.begin(end);
        return true;
      });
      for (let at = end; isWhole && at < ahead.log.records.length; )
        isWhole = await write(() => {
          if (!isPresent()) return false;
          for (let bytes = 0, upto = at + SLICE_RECORDS; at < upto && bytes < SLICE_BYTES; at++) {
            const record = ahead.log.records[at];
            if (!record) break;
            addAclRecord(at, record.id, record.bytes);
            bytes += record.bytes.length;
          }
          return true;
        });
      return isWhole;
    },

    /** Makes them part of the log; called in the write that does so. Returns false when something came in between. */
    enter(ahead: AclAhead): boolean {
      if (ahead.turn !== turn) return false;
      turn++;
      aclAhead.end();
      return true;
    },

    /** Gives up the records ahead; called in a write that adds other records. */
    giveWay(): void {
      turn++;
      if (aclAhead.from() === undefined) return;
      aclAhead.drop(Number.MAX_SAFE_INTEGER);
      aclAhead.end();
    },
  };
}
