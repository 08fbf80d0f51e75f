import type { Database } from "bun:sqlite";
import { IS_IN_LOG, WRITERS_AWAITING_POSITION } from "./acl-table.ts";

/** Who keeps copies of this device's changes: the network's log, and other devices of members. */
export type ReplicaTarget = "network" | "peer";

/**
 * The position of a change in its writer's chain, without its bytes. Writer 0 stands for nobody: derived roots, and changes that
 * nobody keeps.
 */
export interface ChainPosition {
  readonly no: number;
  readonly writer: number;
  readonly seq: number;
}

export interface UnconfirmedChange extends ChainPosition {
  readonly id: Uint8Array;
  readonly bytes: Uint8Array;
}

/** A writer's chain in brief. If it has more changes than its highest seq, two devices wrote under one writer. */
export interface ChainSize {
  readonly writer: number;
  readonly author: Uint8Array;
  readonly id: Uint8Array;
  readonly seq: number;
  readonly count: number;
  /** The change at `seq` that came first. */
  readonly last: Uint8Array;
}

interface ObjectCount {
  readonly objectNo: number;
  readonly count: number;
}

/** Which of the local changes a target has: everything up to a number, and single changes that were doubted. */
export interface Reach {
  readonly upto: number;
  readonly again: readonly number[];
  /** Whether more was not looked at. */
  readonly isPart: boolean;
}

/** So many positions are looked at for one reach, so that a turn is not long. */
const REACH_POSITIONS = 4_000;

export const REPLICA_TARGETS: readonly ReplicaTarget[] = ["network", "peer"];

/** What `sum` is of an exception as it was stored. */
const exceptionSum = (change: string): string => `${change} * 1000003 % 2147483647`;
/** Finds exceptions that the disk changed: what was noted there is not known any more. */
export const WRONG_EXCEPTIONS = `SELECT DISTINCT target FROM sync_exceptions
  WHERE sum <> ${exceptionSum("change")} OR target NOT IN ('network', 'peer')`;

/** Holds for a row of writers if any of its changes counts, or would count if the record that it names got its position back. */
const IS_SOMEBODY = `(counted > 0 OR no IN (${WRITERS_AWAITING_POSITION}))`;

/** Holds for a change by such a writer: nobody has to keep, or misses, changes that were written without the right. */
const IS_OF_SOMEBODY = `EXISTS(SELECT 1 FROM writers WHERE no = c.writer AND ${IS_SOMEBODY})`;

/**
 * A change whose body is missing here is announced by peers that have the body. Of a deleted object only the stub is announced.
 */
const IS_WHOLE = "NOT EXISTS(SELECT 1 FROM pending_bodies u WHERE u.change = c.no AND u.wait_kind = 'body')";

/** Holds for a change beyond both marks that is not known to be kept anywhere else. */
const IS_NOWHERE_AHEAD = `${IS_OF_SOMEBODY} AND ${IS_WHOLE}
  AND NOT EXISTS(SELECT 1 FROM sync_exceptions e WHERE e.change = c.no)`;

/**
 * Notes which changes are known to be kept elsewhere: all up to a mark except the exceptions, and beyond the mark only the
 * exceptions. Writes happen inside the commit queue's transaction. `rewrites` returns how often changes got or lost their bodies,
 * or began or ceased to count.
 */
