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
import { isUnsettled, type StoredLog } from "./stored-log.ts";

/**
 * So many records are judged and stored in the write that takes them. Of more, those that follow the log go ahead of it:
 * they are judged and stored in slices, and the write only says that they are part of the log.
 */
export const TAKEN_AT_ONCE = 64;
/** Of what goes ahead, so much is stored in one write. */
const SLICE_RECORDS = 200;
const SLICE_BYTES = 1 << 20;

/** What of an offer follows the log's end, judged and stored behind it. */
export interface AclAhead {
  /** The log as it will be. */
  readonly log: StoredLog;
  readonly applied: readonly Omit<AclApplied, "undo">[];
  /** Of the offered records: those taken, and those that could have followed but for a fault. */
  readonly faults: ReadonlyMap<AclRecord, Refusal | undefined>;
  /** What the log will say, where it is to be kept beside it. */
  readonly snapshot: Uint8Array | undefined;
  /** While this is the present one, nothing has come between. */
  readonly turn: number;
}

/** Stores what is ahead of a log. A crash leaves it behind the log's end, where it is nothing and gives way to what comes. */
export function createAclAhead({ aclAhead, addAclRecord }: SpaceStore, header: SpaceHeader) {
  /** Raised whenever what is ahead is given up. */
  let turn = 0;

  /** Applies what follows, one record a step; what cannot is passed over, since anybody may have put it between. */
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
      applied.push({ named: one.named, cut: one.cut });
      records.push(new StoredRecord(record.id, record.bytes, record));
    }
    const isKept = isUnsettled({ ...log, records });
    const snapshot = isKept ? yield* encodingAclSnapshot(state, records) : undefined;
    return { log: { state, records, settled: isKept ? records.length : log.settled }, applied, faults, snapshot };
  }

  return {
    /** Judges what of these records follows the log, in slices. Undefined when it is short enough to be taken at once. */
    async judge(log: StoredLog, offered: readonly AclRecord[]): Promise<AclAhead | undefined> {
      const begun = ++turn;
      const judged = await inSlices(judging(log, offered));
      return judged.applied.length > TAKEN_AT_ONCE ? { ...judged, turn: begun } : undefined;
    },

    /** Stores it behind the log's end, a write each slice. Answers whether nothing came between. */
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

    /** In the write that makes it part of the log. False when something came between. */
    enter(ahead: AclAhead): boolean {
      if (ahead.turn !== turn) return false;
      turn++;
      aclAhead.end();
      return true;
    },

    /** In a write that adds other records: what is ahead gives way. */
    giveWay(): void {
      turn++;
      if (aclAhead.from() === undefined) return;
      aclAhead.drop(Number.MAX_SAFE_INTEGER);
      aclAhead.end();
    },
  };
}
