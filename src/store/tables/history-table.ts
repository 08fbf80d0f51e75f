import type { Database } from "bun:sqlite";

/** A change of an object's graph, without its bytes. */
export interface HistoryEntry {
  change: number;
  lamport: number;
  writer: number;
  datasetNo: number;
  /** The change is of a dataset that keeps no history: it is part of the graph but never shown. */
  hidden: boolean;
  timeMs: number;
  /** Numbers of its parents; a root that is not in this table may be among them. */
  parents: readonly number[];
}

/** A change as a page of the history needs it. */
export interface ListedChange {
  no: number;
  id: Uint8Array;
  lamport: number;
  writer: number;
  datasetNo: number;
  timeMs: number;
}

/** Which changes of an object a page is about. Absent: all. */
export interface HistoryFilter {
  objectNo: number;
  row?: number;
  trace?: Uint8Array;
  datasetNo?: number;
  writers?: readonly number[];
}

/** A position in the order of changes: lamport, then id. */
interface Position {
  lamport: number;
  id: Uint8Array;
}

interface EntryRow {
  change: number;
  lamport: number;
  writer: number;
  datasetNo: number;
  hidden: number;
  time: number;
  parents: number | string | null;
}

/** Which index is walked: that of the changes of an object, of one of its rows, or of a trace. */
const SOURCES = {
  object: { from: "history h", where: "h.objectNo = ?1", lamport: "h.lamport" },
  row: {
    from: "touches k CROSS JOIN history h ON h.objectNo = ?1 AND h.lamport = k.lamport AND h.change = k.change",
    where: "k.row = ?2",
    lamport: "k.lamport",
  },
  trace: {
    from: "history_traces k CROSS JOIN history h ON h.objectNo = ?1 AND h.lamport = k.lamport AND h.change = k.change",
    where: "k.objectNo = ?1 AND k.trace = ?3",
    lamport: "k.lamport",
  },
} as const;
type Source = keyof typeof SOURCES;

const KEYS: Readonly<Record<Source, string>> = {
  object: "SELECT lamport FROM history WHERE objectNo = ?1 AND lamport <= ?2 ORDER BY lamport DESC LIMIT 1 OFFSET ?3",
  row: "SELECT lamport FROM touches WHERE row = ?1 AND lamport <= ?2 ORDER BY lamport DESC LIMIT 1 OFFSET ?3",
  trace:
    "SELECT lamport FROM history_traces WHERE objectNo = ?1 AND lamport <= ?2 AND trace = ?4 ORDER BY lamport DESC LIMIT 1 OFFSET ?3",
};

const pageSql = ({ from, where, lamport }: (typeof SOURCES)[Source]): string =>
  `SELECT c.no, c.id, c.lamport, c.writer, c.datasetNo, c.time AS timeMs FROM ${from} CROSS JOIN changes c ON c.no = h.change
   WHERE ${where} AND ${lamport} BETWEEN ?4 AND ?5 AND h.hidden = 0 AND c.counts = 1
     AND (?6 IS NULL OR h.datasetNo = ?6)
     AND (?7 IS NULL OR h.writer IN (SELECT value FROM json_each(?7)))
     AND (?3 IS NULL OR EXISTS (SELECT 1 FROM history_traces x WHERE x.objectNo = ?1 AND x.trace = ?3 AND x.lamport = h.lamport AND x.change = h.change))
     AND (c.lamport < ?5 OR ?8 IS NULL OR c.id < ?8)
   ORDER BY ${lamport} DESC, c.id DESC LIMIT ?9`;

/**
 * Holds the graphs of objects in a narrow form, and the traces by which changes are found. It is written in the change's own
 * transaction.
 */
export type HistoryTable = ReturnType<typeof createHistoryTable>;