export function createSyncTable(db: Database, rewrites: () => number) {
  const upto = db.query<{ upto: number }, [string]>("SELECT upto FROM sync_marks WHERE target = ?");
  const setUpto = db.query<null, [string, number]>(
    "INSERT INTO sync_marks(target, upto) VALUES(?, ?) ON CONFLICT(target) DO UPDATE SET upto = excluded.upto",
  );
  const addException = db.query<null, [string, number]>(
    `INSERT OR IGNORE INTO sync_exceptions(target, change, sum) VALUES(?1, ?2, ${exceptionSum("?2")})`,
  );
  const dropException = db.query<null, [string, number]>("DELETE FROM sync_exceptions WHERE target = ? AND change = ?");
  const dropExceptions = db.query<null, [string, number, number]>(
    "DELETE FROM sync_exceptions WHERE target = ? AND change > ? AND change <= ?",
  );
  const behind = db.query<ChainPosition, [string, number]>(
    `SELECT c.no, CASE WHEN ${IS_OF_SOMEBODY} THEN c.writer ELSE 0 END AS writer, c.seq
     FROM sync_exceptions e JOIN changes c ON c.no = e.change WHERE e.target = ? AND e.change <= ?`,
  );
  const isException = db.query<{ one: number }, [string, number]>(
    "SELECT 1 AS one FROM sync_exceptions WHERE target = ? AND change = ?",
  );
  const exceptWriter = db.query<null, [string, number, number]>(
    `INSERT OR IGNORE INTO sync_exceptions(target, change, sum)
     SELECT ?, no, ${exceptionSum("no")} FROM changes WHERE writer = ? AND no <= ?`,
  );
  const early = createEarlyChanges(db);
  const records = createFoundRecords(db);
  const firstGap = db.query<{ no: number | null }, [number, string]>(
    `SELECT min(c.no) AS no FROM changes c WHERE c.no > ?1 AND (c.writer = 0 OR ${IS_OF_SOMEBODY})
     AND NOT EXISTS(SELECT 1 FROM sync_exceptions e WHERE e.target = ?2 AND e.change = c.no)`,
  );
  const newest = db.query<{ no: number | null }, []>("SELECT max(no) AS no FROM changes");
  const positions = db.query<ChainPosition, [number, number]>(
    `SELECT c.no, CASE WHEN ${IS_OF_SOMEBODY} THEN c.writer ELSE 0 END AS writer, c.seq
     FROM changes c WHERE c.no > ? ORDER BY c.no LIMIT ?`,
  );
  const unconfirmedBehind = db.query<UnconfirmedChange, [number, string, number]>(
    `SELECT no, writer, seq, id, bytes FROM changes c
     WHERE no IN (SELECT change FROM sync_exceptions WHERE target = ?2 AND change <= ?1)
       AND (c.writer = 0 OR ${IS_OF_SOMEBODY}) AND ${IS_WHOLE} ORDER BY no LIMIT ?3`,
  );
  const unconfirmedAhead = db.query<UnconfirmedChange, [number, string, number]>(
    `SELECT no, writer, seq, id, bytes FROM changes c
     WHERE no > ?1 AND NOT EXISTS(SELECT 1 FROM sync_exceptions e WHERE e.target = ?2 AND e.change = c.no)
       AND (c.writer = 0 OR ${IS_OF_SOMEBODY}) AND ${IS_WHOLE} ORDER BY no LIMIT ?3`,
  );
  const nowhereAhead = db.query<ObjectCount, [number, number]>(
    `SELECT objectNo, count(*) AS count FROM changes c
     WHERE no > ? AND no <= ? AND ${IS_NOWHERE_AHEAD}
     GROUP BY objectNo`,
  );
  const isKept = (target: ReplicaTarget, mark: string): string =>
    `(c.no <= ${mark}) <> EXISTS(SELECT 1 FROM sync_exceptions e WHERE e.target = '${target}' AND e.change = c.no)`;
  const nowhereBehind = db.query<ObjectCount, [number, number]>(
    `SELECT objectNo, count(*) AS count FROM changes c
     WHERE no IN (SELECT change FROM sync_exceptions
         WHERE (target = 'network' AND change <= ?1) OR (target = 'peer' AND change <= ?2))
       AND ${IS_OF_SOMEBODY} AND ${IS_WHOLE} AND NOT (${isKept("network", "?1")}) AND NOT (${isKept("peer", "?2")})
     GROUP BY objectNo`,
  );
  const nowhereAheadOf = db.query<{ count: number }, [number, number]>(
    `SELECT count(*) AS count FROM changes c
     WHERE objectNo = ? AND no > ? AND ${IS_NOWHERE_AHEAD}`,
  );
  const chains = db.query<ChainSize, []>(
    `SELECT no AS writer, author, id, seq, changes AS count, last FROM writers WHERE ${IS_SOMEBODY}`,
  );
  const chainOf = db.query<ChainSize, [number]>(
    `SELECT no AS writer, author, id, seq, changes AS count, last FROM writers WHERE no = ? AND ${IS_SOMEBODY}`,
  );
  const writersAfter = db.query<{ writer: number }, [number, number]>(
    "SELECT DISTINCT writer FROM (SELECT writer FROM changes WHERE no > ? LIMIT ?)",
  );
  const forkedIds = db.query<{ id: Uint8Array }, [number]>(
    `SELECT id FROM changes WHERE writer = ?1 AND seq IN
       (SELECT seq FROM changes WHERE writer = ?1 GROUP BY seq HAVING count(*) > 1) ORDER BY id`,
  );
  const idsOfWriter = db.query<{ id: Uint8Array; no: number }, [number, number]>(
    "SELECT id, no FROM changes WHERE writer = ? ORDER BY seq DESC LIMIT ?",
  );
  const writersAwaitingPosition = db.query<{ writer: number }, []>(`${WRITERS_AWAITING_POSITION} ORDER BY d.writer`);
  const anyForeign = db.query<{ no: number }, []>(
    `SELECT no FROM writers WHERE counted = 0 AND changes > 0 AND no NOT IN (${WRITERS_AWAITING_POSITION}) LIMIT 1`,
  );
  const foreign = db.query<{ no: number }, [number]>(`SELECT no FROM writers WHERE no = ? AND NOT ${IS_SOMEBODY}`);
  const positionOf = db.query<ChainPosition & { objectNo: number }, [Uint8Array]>(
    "SELECT no, writer, seq, objectNo FROM changes WHERE id = ?",
  );
  const regularObjects = db.query<{ count: number }, []>("SELECT count FROM regular_objects");
  const objectSize = db.query<{ count: number; newest: number | null }, [number]>(
    "SELECT count(*) AS count, max(no) AS newest FROM changes WHERE objectNo = ?",
  );

  /** Grows whenever single changes become known, or are no longer known, to be kept elsewhere. */
  let confirmed = 0;
  /** Grows whenever changes are no longer known to be kept elsewhere. */
  let doubts = 0;
  let counted: { from: number; to: number; as: number; counts: ReadonlyMap<number, number> } | undefined;

  const markOf = (target: ReplicaTarget): number => upto.get(target)?.upto ?? 0;
  const newestNo = (): number => newest.get()?.no ?? 0;
  const raise = (target: ReplicaTarget, from: number, to: number): void => {
    setUpto.run(target, to);
    dropExceptions.run(target, from, to);
  };
  const confirm = (target: ReplicaTarget, numbers: readonly number[]): void => {
    confirmed++;
    const mark = markOf(target);
    for (const no of numbers) (no > mark ? addException : dropException).run(target, no);
    const gap = firstGap.get(mark, target)?.no ?? null;
    const to = gap === null ? newestNo() : gap - 1;
    if (to > mark) raise(target, mark, to);
  };
  const everywhereUpto = (): number => Math.max(markOf("network"), markOf("peer"));
  const behindOf = (): readonly ObjectCount[] => nowhereBehind.all(markOf("network"), markOf("peer"));

  return {
    newestNo,
    /** Notes that single changes are kept there. The mark moves on over everything that is confirmed without a gap. */
    confirm,
    /** Notes that single changes are not kept there after all. */
    unconfirm(target: ReplicaTarget, numbers: readonly number[]): void {
      if (numbers.length === 0) return;
      confirmed++;
      doubts++;
      const mark = markOf(target);
      for (const no of numbers) (no > mark ? dropException : addException).run(target, no);
    },
    /**
     * Removes the confirmation of changes by these writers: the marks may have passed over them while none of their changes
     * counted.
     */
    unconfirmPassedOver(writers: readonly number[]): void {
      if (writers.length === 0) return;
      confirmed++;
      doubts++;
      for (const writer of writers)
        for (const target of REPLICA_TARGETS) exceptWriter.run(target, writer, markOf(target));
    },
    /** A number that grows whenever something is no longer known to be kept where it was. */
    doubts: (): number => doubts,
    isKept: (target: ReplicaTarget, no: number): boolean =>
      no <= markOf(target) !== (isException.get(target, no) !== null),
    /** Notes that a change that still waits here is kept there; it is counted once it is stored. */
    confirmEarly: (target: ReplicaTarget, id: Uint8Array) => void early.add(target, id),
    /** Counts the changes that were confirmed while they waited and have been stored since. */
    countEarly(target: ReplicaTarget): void {
      const stored = early.stored(target);
      if (stored.length === 0) return;
      for (const { id } of stored) early.drop(target, id);
      confirm(
        target,
        stored.map(({ no }) => no),
      );
    },
    /**
     * Returns what a target has of the local changes: the number up to which it has everything that the mark has not passed, and
     * which of the exceptions behind the mark it has.
     */
    reachOf(target: ReplicaTarget, covers: (writer: number, seq: number) => boolean): Reach {
      const mark = markOf(target);
      const again = behind.all(target, mark).flatMap(({ no, writer, seq }) => (covers(writer, seq) ? [no] : []));
      let upto = mark;
      // A peer that brings news has nothing of what is new here: the first row mostly says so.
      for (let looked = 0, size = 8; looked < REACH_POSITIONS; size = Math.min(size * 8, 1024)) {
        const page = positions.all(upto, size);
        for (const { no, writer, seq } of page) {
          if (writer !== 0 && !covers(writer, seq)) return { upto, again, isPart: false };
          upto = no;
        }
        if (page.length < size) return { upto, again, isPart: false };
        looked += page.length;
      }
      return { upto, again, isPart: true };
    },
    markOf,
    /** Whether the target is known to have everything that is stored here. */
    hasAll(target: ReplicaTarget): boolean {
      const mark = markOf(target);
      return mark >= newestNo() && behind.get(target, mark) === null;
    },
    /** Moves the mark of a target that turned out to have changes that far. */
    advance(target: ReplicaTarget, { upto, again }: Pick<Reach, "upto" | "again">): void {
      confirmed++;
      for (const no of again) dropException.run(target, no);
      const mark = markOf(target);
      if (upto > mark) raise(target, mark, upto);
    },
    /** Forgets what a target has: it turned out to be another one, or an older copy. */
    forget(target: ReplicaTarget): void {
      confirmed++;
      doubts++;
      setUpto.run(target, 0);
      dropExceptions.run(target, 0, Number.MAX_SAFE_INTEGER);
      early.clear(target);
    },
    /** Notes that an ACL record, or a proposal of one, was found there. */
    noteRecord: records.add,
    hasRecord: records.has,
    forgetRecords: records.clear,
    /** How many records of the ACL log only this device is known to have. */
    recordsKeptNowhereElse: records.countNowhereElse,
    unconfirmed(target: ReplicaTarget, limit: number): UnconfirmedChange[] {
      const mark = markOf(target);
      const again = unconfirmedBehind.all(mark, target, limit);
      return again.length === limit ? again : [...again, ...unconfirmedAhead.all(mark, target, limit - again.length)];
    },
    /** Returns how many changes only this device is known to have, by object number. */
    keptNowhereElse(): ReadonlyMap<number, number> {
      const [from, to] = [everywhereUpto(), newestNo()];
      // Does not count again what was counted, because the status may be asked for while a hundred thousand changes come in.
      const as = confirmed + rewrites();
      const known = counted?.from === from && counted.as === as && !db.inTransaction ? counted : undefined;
      const counts = new Map(known?.counts);
      for (const { objectNo, count } of nowhereAhead.all(known?.to ?? from, to))
        counts.set(objectNo, (counts.get(objectNo) ?? 0) + count);
      if (!db.inTransaction) counted = { from, to, as, counts };
      const again = behindOf();
      if (again.length === 0) return counts;
      const all = new Map(counts);
      for (const { objectNo, count } of again) all.set(objectNo, (all.get(objectNo) ?? 0) + count);
      return all;
    },
    keptNowhereElseOf: (objectNo: number): number =>
      nowhereAheadOf.get(objectNo, everywhereUpto())!.count +
      (behindOf().find((behind) => behind.objectNo === objectNo)?.count ?? 0),

    /** Returns positions in the order of arrival, in which parents come first. */
    positions: (afterNo: number, limit: number) => positions.all(afterNo, limit),
    chains: () => chains.all(),
    /** The chain of one writer, if it is in `chains`. */
    chainOf: (writer: number): ChainSize | undefined => chainOf.get(writer) ?? undefined,
    /** Numbers of the writers of the first so many changes behind a number. */
    writersAfter: (no: number, limit: number): number[] => writersAfter.all(no, limit).map(({ writer }) => writer),
    /** Numbers of writers of whom changes wait with an ACL record for its position: they may have chains for that alone. */
    writersAwaitingPosition: (): number[] => writersAwaitingPosition.all().map(({ writer }) => writer),
    /** Ids of all changes that share their seq with another of the same writer, sorted. */
    forkedIds: (writer: number) => forkedIds.all(writer).map(({ id }) => id),
    /** Newest first. */
    idsOfWriter: (writer: number, limit: number) => idsOfWriter.all(writer, limit),
    positionOf: (id: Uint8Array) => positionOf.get(id) ?? undefined,
    /** Whether changes are stored here of writers of whose changes none counts. */
    hasForeign: (): boolean => anyForeign.get() !== null,
    isForeign: (writer: number): boolean => foreign.get(writer) !== null,

    regularObjects: (): number => regularObjects.get()!.count,
    objectSize(objectNo: number): { count: number; newestNo: number } {
      const row = objectSize.get(objectNo);
      return { count: row?.count ?? 0, newestNo: row?.newest ?? 0 };
    },
  };
}

