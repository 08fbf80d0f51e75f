import type { Database } from "bun:sqlite";

/** Who keeps copies of this device's changes: the network's log, and other devices of members. */
export type ReplicaTarget = "network" | "peer";

/** Stands among the targets for what of the rights is kept there. */
const ACL_TARGETS = { network: "network.acl", peer: "peer.acl" } as const satisfies Record<ReplicaTarget, string>;

/** Where a change stands in its writer's chain, without its bytes. Writer 0 is nobody's: derived roots, and what nobody keeps. */
export interface ChangePlace {
  readonly no: number;
  readonly writer: number;
  readonly seq: number;
}

export interface UnconfirmedChange extends ChangePlace {
  readonly id: Uint8Array;
  readonly bytes: Uint8Array;
}

/** A writer's chain in brief. More changes than its highest seq: two devices wrote under one name. */
export interface ChainSize {
  readonly writer: number;
  readonly author: Uint8Array;
  readonly id: Uint8Array;
  readonly seq: number;
  readonly count: number;
  /** The change at `seq` that came first. */
  readonly last: Uint8Array;
}

/** Of a writer of whose changes any counts, or of nobody: what others wrote without the right is nobody's to keep or miss. */
const IS_OF_SOMEBODY = "EXISTS(SELECT 1 FROM writers w WHERE w.no = c.writer AND w.counted > 0)";

/** What misses its body here is for those to tell of who have it. Of what is deleted the stub is all there is to tell. */
const IS_WHOLE = "NOT EXISTS(SELECT 1 FROM unopened u WHERE u.change = c.no AND u.wait_kind = 'body')";

/**
 * Which changes are known to be kept elsewhere: all up to a number, and single ones beyond it. Writes happen inside the
 * commit queue's transaction.
 */
