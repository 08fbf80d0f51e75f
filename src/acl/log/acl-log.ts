import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AclView } from "../../change/codec/ports.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { canWrite, type Permission } from "../record/permission.ts";
import type { AclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { createLostPositions } from "../reducer/lost-positions.ts";
import { type AclApplied, applyAclRecord } from "../reducer/reducer.ts";
import { createRevocationJudge } from "../reducer/revocation-cut-off.ts";
import {
  type AclState,
  type EpochState,
  indexIn,
  permissionAt,
  permissionOf,
  type Revocation,
  rightsPositions,
} from "../reducer/state.ts";
import { type AclAhead, createAclAhead } from "./acl-ahead.ts";
import { createAlarms } from "./alarms.ts";
import { createLogBranches } from "./log-branches.ts";
import type { AclOffer } from "./offered-records.ts";
import { createPendingRecords } from "./pending.ts";
import { isSnapshotDue, loadAclLog, putSnapshot, withSnapshot } from "./stored-log.ts";

/** What the records just taken in mean for the changes of the space. */
export interface AclEffects {
  /** Ids that changes can name from now on. */
  named: Uint8Array[];
  /** Accounts some of whose changes may no longer count. */
  revoked: Uint8Array[];
  /** Changes that name this position or a later one may have another position now. */
  repositionFrom?: number;
}

/**
 * What became of the offered records: they `extended` the log; won a fork and `replaced` its end; were `known` before;
 * `lost` to what is here (they wait to be proposed again); `split`: no rule decides, and an alarm was raised; `gap`: what
 * they follow is not here; `refused`: they are invalid.
 */
export type AclMerge = {
  kind: "extended" | "replaced" | "known" | "lost" | "split" | "gap" | "refused";
  /** How many of the records are newly in the log. */
  taken: number;
  refusal?: Refusal;
  effects?: AclEffects;
  /** Epochs of the branch that was replaced. */
  dropped?: readonly EpochState[];
};

/**
 * The stored ACL log of a space, judged record by record: each once on this device, and again where its verdict was not
 * kept.
 */
export type AclLog = ReturnType<typeof openAclLog>;

const HEAD_KEY = "acl-head";

export function openAclLog(store: SpaceStore, header: SpaceHeader, clock: Clock) {
  const pending = createPendingRecords(store);
  const alarms = createAlarms(store);
  const judge = createRevocationJudge(store.changes);
  const lostPositions = createLostPositions(store);
  const ahead = createAclAhead(store, header);
  let log = loadAclLog(store, header);
  const branches = createLogBranches({ store, header, pending, log: () => log });

  const keptHead = store.meta(HEAD_KEY);
  if (keptHead && !log.state.positions.has(bytesToHex(keptHead)))
    alarms.raise({ kind: "rolled_back", record: bytesToHex(keptHead) });

  const revocationsOf = (account: Uint8Array): readonly Revocation[] =>
    log.state.revocations.size === 0 ? [] : (log.state.revocations.get(bytesToHex(account)) ?? []);

  /** Applies and stores the next record; it is undone if the write fails. */
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

  /** Writes what is written once, however many records came. */
  const keepHead = (scope: WriteScope): void => {
    store.putMeta(HEAD_KEY, log.state.head!);
    if (isSnapshotDue(log)) keepSnapshot(scope);
  };

  const keepSnapshot = (scope: WriteScope): void => {
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    log = withSnapshot(store, log);
  };

  const effectsOf = (applied: AclAhead["applied"]): AclEffects => {
    const named = applied.flatMap((one) => one.named);
    const from = lostPositions.lowest();
    const isRepositioned =
      from !== undefined && named.some((id) => !Number.isInteger(log.state.positions.get(bytesToHex(id))!.pos));
    return {
      named,
      revoked: applied.flatMap((one) => one.revoked),
      ...(isRepositioned ? { repositionFrom: from } : {}),
    };
  };

  const extendBy = (offered: readonly AclRecord[], scope: WriteScope): AclMerge => {
    const applied: AclApplied[] = [];
    for (const record of offered) {
      const one = extend(record, scope);
      if ("fault" in one) {
        if (applied.length > 0) keepHead(scope);
        const effects = applied.length > 0 ? { effects: effectsOf(applied) } : {};
        return { kind: "refused", taken: applied.length, refusal: one.fault, ...effects };
      }
      applied.push(one);
    }
    keepHead(scope);
    dropDecided();
    return { kind: "extended", taken: applied.length, effects: effectsOf(applied) };
  };

  /** Makes the records ahead part of the log. Returns undefined when something came in between. */
  const enter = (judged: AclAhead, scope: WriteScope): AclMerge | undefined => {
    if (!ahead.enter(judged)) return undefined;
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    if (judged.snapshot) putSnapshot(store, judged.snapshot);
    log = judged.log;
    keepHead(scope);
    dropDecided();
    return { kind: "extended", taken: judged.applied.length, effects: effectsOf(judged.applied) };
  };

  /** Drops pending records that have now taken effect or found their position. */
  const dropDecided = (): void => {
    pending.dropEffective(log.state);
    for (const id of store.lostPositions.ids()) {
      if (!log.state.positions.has(bytesToHex(id))) continue;
      store.lostPositions.drop(id);
      store.lostPositionChanges.drop(id);
    }
    for (const alarm of alarms.list())
      if (alarm.kind === "split" && branches.isDecided(alarm.record)) alarms.end(alarm);
  };

  /** Resolves a fork: our branch and the offered one both follow record `at`. */
  const resolveFork = (at: number, offered: readonly AclRecord[], scope: WriteScope): AclMerge => {
    const { state } = log;
    const { valid: theirs, fault } = branches.judge(offered);
    if (theirs.length === 0) return { kind: "refused", taken: 0, refusal: fault! };
    const choice = branches.choiceAt(at, theirs);
    if (choice !== "theirs") {
      const withoutPosition = theirs.filter(({ id }) => !state.positions.has(bytesToHex(id)));
      pending.putBranch(withoutPosition, clock.nowMs());
    }
    if (choice === "split") {
      alarms.raise({ kind: "split", record: bytesToHex(theirs[0]!.id) });
      return { kind: "split", taken: 0, refusal: refusal("acl.split") };
    }
    if (choice === "ours") return { kind: "lost", taken: 0, refusal: refusal("acl.branch_lost") };
    const candidate = branches.stateAfter(at, theirs);
    const ours = [...branches.after(at)];
    const dropped = state.epochs.filter(({ pos }) => pos > at);
    const repositionFrom = lostPositions.note(state, candidate, at);
    // Both branches' revocations matter: those of the losing one no longer hold, those of the winning one are new here.
    const revoked = [state, candidate].flatMap((one) => accountsRevokedAfter(one, at));
    replaceFrom(at + 1, theirs, candidate, scope);
    for (const record of ours) pending.put(record, clock.nowMs(), true);
    dropDecided();
    const named = [...candidate.positions.keys()].flatMap((name) =>
      hasPositionBy(state, name, at) ? [] : [Buffer.from(name, "hex")],
    );
    return { kind: "replaced", taken: theirs.length, effects: { named, revoked, repositionFrom }, dropped };
  };

  const replaceFrom = (pos: number, theirs: readonly AclRecord[], candidate: AclState, scope: WriteScope): void => {
    const before = log;
    scope.onRollback(() => {
      log = before;
    });
    ahead.giveWay();
    store.dropAclRecordsFrom(pos);
    for (const [index, record] of theirs.entries()) store.addAclRecord(pos + index, record.id, record.bytes);
    const taken = theirs.map((record) => new StoredRecord(record.id, record.bytes, record));
    const judged = log.judged <= pos ? log.judged : 0;
    log = { state: candidate, records: [...log.records.slice(0, pos), ...taken], judged };
    keepHead(scope);
  };

  const view: AclView = {
    head() {
      const { head, clocks } = log.state;
      const pos = clocks.length - 1;
      return { id: head!, pos, clock: clocks[pos]! };
    },
    at: (id) => log.state.positions.get(bytesToHex(id)),
    counts: (change) => {
      const revocations = revocationsOf(change.author);
      return rightsPositions(change.aclPos).some(
        (pos) => canWrite(permissionAt(log.state, change.author, pos)) && !judge.rejects(revocations, change, pos),
      );
    },
    knows: (author) => log.state.members.has(bytesToHex(author)),
    decidesCutOff: (change) => judge.decidesCutOff(revocationsOf(change.author), change),
  };

  return {
    ...view,
    pending,
    alarms,
    /** Whether a record was in the log here before its branch lost. */
    stoodHere: store.lostPositions.has,
    /**
     * Whether changes of members wait until this record has a position: they came before it, or counted until it lost its
     * position.
     */
    isAwaited: (id: Uint8Array): boolean =>
      [...store.lostPositionChanges.authorsUnder(id), ...store.parked.authorsWaitingFor("acl", id)].some(
        (author) => permissionOf(log.state, author) !== "none",
      ),
    /** It is replaced, not only changed, when a fork is resolved: read it again in every turn. */
    get state(): AclState {
      return log.state;
    },
    records: (): readonly StoredRecord[] => log.records,
    permission: (account: Uint8Array): Permission => permissionOf(log.state, account),

    /** Whether the record is in the log. */
    has: (id: Uint8Array): boolean => indexIn(log.state, id) !== undefined,

    /**
     * Takes in records that follow one another, in a write of the commit queue. Whatever comes of it, the same write must
     * apply `effects` to the changes of the space.
     */
    merge({ records: read, fault }: AclOffer, scope: WriteScope): AclMerge {
      if (fault) return { kind: "refused", taken: 0, refusal: fault };
      const offered = freshOf(read, log.state);
      if (offered.length === 0) return { kind: "known", taken: 0 };
      if (!offered[0]!.prev) return { kind: "refused", taken: 0, refusal: refusal("acl.another_root") };
      const found = branches.of(offered);
      if (!found) return { kind: "gap", taken: 0, refusal: refusal("acl.gap") };
      const { branch, at } = found;
      return at === log.records.length - 1 ? extendBy(branch, scope) : resolveFork(at, branch, scope);
    },

    /**
     * Judges in slices which of these records follow the log; resolves to undefined when there are few. One offer at a
     * time.
     */
    judgeAhead: (offered: readonly AclRecord[]): Promise<AclAhead | undefined> => ahead.judge(log, offered),
    storeAhead: ahead.store,
    /** Whether any of these offers does more than extend the log's end. */
    leavesLog(offers: readonly AclOffer[]): boolean {
      let end = log.state.head!;
      for (const { records } of offers) {
        const fresh = freshOf(records, log.state);
        if (fresh.length === 0) continue;
        if (!fresh[0]!.prev || !equalBytes(fresh[0]!.prev, end)) return true;
        end = fresh.at(-1)!.id;
      }
      return false;
    },
    /** Judges in slices the branches that leave the log, so that the `merge` of each of these offers is short. */
    judgeBranches: (offers: readonly AclOffer[]): Promise<void> =>
      branches.judgeAhead(offers.map(({ records }) => freshOf(records, log.state))),
    enter,

    /** Reloads the log after a failed transaction, because only what is stored counts. */
    reload(): void {
      log = loadAclLog(store, header);
    },

    /** Whether opening the space again would take long despite the snapshot that is kept. */
    isSnapshotDue: (): boolean => isSnapshotDue(log),
    /** Keeps a snapshot of the log, in a write of the commit queue, so that opening the space again is quick. */
    keepSnapshot,
  };
}

/** Whether a record up to the one at `pos` gave this one its position. */
function hasPositionBy({ positions }: AclState, name: string, pos: number): boolean {
  const known = positions.get(name)?.pos;
  return known !== undefined && rightsPositions(known).every((each) => each <= pos);
}

/** The records that are not in the log yet. */
function freshOf(read: readonly AclRecord[], state: AclState): readonly AclRecord[] {
  const fresh = read.findIndex(({ id }) => indexIn(state, id) === undefined);
  return fresh < 0 ? [] : read.slice(fresh);
}

function accountsRevokedAfter(state: AclState, pos: number): Uint8Array[] {
  return [...state.revocations].flatMap(([name, revocations]) =>
    revocations.some(({ pos: at }) => at > pos) ? [state.members.get(name)!.account] : [],
  );
}