/** Changes that a target is known to keep while they are not stored here yet. */
function createEarlyChanges(db: Database) {
  const add = db.query<null, [ReplicaTarget, Uint8Array]>(
    "INSERT OR IGNORE INTO sync_early_changes(target, id) VALUES(?, ?)",
  );
  const stored = db.query<{ no: number; id: Uint8Array }, [ReplicaTarget]>(
    "SELECT c.no, c.id FROM sync_early_changes e JOIN changes c ON c.id = e.id WHERE e.target = ?",
  );
  const drop = db.query<null, [ReplicaTarget, Uint8Array]>(
    "DELETE FROM sync_early_changes WHERE target = ? AND id = ?",
  );
  const clear = db.query<null, [ReplicaTarget]>("DELETE FROM sync_early_changes WHERE target = ?");
  return {
    add: (target: ReplicaTarget, id: Uint8Array) => void add.run(target, id),
    drop: (target: ReplicaTarget, id: Uint8Array) => void drop.run(target, id),
    clear: (target: ReplicaTarget) => void clear.run(target),
    /** Those that have been stored since. */
    stored: (target: ReplicaTarget) => stored.all(target),
  };
}

/** ACL records, in the log or proposed, that were found with a target. */
function createFoundRecords(db: Database) {
  const add = db.query<null, [ReplicaTarget, Uint8Array]>(
    "INSERT OR IGNORE INTO sync_acl_records(target, id) VALUES(?, ?)",
  );
  const has = db.query<{ one: number }, [ReplicaTarget, Uint8Array]>(
    "SELECT 1 AS one FROM sync_acl_records WHERE target = ? AND id = ?",
  );
  const nowhereElse = db.query<{ count: number }, []>(
    `SELECT count(*) AS count FROM acl_records a WHERE a.${IS_IN_LOG} AND NOT EXISTS(
       SELECT 1 FROM sync_acl_records f WHERE f.target IN ('network', 'peer') AND f.id = a.id)`,
  );
  const clear = db.query<null, [ReplicaTarget]>("DELETE FROM sync_acl_records WHERE target = ?");
  return {
    add: (target: ReplicaTarget, id: Uint8Array) => void add.run(target, id),
    has: (target: ReplicaTarget, id: Uint8Array): boolean => has.get(target, id) !== null,
    clear: (target: ReplicaTarget) => void clear.run(target),
    /** How many records of the log were found with neither. */
    countNowhereElse: (): number => nowhereElse.get()?.count ?? 0,
  };
}