/** `rewrites` tells how often changes got their bodies, or lost them. */
export function createSyncTable(db: Database, rewrites: () => number) {
  const upto = db.query<{ upto: number }, [string]>("SELECT upto FROM sync_marks WHERE target = ?");
  const setUpto = db.query<null, [string, number]>(
    "INSERT INTO sync_marks(target, upto) VALUES(?, ?) ON CONFLICT(target) DO UPDATE SET upto = excluded.upto",
  );
  const addAhead = db.query<null, [string, number]>("INSERT OR IGNORE INTO sync_ahead(target, change) VALUES(?, ?)");
  const dropAhead = db.query<null, [string, number]>("DELETE FROM sync_ahead WHERE target = ? AND change <= ?");
  const addAheadBetween = db.query<null, [string, number, number]>(
    "INSERT OR IGNORE INTO sync_ahead(target, change) SELECT ?, no FROM changes WHERE no > ? AND no <= ?",
  );
  const dropOne = db.query<null, [string, number]>("DELETE FROM sync_ahead WHERE target = ? AND change = ?");
  const clearAhead = db.query<null, [string]>("DELETE FROM sync_ahead WHERE target = ?");
  const addEarly = db.query<null, [string, Uint8Array]>("INSERT OR IGNORE INTO sync_early(target, id) VALUES(?, ?)");
  const early = db.query<{ no: number; id: Uint8Array }, [string]>(
    "SELECT c.no, c.id FROM sync_early e JOIN changes c ON c.id = e.id WHERE e.target = ?",
  );
  const dropEarly = db.query<null, [string, Uint8Array]>("DELETE FROM sync_early WHERE target = ? AND id = ?");
  const hasEarly = db.query<{ one: number }, [string, Uint8Array]>(
    "SELECT 1 AS one FROM sync_early WHERE target = ? AND id = ?",
  );
  const recordsNowhere = db.query<{ count: number }, [string, string]>(
    `SELECT count(*) AS count FROM acl_records a WHERE NOT EXISTS(
       SELECT 1 FROM sync_early e WHERE e.target IN (?1, ?2) AND e.id = a.id)`,
  );
  const clearEarly = db.query<null, [string]>("DELETE FROM sync_early WHERE target = ?");
  const firstGap = db.query<{ no: number | null }, [number, string]>(
    `SELECT min(c.no) AS no FROM changes c WHERE c.no > ?1 AND (c.writer = 0 OR ${IS_OF_SOMEBODY})
     AND NOT EXISTS(SELECT 1 FROM sync_ahead a WHERE a.target = ?2 AND a.change = c.no)`,
  );
  const newest = db.query<{ no: number | null }, []>("SELECT max(no) AS no FROM changes");
  const places = db.query<ChangePlace, [number, number]>(
    `SELECT c.no, CASE WHEN ${IS_OF_SOMEBODY} THEN c.writer ELSE 0 END AS writer, c.seq
     FROM changes c WHERE c.no > ? ORDER BY c.no LIMIT ?`,
  );
  const unconfirmed = db.query<UnconfirmedChange, [number, string, number]>(
    `SELECT no, writer, seq, id, bytes FROM changes c
     WHERE no > ?1 AND NOT EXISTS(SELECT 1 FROM sync_ahead a WHERE a.target = ?2 AND a.change = c.no)
       AND (c.writer = 0 OR ${IS_OF_SOMEBODY}) AND ${IS_WHOLE} ORDER BY no LIMIT ?3`,
  );
  const nowhere = db.query<{ objectNo: number; count: number }, [number, number]>(
    `SELECT objectNo, count(*) AS count FROM changes c
     WHERE no > ? AND no <= ? AND ${IS_OF_SOMEBODY} AND NOT EXISTS(SELECT 1 FROM sync_ahead a WHERE a.change = c.no) AND ${IS_WHOLE}
     GROUP BY objectNo`,
  );
  const nowhereOf = db.query<{ count: number }, [number, number]>(
    `SELECT count(*) AS count FROM changes c
     WHERE objectNo = ? AND no > ? AND ${IS_OF_SOMEBODY} AND NOT EXISTS(SELECT 1 FROM sync_ahead a WHERE a.change = c.no) AND ${IS_WHOLE}`,
  );
  const chains = db.query<ChainSize, []>(
    "SELECT no AS writer, author, id, seq, changes AS count, last FROM writers WHERE counted > 0",
  );
  const forkedIds = db.query<{ id: Uint8Array }, [number]>(
    `SELECT id FROM changes WHERE writer = ?1 AND seq IN
       (SELECT seq FROM changes WHERE writer = ?1 GROUP BY seq HAVING count(*) > 1) ORDER BY id`,
  );
  const idsOfWriter = db.query<{ id: Uint8Array; no: number }, [number, number]>(
    "SELECT id, no FROM changes WHERE writer = ? ORDER BY seq DESC LIMIT ?",
  );
  const placeOf = db.query<ChangePlace & { objectNo: number }, [Uint8Array]>(
    "SELECT no, writer, seq, objectNo FROM changes WHERE id = ?",
  );
  const objectCounts = db.query<{ total: number }, []>(
    "SELECT count(*) AS total FROM objects WHERE derived = 0 AND deleted = 0",
  );
  const objectSize = db.query<{ count: number; newest: number | null }, [number]>(
    "SELECT count(*) AS count, max(no) AS newest FROM changes WHERE objectNo = ?",
  );

  /** Grows whenever single changes become known, or are no longer known, to be kept elsewhere. */
  let confirmed = 0;
  let counted: { from: number; to: number; as: number; counts: ReadonlyMap<number, number> } | undefined;

  const markOf = (target: ReplicaTarget): number => upto.get(target)?.upto ?? 0;
  const newestNo = (): number => newest.get()?.no ?? 0;
  /** Moves the mark over everything that is confirmed without a gap. */
  const close = (target: ReplicaTarget): void => {
    const from = markOf(target);
    const gap = firstGap.get(from, target)?.no ?? null;
    const to = gap === null ? newestNo() : gap - 1;
    if (to <= from) return;
    setUpto.run(target, to);
    dropAhead.run(target, to);
  };
  const everywhereUpto = (): number => Math.max(markOf("network"), markOf("peer"));

  return {
    newestNo,
    /** Single changes are kept there. */
    confirm(target: ReplicaTarget, numbers: readonly number[]): void {
      confirmed++;
      for (const no of numbers) addAhead.run(target, no);
      close(target);
    },
    /** Single changes are not kept there after all. */
    unconfirm(target: ReplicaTarget, numbers: readonly number[]): void {
      if (numbers.length === 0) return;
      confirmed++;
      const from = Math.min(...numbers) - 1;
      const to = markOf(target);
      if (from < to) {
        addAheadBetween.run(target, from, to);
        setUpto.run(target, from);
      }
      for (const no of numbers) dropOne.run(target, no);
    },
    /** A change that still waits here is kept there: it counts once it is stored. */
    confirmEarly: (target: ReplicaTarget, id: Uint8Array) => void addEarly.run(target, id),
    /** Counts what was confirmed while it waited and has been stored since. */
    settleEarly(target: ReplicaTarget): void {
      const settled = early.all(target);
      if (settled.length === 0) return;
      confirmed++;
      for (const { no, id } of settled) {
        addAhead.run(target, no);
        dropEarly.run(target, id);
      }
      close(target);
    },
    /** Up to which number a target has everything that is here. Not below what is known of it. */
    reachOf(target: ReplicaTarget, covers: (writer: number, seq: number) => boolean): number {
      let to = markOf(target);
      for (;;) {
        const page = places.all(to, 1000);
        for (const { no, writer, seq } of page) {
          if (writer !== 0 && !covers(writer, seq)) return to;
          to = no;
        }
        if (page.length < 1000) return to;
      }
    },
    markOf,
    /** Everything up to a number is kept there. */
    advance(target: ReplicaTarget, to: number): void {
      if (to > markOf(target)) setUpto.run(target, to);
    },
    /** The target turned out to be another one, or an older copy: nothing is known to be there. */
    forget(target: ReplicaTarget): void {
      confirmed++;
      setUpto.run(target, 0);
      clearAhead.run(target);
      clearEarly.run(target);
    },
    /** A record of rights, or a proposal of one, was met there. */
    noteRecord: (target: ReplicaTarget, id: Uint8Array) => void addEarly.run(ACL_TARGETS[target], id),
    hasRecord: (target: ReplicaTarget, id: Uint8Array): boolean => hasEarly.get(ACL_TARGETS[target], id) !== null,
    forgetRecords: (target: ReplicaTarget) => void clearEarly.run(ACL_TARGETS[target]),
    /** How many records of the ACL log only this device is known to have. */
    recordsKeptNowhereElse: (): number => recordsNowhere.get(ACL_TARGETS.network, ACL_TARGETS.peer)?.count ?? 0,
    unconfirmed: (target: ReplicaTarget, limit: number) => unconfirmed.all(markOf(target), target, limit),
    /** Changes that only this device is known to have, by object number. */
    keptNowhereElse(): ReadonlyMap<number, number> {
      const [from, to] = [everywhereUpto(), newestNo()];
      // What was counted is not counted again, while a hundred thousand come in and the status is asked for.
      const as = confirmed + rewrites();
      const known = counted?.from === from && counted.as === as && !db.inTransaction ? counted : undefined;
      const counts = new Map(known?.counts);
      for (const { objectNo, count } of nowhere.all(known?.to ?? from, to))
        counts.set(objectNo, (counts.get(objectNo) ?? 0) + count);
      if (!db.inTransaction) counted = { from, to, as, counts };
      return counts;
    },
    keptNowhereElseOf: (objectNo: number): number => nowhereOf.get(objectNo, everywhereUpto())?.count ?? 0,

    /** In the order of arrival, which is parents first. */
    places: (afterNo: number, limit: number) => places.all(afterNo, limit),
    chains: () => chains.all(),
    /** Ids of all changes that share their seq with another of the same writer, sorted. */
    forkedIds: (writer: number) => forkedIds.all(writer).map(({ id }) => id),
    /** Newest first. */
    idsOfWriter: (writer: number, limit: number) => idsOfWriter.all(writer, limit),
    placeOf: (id: Uint8Array) => placeOf.get(id) ?? undefined,

    regularObjects: (): number => objectCounts.get()?.total ?? 0,
    objectSize(objectNo: number): { count: number; newestNo: number } {
      const row = objectSize.get(objectNo);
      return { count: row?.count ?? 0, newestNo: row?.newest ?? 0 };
    },
  };
}