export function createHistoryTable(db: Database) {
  const add = db.query<null, [number, number, number, number, number, number, number, number | string | null]>(
    "INSERT OR REPLACE INTO history(objectNo, lamport, change, writer, datasetNo, hidden, time, parents) VALUES(?,?,?,?,?,?,?,?)",
  );
  const addTrace = db.query<null, [number, Uint8Array, number, number]>(
    "INSERT OR IGNORE INTO history_traces(objectNo, trace, lamport, change) VALUES(?,?,?,?)",
  );
  const hide = db.query<null, [number, number, number]>(
    "UPDATE history SET hidden = 1, datasetNo = 0 WHERE objectNo = ? AND lamport = ? AND change = ?",
  );
  const dropTraces = db.query<null, [number, number]>(
    `DELETE FROM history_traces WHERE objectNo = ?1 AND (trace, lamport, change) IN
       (SELECT trace, lamport, change FROM history_traces WHERE objectNo = ?1 LIMIT ?2)`,
  );
  /** How often entries of an object were replaced: code that read them before has to read them again. */
  const revisions = new Map<number, number>();
  const entries = db.query<EntryRow, [number, number, number, number, number, number]>(
    `SELECT change, lamport, writer, datasetNo, hidden, time, parents FROM history
     WHERE objectNo = ?1 AND (lamport, change) > (?2, ?3) AND change > ?4 AND change <= ?5 ORDER BY lamport, change LIMIT ?6`,
  );
  type PageParams = [
    number,
    number | null,
    Uint8Array | null,
    number,
    number,
    number | null,
    string | null,
    Uint8Array | null,
    number,
  ];
  const pages = {
    object: db.query<ListedChange, PageParams>(pageSql(SOURCES.object)),
    row: db.query<ListedChange, PageParams>(pageSql(SOURCES.row)),
    trace: db.query<ListedChange, PageParams>(pageSql(SOURCES.trace)),
  };
  const keyByObject = db.query<{ lamport: number }, [number, number, number]>(KEYS.object);
  const keyByRow = db.query<{ lamport: number }, [number, number, number]>(KEYS.row);
  const keyByTrace = db.query<{ lamport: number }, [number, number, number, Uint8Array]>(KEYS.trace);
  const writersOf = db.query<{ no: number }, [Uint8Array]>("SELECT no FROM writers WHERE author = ?");
  const touchesAfter = db.query<{ lamport: number; change: number }, [number, number, number, number]>(
    "SELECT lamport, change FROM touches WHERE row = ? AND (lamport, change) > (?, ?) ORDER BY lamport, change LIMIT ?",
  );
  const countedTouches = db.query<
    { no: number; lamport: number; id: Uint8Array },
    [number, number, number, number, Uint8Array, number]
  >(
    `SELECT c.no, c.lamport, c.id FROM touches t CROSS JOIN changes c ON c.no = t.change
     WHERE t.row = ? AND t.lamport BETWEEN ? AND ? AND c.counts = 1 AND (t.lamport > ? OR c.id > ?)
     ORDER BY t.lamport, c.id LIMIT ?`,
  );
  const touchedBy = db.query<{ n: number }, [number, number]>(
    "SELECT 1 AS n FROM touches WHERE row = ? AND lamport < ? LIMIT 1",
  );
  const rowsOf = db.query<{ no: number; id: string }, [number, string, number]>(
    "SELECT no, id FROM rows WHERE collectionId = ? AND id > ? ORDER BY id LIMIT ?",
  );
  const countedBefore = db.query<
    { no: number; id: Uint8Array; lamport: number; timeMs: number },
    [number, number, number, Uint8Array, number]
  >(
    `SELECT no, id, lamport, time AS timeMs FROM changes WHERE objectNo = ? AND counts = 1 AND datasetNo <> 0 AND (lamport < ? OR (lamport = ? AND id <= ?))
     ORDER BY lamport DESC, id DESC LIMIT ?`,
  );

  const sourceOf = (filter: HistoryFilter): Source =>
    filter.row !== undefined ? "row" : filter.trace !== undefined ? "trace" : "object";

  return {
    add(objectNo: number, entry: HistoryEntry): void {
      const { parents } = entry;
      add.run(
        objectNo,
        entry.lamport,
        entry.change,
        entry.writer,
        entry.datasetNo,
        entry.hidden ? 1 : 0,
        entry.timeMs,
        parents.length === 0 ? null : parents.length === 1 ? parents[0]! : parents.join(","),
      );
    },
    addTrace: (objectNo: number, trace: Uint8Array, lamport: number, change: number) =>
      void addTrace.run(objectNo, trace, lamport, change),

    /** Notes that a hidden entry is shown now, or the other way round. */
    amended: (objectNo: number) => void revisions.set(objectNo, (revisions.get(objectNo) ?? 0) + 1),
    /** Returns how often entries were amended; a rollback does not take this back, which only costs another read. */
    revisionOf: (objectNo: number): number => revisions.get(objectNo) ?? 0,
    /** Removes a change from the list, but not from the graph. The caller calls `amended` afterwards. */
    hide: (objectNo: number, lamport: number, change: number) => void hide.run(objectNo, lamport, change),
    /** Drops some of the traces by which an object's changes are found; returns how many. */
    dropTraces: (objectNo: number, limit: number): number => dropTraces.run(objectNo, limit).changes,

    /** Entries whose change numbers lie in (after, upTo], a page by (lamport, change) after `from`. */
    entries: (
      objectNo: number,
      from: { lamport: number; change: number },
      after: number,
      upTo: number,
      limit: number,
    ): HistoryEntry[] =>
      entries.all(objectNo, from.lamport, from.change, after, upTo, limit).map((row) => ({
        change: row.change,
        lamport: row.lamport,
        writer: row.writer,
        datasetNo: row.datasetNo,
        hidden: row.hidden === 1,
        timeMs: row.time,
        parents:
          row.parents === null
            ? []
            : typeof row.parents === "number"
              ? [row.parents]
              : row.parents.split(",").map(Number),
      })),

    /** Returns the lamport down to which a window of `steps` entries of the filter's index reaches; undefined: to the end. */
    windowFloor(filter: HistoryFilter, fromLamport: number, steps: number): number | undefined {
      const source = sourceOf(filter);
      const found =
        source === "row"
          ? keyByRow.get(filter.row!, fromLamport, steps)
          : source === "trace"
            ? keyByTrace.get(filter.objectNo, fromLamport, steps, filter.trace!)
            : keyByObject.get(filter.objectNo, fromLamport, steps);
      return found?.lamport;
    },

    /**
     * Returns changes that count and are shown, newest first, from lamport `floor` to `before`. Of the lamport of `before` it
     * returns the changes with ids below its id; without an id, all of them.
     */
    page(filter: HistoryFilter, floor: number, before: { lamport: number; id?: Uint8Array }, limit: number) {
      return pages[sourceOf(filter)].all(
        filter.objectNo,
        filter.row ?? null,
        filter.trace ?? null,
        floor,
        before.lamport,
        filter.datasetNo ?? null,
        filter.writers ? JSON.stringify(filter.writers) : null,
        before.id ?? null,
        limit,
      );
    },

    /** Numbers of the writers of an account (by its public key). */
    writersOf: (author: Uint8Array): number[] => writersOf.all(author).map((row) => row.no),
    /** Returns the touches of a row after a position, by (lamport, change), whether they count or not. */
    touchesAfter: (row: number, from: { lamport: number; change: number }, limit: number) =>
      touchesAfter.all(row, from.lamport, from.change, limit),
    /** Returns the changes that count and touched a row after a position in the order, up to a lamport, in the order of the fold. */
    countedTouches: (row: number, after: Position, toLamport: number, limit: number) =>
      countedTouches.all(row, after.lamport, toLamport, after.lamport, after.id, limit),
    /** Whether the row was touched at all before a lamport. */
    isTouchedBefore: (row: number, lamport: number): boolean => touchedBy.get(row, lamport) !== null,
    /** Rows of a collection in the order of their ids, live or not. */
    rowsAfter: (collectionId: number, id: string, limit: number) => rowsOf.all(collectionId, id, limit),
    /** Changes of an object that count and are folded, up to a position, newest first. */
    countedUpTo: (objectNo: number, position: Position, limit: number) =>
      countedBefore.all(objectNo, position.lamport, position.lamport, position.id, limit),
  };
}
