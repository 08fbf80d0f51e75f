import { bytesToHex, equalBytes, hexToBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AclView } from "../../change/ports.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WriteScope } from "../../store/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { canWrite, type Permission } from "../record/permission.ts";
import { type AclRecord, decodeAclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { type AclApplied, applyAclRecord } from "../reducer/reducer.ts";
import { createCutJudge } from "../reducer/revocation-cut-off.ts";
import {
  type AclState,
  type Cut,
  type EpochState,
  permissionAt,
  permissionOf,
  rightsPositions,
  sidePlace,
} from "../reducer/state.ts";
import { createUnplaced } from "../reducer/unplaced.ts";
import { type AclAhead, createAclAhead } from "./acl-ahead.ts";
import { createAlarms } from "./alarms.ts";
import { createBranchJudge } from "./branch-judge.ts";
import { chooseBranch } from "./fork.ts";
import type { AclOffer } from "./offered-records.ts";
import { createPendingRecords } from "./pending.ts";
import { isUnsettled, loadAclLog, putSnapshot, type StoredLog, settleLog, stateAfter } from "./stored-log.ts";

/** What records taken in mean for the changes of the space. */
export interface AclMove {
  /** Ids that changes can name from now on. */
  named: Uint8Array[];
  /** Accounts of whose changes some may have ceased to count. */
  cut: Uint8Array[];
  /** Changes that name this position or a later one may stand elsewhere now. */
  repositionFrom?: number;
}

/**
 * What became of records that were offered: `extended` the log; won a fork and `replaced` its end; `known` before;
 * `lost` to what is here (they wait to be proposed again); `split`: nothing decides, an alarm was raised; `gap`: what
 * they follow is not here; `refused`: invalid.
 */
export type AclMerge = {
  kind: "extended" | "replaced" | "known" | "lost" | "split" | "gap" | "refused";
  /** How many of the records are in the log now that were not before. */
  taken: number;
  refusal?: Refusal;
  move?: AclMove;
  /** Epochs of the branch that was replaced. */
  dropped?: readonly EpochState[];
};

/** The stored ACL log of a space, judged record by record: each once on this device, and again where nothing was kept of it. */
export type AclLog = ReturnType<typeof openAclLog>;

const HEAD_KEY = "acl-head";

export function openAclLog(store: SpaceStore, header: SpaceHeader, clock: Clock) {
  const pending = createPendingRecords(store);
  const alarms = createAlarms(store);
  const judge = createCutJudge(store.changes);
  const unplaced = createUnplaced(store);
  const ahead = createAclAhead(store, header);
  const branches = createBranchJudge(store, header);
  let log = loadAclLog(store, header);

  const pinned = store.meta(HEAD_KEY);
  if (pinned && !log.state.positions.has(bytesToHex(pinned)))
    alarms.raise({ kind: "rolled_back", record: bytesToHex(pinned) });

  const recordIndex = (id: Uint8Array): number | undefined => indexIn(log.state, id);

  const cutsOf = (account: Uint8Array): readonly Cut[] =>
    log.state.cuts.size === 0 ? [] : (log.state.cuts.get(bytesToHex(account)) ?? []);

  /** Applies and stores the next record; taken back with the write. */
  const extend = (record: AclRecord, scope: WriteScope): { fault: Refusal } | AclApplied => {
    const applied = applyAclRecord(log.state, record, header);
    if ("fault" in applied) return applied;
    ahead.giveWay();
    const list = log.records;
    list.push(new StoredRecord(record.id, record.bytes, record));
    scope.onRollback(() => {
      list.pop();
      applied.undo();
    });
    store.addAclRecord(list.length - 1, record.id, record.bytes);
    return applied;
  };

  /** What is written once, however many records came. */
  const pin = (scope: WriteScope): void => {
    store.putMeta(HEAD_KEY, log.state.head!);
    if (isUnsettled(log)) keepSnapshot(scope);
  };

  const keepSnapshot = (scope: WriteScope): void => {
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    log = settleLog(store, log);
  };

  const moveOf = (applied: AclAhead["applied"]): AclMove => {
    const named = applied.flatMap((one) => one.named);
    const from = unplaced.lowest();
    const moved =
      from !== undefined && named.some((id) => !Number.isInteger(log.state.positions.get(bytesToHex(id))!.pos));
    return {
      named,
      cut: applied.flatMap((one) => one.cut),
      ...(moved ? { repositionFrom: from } : {}),
    };
  };

  const extendBy = (offered: readonly AclRecord[], scope: WriteScope): AclMerge => {
    const applied: AclApplied[] = [];
    for (const record of offered) {
      const one = extend(record, scope);
      if ("fault" in one) {
        if (applied.length > 0) pin(scope);
        const move = applied.length > 0 ? { move: moveOf(applied) } : {};
        return { kind: "refused", taken: applied.length, refusal: one.fault, ...move };
      }
      applied.push(one);
    }
    pin(scope);
    settle();
    return { kind: "extended", taken: applied.length, move: moveOf(applied) };
  };

  /** What was ahead is part of the log. Undefined when something came between. */
  const enter = (judged: AclAhead, scope: WriteScope): AclMerge | undefined => {
    if (!ahead.enter(judged)) return undefined;
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    if (judged.snapshot) putSnapshot(store, judged.snapshot);
    log = judged.log;
    pin(scope);
    settle();
    return { kind: "extended", taken: judged.applied.length, move: moveOf(judged.applied) };
  };

  /** Forgets what waited to take effect, or to be placed, and now did. */
  const settle = (): void => {
    pending.settle(log.state);
    for (const id of store.unplacedRecords.ids())
      if (log.state.positions.has(bytesToHex(id))) store.unplacedRecords.drop(id);
    for (const alarm of alarms.list()) if (alarm.kind === "split" && isDecided(alarm.record)) alarms.end(alarm);
  };

  /** Whether, by now, an owner's record decides between the log and the branch that begins with this record. */
  const isDecided = (recordId: string): boolean => {
    if (log.state.positions.has(recordId)) return true;
    const other = lostRecord(hexToBytes(recordId)!);
    const at = other?.prev ? recordIndex(other.prev) : undefined;
    if (!other || at === undefined) return false;
    return chooseBranch(stateAfter(store, header, log.records, at + 1), branchAfter(at), [other]) !== "split";
  };

  /** What stands in the log behind record `at`. */
  const branchAfter = (at: number): AclRecord[] => log.records.slice(at + 1).map(({ record }) => record);

  /** A branch from where it leaves the log: what comes may follow records that lost before. */
  const fromLogOn = (offered: readonly AclRecord[]): AclRecord[] | undefined => {
    const branch = [...offered];
    while (recordIndex(branch[0]!.prev!) === undefined) {
      const before = lostRecord(branch[0]!.prev!);
      if (!before?.prev) return undefined;
      branch.unshift(before);
    }
    return branch;
  };

  /** The same, with the place of the record that it follows. */
  const branchOf = (offered: readonly AclRecord[]) => {
    const branch = fromLogOn(offered);
    return { branch, at: branch && recordIndex(branch[0]!.prev!) };
  };

  const lostRecord = (id: Uint8Array): AclRecord | undefined => pending.lostRecord(id) ?? sequencedRecord(log, id);

  /** Two branches follow record `at`: ours and the one offered. */
  const resolveFork = (at: number, offered: readonly AclRecord[], scope: WriteScope): AclMerge => {
    const { state } = log;
    const { base, candidate, ours, theirs, fault, choice } = branches.judge(log, at, offered);
    if (theirs.length === 0) return { kind: "refused", taken: 0, refusal: fault! };
    if (choice !== "theirs") {
      const unplacedYet = theirs.filter(({ id }) => !state.positions.has(bytesToHex(id)));
      pending.putBranch(unplacedYet, clock.nowMs());
    }
    if (choice === "split") {
      alarms.raise({ kind: "split", record: bytesToHex(theirs[0]!.id) });
      return { kind: "split", taken: 0, refusal: refusal("acl.split") };
    }
    if (choice === "ours") return { kind: "lost", taken: 0, refusal: refusal("acl.branch_lost") };
    const dropped = state.epochs.filter(({ pos }) => pos > at);
    const repositionFrom = unplaced.note(state, candidate, at);
    // What either branch cut: the one's cuts are no more, the other's are new here.
    const cut = [state, candidate].flatMap((one) => accountsCutAfter(one, at));
    replaceFrom(at + 1, theirs, candidate, scope);
    for (const record of ours) pending.put(record, clock.nowMs(), true);
    settle();
    const named = [...candidate.positions.keys()].flatMap((name) =>
      base.positions.has(name) ? [] : [Buffer.from(name, "hex")],
    );
    return { kind: "replaced", taken: theirs.length, move: { named, cut, repositionFrom }, dropped };
  };

  const replaceFrom = (pos: number, theirs: readonly AclRecord[], candidate: AclState, scope: WriteScope): void => {
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    ahead.giveWay();
    store.cutAclRecords(pos);
    for (const [index, record] of theirs.entries()) store.addAclRecord(pos + index, record.id, record.bytes);
    const taken = theirs.map((record) => new StoredRecord(record.id, record.bytes, record));
    const settled = log.settled <= pos ? log.settled : 0;
    log = { state: candidate, records: [...log.records.slice(0, pos), ...taken], settled };
    pin(scope);
  };

  const view: AclView = {
    head() {
      const { head, clocks } = log.state;
      const pos = clocks.length - 1;
      return { id: head!, pos, clock: clocks[pos]! };
    },
    at: (id) => log.state.positions.get(bytesToHex(id)),
    counts: (change) => {
      const cuts = cutsOf(change.author);
      return rightsPositions(change.aclPos).some(
        (pos) => canWrite(permissionAt(log.state, change.author, pos)) && !judge.rejects(cuts, change, pos),
      );
    },
    knows: (author) => log.state.members.has(bytesToHex(author)),
    settles: (change) => judge.settles(cutsOf(change.author), change),
  };

  return {
    ...view,
    pending,
    alarms,
    /**
     * Whether a record stood in the log here before its branch lost, and whether changes here name it; undefined for
     * any other.
     */
    dropped: store.unplacedRecords.get,
    /** Replaced, not only changed, when a fork is resolved: read it anew in every turn. */
    get state(): AclState {
      return log.state;
    },
    records: (): readonly StoredRecord[] => log.records,
    permission: (account: Uint8Array): Permission => permissionOf(log.state, account),

    /** Whether it stands in the log. */
    has: (id: Uint8Array): boolean => recordIndex(id) !== undefined,

    /**
     * Takes in records that follow one another, in a write of the commit queue. Whatever they lead to, the changes of
     * the space must be brought in step with `move` in the same write.
     */
    merge({ records: read, fault }: AclOffer, scope: WriteScope): AclMerge {
      if (fault) return { kind: "refused", taken: 0, refusal: fault };
      const offered = freshOf(read, log.state);
      if (offered.length === 0) return { kind: "known", taken: 0 };
      if (!offered[0]!.prev) return { kind: "refused", taken: 0, refusal: refusal("acl.another_root") };
      const { branch, at } = branchOf(offered);
      if (!branch || at === undefined) return { kind: "gap", taken: 0, refusal: refusal("acl.gap") };
      return at === log.records.length - 1 ? extendBy(branch, scope) : resolveFork(at, branch, scope);
    },

    /** Judges what of these records follows the log, in slices; undefined when it is not much. One offer at a time. */
    judgeAhead: (offered: readonly AclRecord[]): Promise<AclAhead | undefined> => ahead.judge(log, offered),
    storeAhead: ahead.store,
    /** Judges in slices a branch that leaves the log, for the `merge` of it that follows. */
    async judgeBranch(read: readonly AclRecord[]): Promise<void> {
      const offered = freshOf(read, log.state);
      if (!offered[0]?.prev) return;
      const { branch, at } = branchOf(offered);
      if (branch && at !== undefined && at < log.records.length - 1) await branches.judgeAhead(log, at, branch);
    },
    enter,

    /** After a failed transaction: what is stored is what counts. */
    reload(): void {
      log = loadAclLog(store, header);
    },

    /** Whether opening the space again would take long, for all that is kept now. */
    isUnsettled: (): boolean => isUnsettled(log),
    /** Keeps what the log says, in a write of the commit queue, so that opening the space again is quick. */
    keepSnapshot,
  };
}

/** What is not in the chain yet. */
function freshOf(read: readonly AclRecord[], state: AclState): readonly AclRecord[] {
  const fresh = read.findIndex(({ id }) => indexIn(state, id) === undefined);
  return fresh < 0 ? [] : read.slice(fresh);
}

function indexIn(state: AclState, id: Uint8Array): number | undefined {
  const pos = state.positions.get(bytesToHex(id))?.pos;
  return pos !== undefined && Number.isInteger(pos) ? pos : undefined;
}

/** A record of a branch that lost, as it stands in the one of the chain that gives it effect. */
function sequencedRecord({ state, records }: StoredLog, id: Uint8Array): AclRecord | undefined {
  const place = state.positions.get(bytesToHex(id));
  if (!place || Number.isInteger(place.pos)) return undefined;
  const [, sequencedAt] = sidePlace(place.pos);
  return sequencedIn(records[sequencedAt]!.record, id);
}

/** The record of this id to which another gives effect. */
function sequencedIn({ ops }: AclRecord, id: Uint8Array): AclRecord | undefined {
  for (const op of ops) {
    const pending = op.op === "sequenced" ? decodeAclRecord(op.pending) : undefined;
    if (pending && equalBytes(pending.id, id)) return pending;
  }
  return undefined;
}

function accountsCutAfter(state: AclState, pos: number): Uint8Array[] {
  return [...state.cuts].flatMap(([name, cuts]) =>
    cuts.some((cut) => cut.pos > pos) ? [state.members.get(name)!.account] : [],
  );
}
