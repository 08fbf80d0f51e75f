import { equalBytes } from "../../base/bytes.ts";
import { atOnce, inSlices } from "../../base/slices.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { applyAclRecord } from "../reducer/reducer.ts";
import { type AclState, copyAclState } from "../reducer/state.ts";
import { type BranchChoice, chooseBranch } from "./fork.ts";
import { type StoredLog, statesUpTo } from "./stored-log.ts";

/** A branch that leaves the log, against what stands there behind the record that both follow. */
export interface JudgedBranch {
  readonly ours: readonly AclRecord[];
  /** What of it is valid, and why what comes next is not. */
  readonly theirs: readonly AclRecord[];
  readonly fault: Refusal | undefined;
  readonly choice: BranchChoice;
  /** The states where both begin and where theirs ends. */
  readonly base: AclState;
  readonly candidate: AclState;
}

/** Judges branches; a long one before the write that needs the answer, in slices, so that the write is short. */
export function createBranchJudge(store: SpaceStore, header: SpaceHeader) {
  let ready: { readonly head: Uint8Array; readonly tip: Uint8Array; readonly judged: JudgedBranch } | undefined;

  /** One record a step. Both follow record `at`. */
  function* judging(log: StoredLog, at: number, branch: readonly AclRecord[]): Generator<void, JudgedBranch> {
    const { records } = log;
    const base = yield* statesUpTo(store, header, records, at + 1);
    const candidate = copyAclState(base);
    const theirs: AclRecord[] = [];
    let fault: Refusal | undefined;
    for (const record of branch) {
      yield;
      const one = applyAclRecord(candidate, record, header);
      if ("fault" in one) {
        fault = one.fault;
        break;
      }
      theirs.push(record);
    }
    const ours: AclRecord[] = [];
    for (const stored of records.slice(at + 1)) {
      yield;
      ours.push(stored.record);
    }
    return { ours, theirs, fault, choice: chooseBranch(base, ours, theirs), base, candidate };
  }

  return {
    async judgeAhead(log: StoredLog, at: number, branch: readonly AclRecord[]): Promise<void> {
      const head = log.state.head!;
      ready = { head, tip: branch.at(-1)!.id, judged: await inSlices(judging(log, at, branch)) };
    },
    judge(log: StoredLog, at: number, branch: readonly AclRecord[]): JudgedBranch {
      const known = ready;
      ready = undefined;
      // A log and a branch are known by their last records.
      const isSame = known && equalBytes(known.head, log.state.head!) && equalBytes(known.tip, branch.at(-1)!.id);
      return isSame ? known.judged : atOnce(judging(log, at, branch));
    },
  };
}
