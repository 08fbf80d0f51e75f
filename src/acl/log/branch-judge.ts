import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { atOnce, inSlices } from "../../base/slices.ts";
import { createWeightedCache } from "../../base/weighted-cache.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { AclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { type AclApplied, applyAclRecord } from "../reducer/reducer.ts";
import type { AclState } from "../reducer/state.ts";
import { type StoredLog, statesUpTo } from "./stored-log.ts";

/** The verdicts of this many records are remembered: more than one page brings. */
const REMEMBERED = 4096;

/** The valid part of a branch, and why the record after it is invalid. */
export interface JudgedBranch {
  readonly valid: readonly AclRecord[];
  readonly fault: Refusal | undefined;
}

/**
 * Judges records that leave the log. Whether a record is valid depends only on those before it, which its id commits to,
 * so each is judged once. Many records are judged in one pass through the log, in slices, before the write that needs the
 * verdicts.
 */
export function createBranchJudge(store: SpaceStore, header: SpaceHeader) {
  /** What the log would say if a branch replaced its end, by the id of the branch's last record. */
  let ready: { readonly tip: Uint8Array; readonly state: AclState } | undefined;
  const verdicts = createWeightedCache<Refusal | "valid">(REMEMBERED);
  const verdictOf = ({ id }: AclRecord) => verdicts.get(bytesToHex(id));

  /**
   * Judges trees of records that branch off the log, one record per step. `positions`: index of the log's record that a root
   * follows. One state is carried forward through the log, and along each branch and back.
   */
  function* judging(log: StoredLog, records: readonly AclRecord[]): Generator<void> {
    if (records.every(verdictOf)) return;
    const names = new Set(records.map(({ id }) => bytesToHex(id)));
    const followers = Map.groupBy(records, ({ prev }) => (prev ? bytesToHex(prev) : ""));
    const roots = [...followers.keys()].filter((name) => !names.has(name));
    const positions = roots
      .map((name) => ({ at: log.state.positions.get(name)?.pos ?? -1, name }))
      .filter(({ at }) => at >= 0 && Number.isInteger(at))
      .sort((one, other) => one.at - other.at);
    const first = positions[0];
    if (!first) return;
    const state = yield* statesUpTo(store, header, log.records, first.at + 1);
    for (const { at, name } of positions) {
      for (const { record } of log.records.slice(state.clocks.length, at + 1)) {
        yield;
        applyAclRecord(state, record, header);
      }
      yield* judgeTree(state, name, followers);
    }
  }

  function* judgeTree(state: AclState, rootName: string, followers: ReadonlyMap<string, readonly AclRecord[]>) {
    const path: { readonly undo: () => void; readonly left: AclRecord[] }[] = [];
    const enter = (name: string, undo: () => void): void =>
      void path.push({ undo, left: [...(followers.get(name) ?? [])] });
    enter(rootName, () => {});
    for (let end = path.at(-1); end; end = path.at(-1)) {
      const record = end.left.pop();
      if (!record) {
        end.undo();
        path.pop();
        continue;
      }
      yield;
      const one: AclApplied | { fault: Refusal } = applyAclRecord(state, record, header);
      const name = bytesToHex(record.id);
      verdicts.keep(name, "fault" in one ? one.fault : "valid", 1);
      if (!("fault" in one)) enter(name, one.undo);
    }
  }

  function* leadingTo(log: StoredLog, at: number, valid: readonly AclRecord[]): Generator<void, AclState> {
    const state = yield* statesUpTo(store, header, log.records, at + 1);
    for (const record of valid) {
      yield;
      applyAclRecord(state, record, header);
    }
    return state;
  }

  return {
    /** Prepares the verdicts for `judge`. */
    judgeAhead: (log: StoredLog, records: readonly AclRecord[]): Promise<void> => inSlices(judging(log, records)),
    /** Judges a branch from the record at which it leaves the log. */
    judge(log: StoredLog, branch: readonly AclRecord[]): JudgedBranch {
      atOnce(judging(log, branch));
      const valid: AclRecord[] = [];
      for (const record of branch) {
        const verdict = verdictOf(record);
        if (verdict !== "valid") return { valid, fault: verdict };
        valid.push(record);
      }
      return { valid, fault: undefined };
    },
    /** Prepares the state for `stateAfter`. */
    async leadAhead(log: StoredLog, at: number, valid: readonly AclRecord[]): Promise<void> {
      ready = { tip: valid.at(-1)!.id, state: await inSlices(leadingTo(log, at, valid)) };
    },
    /** The state of the log when this valid branch follows record `at`. The caller owns it. */
    stateAfter(log: StoredLog, at: number, valid: readonly AclRecord[]): AclState {
      const known = ready;
      ready = undefined;
      return known && equalBytes(known.tip, valid.at(-1)!.id) ? known.state : atOnce(leadingTo(log, at, valid));
    },
  };
}
