import { bytesToHex, equalBytes, hexToBytes } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { type AclRecord, decodeAclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { type AclState, indexIn, sidePositionParts } from "../reducer/state.ts";
import { createBranchJudge, type JudgedBranch } from "./branch-judge.ts";
import { type BranchChoice, baseWithin, chooseBranch } from "./fork.ts";
import type { PendingRecords } from "./pending.ts";
import type { StoredLog } from "./stored-log.ts";

interface LogBranchesDeps {
  readonly store: SpaceStore;
  readonly header: SpaceHeader;
  readonly pending: PendingRecords;
  /** The log at the moment of the call. */
  log(): StoredLog;
}

/**
 * Branches that leave a space's log: where they leave it, which part of them is valid, and whether log or branch wins.
 */
export function createLogBranches({ store, header, pending, log }: LogBranchesDeps) {
  const judge = createBranchJudge(store, header);
  const indexOf = (id: Uint8Array): number | undefined => indexIn(log().state, id);
  const lostRecord = (id: Uint8Array): AclRecord | undefined => pending.lostRecord(id) ?? sequencedRecord(log(), id);

  /** The records of the log behind record `at`. */
  function* after(at: number): Generator<AclRecord> {
    const { records } = log();
    for (let pos = at + 1; pos < records.length; pos++) yield records[pos]!.record;
  }

  /** Chooses between the records behind record `at` and another valid branch that follows it. */
  const choiceAt = (at: number, theirs: readonly AclRecord[]): BranchChoice =>
    chooseBranch(baseWithin(log().state, at), { [Symbol.iterator]: () => after(at) }, theirs);

  /**
   * A branch from the record at which it leaves the log, and that position: an offer may follow records that lost before.
   */
  const of = (offered: readonly AclRecord[]): { branch: AclRecord[]; at: number } | undefined => {
    const branch = [...offered];
    for (;;) {
      const { prev } = branch[0]!;
      const at = prev ? indexOf(prev) : undefined;
      if (at !== undefined) return { branch, at };
      const before = prev ? lostRecord(prev) : undefined;
      if (!before) return undefined;
      branch.unshift(before);
    }
  };

  /** Adds the earlier lost records that the offer follows. */
  const withLost = (offered: readonly AclRecord[]): AclRecord[] => {
    const found = new Map(offered.map((record) => [bytesToHex(record.id), record]));
    for (const record of offered) {
      let { prev } = record;
      while (prev && !found.has(bytesToHex(prev)) && indexOf(prev) === undefined) {
        const before = lostRecord(prev);
        if (before) found.set(bytesToHex(prev), before);
        prev = before?.prev ?? null;
      }
    }
    return [...found.values()];
  };

  return {
    of,
    after,
    choiceAt,
    judge: (branch: readonly AclRecord[]): JudgedBranch => judge.judge(log(), branch),
    stateAfter: (at: number, valid: readonly AclRecord[]): AclState => judge.stateAfter(log(), at, valid),

    /**
     * Judges in slices the branches that leave the log, and prepares for the first that wins, because it changes the log
     * for the others.
     */
    async judgeAhead(offers: readonly (readonly AclRecord[])[]): Promise<void> {
      await judge.judgeAhead(log(), withLost(offers.flat()));
      for (const offered of offers) {
        const found = offered.length > 0 && of(offered);
        if (!found || found.at === log().records.length - 1) continue;
        const { valid } = judge.judge(log(), found.branch);
        if (valid.length > 0 && choiceAt(found.at, valid) === "theirs") return judge.leadAhead(log(), found.at, valid);
      }
    },

    /** Whether an owner's record by now decides between the log and the branch that begins with this record. */
    isDecided(recordId: string): boolean {
      if (log().state.positions.has(recordId)) return true;
      const other = lostRecord(hexToBytes(recordId)!);
      const at = other?.prev ? indexOf(other.prev) : undefined;
      return other !== undefined && at !== undefined && choiceAt(at, [other]) !== "split";
    },
  };
}

/** A record of a lost branch, as found inside the record of the log that gives it effect. */
function sequencedRecord({ state, records }: StoredLog, id: Uint8Array): AclRecord | undefined {
  const position = state.positions.get(bytesToHex(id));
  if (!position || Number.isInteger(position.pos)) return undefined;
  const [, sequencedAt] = sidePositionParts(position.pos);
  return sequencedIn(records[sequencedAt]!.record, id);
}

/** The record with this id to which another record gives effect. */
function sequencedIn({ ops }: AclRecord, id: Uint8Array): AclRecord | undefined {
  for (const op of ops) {
    const pending = op.op === "sequenced" ? decodeAclRecord(op.pending) : undefined;
    if (pending && equalBytes(pending.id, id)) return pending;
  }
  return undefined;
}
