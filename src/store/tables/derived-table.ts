import type { Database } from "bun:sqlite";
import { UNCOUNTED_ROW_BYTES } from "./change-table.ts";
import { UNSURE_DELETIONS } from "./object-table.ts";
import { WRONG_EXCEPTIONS } from "./sync-table.ts";

/** What `history` says of a change. */
interface EdgeRow {
  writer: number;
  datasetNo: number;
  hidden: number;
  time: number;
  parents: number | string | null;
}

/** A change of an object, as far as its heads follow from it. */
interface GraphRow {
  no: number;
  id: Uint8Array;
  lamport: number;
  acl_pos: number;
  bytes: Uint8Array;
}

/** What an object's root says of it. */
interface ObjectRoot {
  readonly id: Uint8Array;
  readonly root: Uint8Array;
  readonly author: Uint8Array | undefined;
  readonly createdMs: number;
}

interface CollectionKey {
  objectNo: number;
  datasetNo: number;
}

interface CollectionRow extends CollectionKey {
  no: number;
}

/** So many rows of a collection are asked where their changes belong. */
const ROWS_ASKED = 20;

type Pointing = "heads" | "touches" | "history" | "history_traces" | "dirty_rows" | "pending_bodies";

/** The columns of each key of tables whose rows point to others, and the condition under which a row `t` says something that can be true. */
const TRUE_ROWS: Readonly<Record<Pointing, { key: readonly string[]; holds: string }>> = {
  heads: {
    key: ["objectNo", "change"],
    holds: "EXISTS(SELECT 1 FROM changes c WHERE c.no = t.change AND c.objectNo = t.objectNo)",
  },
  touches: {
    key: ["row", "lamport", "change"],
    holds: `EXISTS(SELECT 1 FROM changes c JOIN rows r ON r.no = t.row JOIN collections k ON k.no = r.collectionId
      WHERE c.no = t.change AND c.lamport = t.lamport AND (r.collectionId = 0 OR k.objectNo = c.objectNo)
        AND (c.datasetNo = 0 OR r.collectionId = 0 OR k.datasetNo = c.datasetNo))`,
  },
  history: {
    key: ["objectNo", "lamport", "change"],
    holds:
      "EXISTS(SELECT 1 FROM changes c WHERE c.no = t.change AND c.objectNo = t.objectNo AND c.lamport = t.lamport)",
  },
  history_traces: {
    key: ["objectNo", "trace", "lamport", "change"],
    holds:
      "EXISTS(SELECT 1 FROM changes c WHERE c.no = t.change AND c.objectNo = t.objectNo AND c.lamport = t.lamport)",
  },
  dirty_rows: { key: ["row"], holds: "EXISTS(SELECT 1 FROM rows r WHERE r.no = t.row)" },
  pending_bodies: {
    key: ["change"],
    holds: "EXISTS(SELECT 1 FROM changes c WHERE c.no = t.change AND c.objectNo = t.objectNo AND c.datasetNo = 0)",
  },
};

/** So many strays of a table are named at once. */
const MOST_STRAYS = 1_000;

const TABLES = Object.keys(TRUE_ROWS) as Pointing[];

/** Tables of one row, and what adds up to it. */
const SUMS = {
  uncounted: {
    columns: ["count", "bytes"],
    sum: `SELECT count(*) AS count, ifnull(sum(length(bytes) + ${UNCOUNTED_ROW_BYTES}), 0) AS bytes FROM changes WHERE counts = 0`,
  },
  regular_objects: {
    columns: ["count"],
    sum: "SELECT count(*) AS count FROM objects WHERE derived = 0 AND deleted = 0",
  },
} as const;
const SUMMED = Object.keys(SUMS) as (keyof typeof SUMS)[];

/**
 * Finds, in passes over whole tables that a reader makes in one snapshot: rows that point to nothing, or to something they do
 * not belong to; writers whose rows are not what their changes add up to; wrong sums; objects of which it
 * is not known any more when they were deleted; wrong notes of what is kept elsewhere.
 */
const SEARCHES: readonly string[] = [
  ...TABLES.map(
    (table) =>
      `SELECT ${TRUE_ROWS[table].key.join(", ")} FROM ${table} t WHERE NOT ${TRUE_ROWS[table].holds} LIMIT ${MOST_STRAYS}`,
  ),
  `SELECT w.no FROM writers w
     JOIN (SELECT writer, count(*) AS n, sum(counts) AS counted, max(seq) AS seq FROM changes WHERE writer <> 0 GROUP BY writer) s
       ON s.writer = w.no
     LEFT JOIN changes c ON c.id = w.last
   WHERE w.changes <> s.n OR w.counted <> s.counted OR w.seq <> s.seq
     OR c.no IS NULL OR c.writer <> w.no OR c.seq <> w.seq OR c.lamport <> w.lamport`,
  ...SUMMED.map((table) => {
    const { columns, sum } = SUMS[table];
    const differs = columns.map((column) => `t.${column} IS NOT s.${column}`).join(" OR ");
    return `SELECT 1 AS n FROM ${table} t, (${sum}) s WHERE ${differs}`;
  }),
  UNSURE_DELETIONS,
  WRONG_EXCEPTIONS,
];

type Found = readonly Readonly<Record<string, unknown>>[];

/** What stands beside changes and follows from them, as the check of a space reads it and sets it right. */
export function createDerivedTable(db: Database) {
  const edge = db.query<EdgeRow, [number, number, number]>(
    "SELECT writer, datasetNo, hidden, time, parents FROM history WHERE objectNo = ? AND lamport = ? AND change = ?",
  );
  const isTraced = db.query<{ n: number }, [number, Uint8Array, number, number]>(
    "SELECT 1 AS n FROM history_traces WHERE objectNo = ? AND trace = ? AND lamport = ? AND change = ?",
  );
  const isTouched = db.query<{ n: number }, [number, string, number, number]>(
    "SELECT 1 AS n FROM rows r JOIN touches t ON t.row = r.no WHERE r.collectionId = ? AND r.id = ? AND t.lamport = ? AND t.change = ?",
  );
  const touchesAt = db.query<{ row: number; id: string; change: number }, [number, number]>(
    "SELECT t.row, r.id, t.change FROM rows r CROSS JOIN touches t ON t.row = r.no WHERE r.collectionId = ?1 AND t.lamport = ?2",
  );
  const untouch = db.query<null, [number, number, number]>(
    "DELETE FROM touches WHERE row = ? AND lamport = ? AND change = ?",
  );
  const objectsAfter = db.query<{ no: number }, [number]>("SELECT no FROM objects WHERE no > ? ORDER BY no LIMIT 1");
  const graph = db.query<GraphRow, [number, number, number, number]>(
    `SELECT no, id, lamport, acl_pos, bytes FROM changes WHERE objectNo = ?1 AND (lamport, no) > (?2, ?3)
     ORDER BY lamport, no LIMIT ?4`,
  );
  const graphSince = db.query<GraphRow, [number, number]>(
    "SELECT no, id, lamport, acl_pos, bytes FROM changes WHERE no > ?2 AND objectNo = ?1 ORDER BY no",
  );
  const newest = db.query<{ no: number | null }, []>("SELECT max(no) AS no FROM changes");
  const heads = db.query<{ change: number }, [number]>("SELECT change FROM heads WHERE objectNo = ? ORDER BY change");
  const dropHeads = db.query<null, [number]>("DELETE FROM heads WHERE objectNo = ?");
  const nameWriter = db.query<null, [Uint8Array, Uint8Array, number]>(
    "UPDATE writers SET author = ?, id = ? WHERE no = ?",
  );
  const nameDataset = db.query<null, [string, number]>("UPDATE datasets SET name = ? WHERE no = ?");
  const setDataset = db.query<null, [number, number]>("UPDATE changes SET datasetNo = ? WHERE no = ?");
  const recount = db.query<null, [number]>(
    `UPDATE writers SET
       changes = (SELECT count(*) FROM changes WHERE writer = ?1),
       counted = (SELECT count(*) FROM changes WHERE writer = ?1 AND counts = 1),
       (seq, last, lamport) = (SELECT seq, id, lamport FROM changes WHERE writer = ?1 ORDER BY seq DESC, no LIMIT 1)
     WHERE no = ?1 AND EXISTS(SELECT 1 FROM changes WHERE writer = ?1)`,
  );
  const writers = db.query<{ no: number }, []>("SELECT no FROM writers");
  const sumUp = SUMMED.map((table) =>
    db.query<null, []>(`UPDATE ${table} SET (${SUMS[table].columns.join(", ")}) = (${SUMS[table].sum})`),
  );
  const mendObject = db.query<null, [Uint8Array, Uint8Array, number, Uint8Array | null, number, number]>(
    "UPDATE objects SET id = ?, root = ?, derived = ?, author = ?, created_ms = ? WHERE no = ?",
  );
  const collectionAfter = db.query<CollectionRow, [number]>(
    "SELECT no, objectNo, datasetNo FROM collections WHERE no > ? ORDER BY no LIMIT 1",
  );
  const touchedFrom = db.query<CollectionKey, [number]>(
    `SELECT c.objectNo, c.datasetNo FROM (SELECT no FROM rows WHERE collectionId = ? LIMIT ${ROWS_ASKED}) r
     CROSS JOIN touches t ON t.row = r.no JOIN changes c ON c.no = t.change
     WHERE c.datasetNo <> 0 GROUP BY c.objectNo, c.datasetNo ORDER BY count(*) DESC`,
  );
  const someRows = db.query<{ no: number }, [number]>(
    "SELECT no FROM rows WHERE collectionId = ? ORDER BY no LIMIT 50",
  );
  const dropFalseTraces = db.query<null, [number, number, number, string]>(
    `DELETE FROM history_traces WHERE objectNo = ?1 AND lamport = ?2 AND change = ?3
       AND hex(trace) NOT IN (SELECT value FROM json_each(?4))`,
  );
  const moveCollection = db.query<null, [number, number, number]>(
    "UPDATE OR IGNORE collections SET objectNo = ?, datasetNo = ? WHERE no = ?",
  );
  const drops = TABLES.map((table) => {
    const { key, holds } = TRUE_ROWS[table];
    const wanted = key.map((column) => `t.${column} = ?`).join(" AND ");
    return db.query<null, (number | Uint8Array)[]>(`DELETE FROM ${table} AS t WHERE ${wanted} AND NOT ${holds}`);
  });

  return {
    /** What the history says of a change; parents as it stores them. */
    edge: (objectNo: number, lamport: number, change: number) => edge.get(objectNo, lamport, change) ?? undefined,
    isTraced: (objectNo: number, trace: Uint8Array, lamport: number, change: number): boolean =>
      isTraced.get(objectNo, trace, lamport, change) !== null,
    isTouched: (collectionId: number, id: string, lamport: number, change: number): boolean =>
      isTouched.get(collectionId, id, lamport, change) !== null,
    /** What is said to have touched rows of a collection at one lamport. A pass over the collection. */
    touchesAt: (collectionId: number, lamport: number) => touchesAt.all(collectionId, lamport),
    untouch: (row: number, lamport: number, change: number) => void untouch.run(row, lamport, change),
    /** The number of the object behind this one. */
    objectAfter: (no: number): number | undefined => objectsAfter.get(no)?.no,
    /** A page of an object's changes after a position in the order (lamport, no). */
    graph: (objectNo: number, after: { lamport: number; no: number }, limit: number) =>
      graph.all(objectNo, after.lamport, after.no, limit),
    /** The changes of an object that came after the change with a number. */
    graphSince: (objectNo: number, no: number) => graphSince.all(objectNo, no),
    newestChange: (): number => newest.get()?.no ?? 0,
    heads: (objectNo: number): number[] => heads.all(objectNo).map(({ change }) => change),
    dropHeads: (objectNo: number) => void dropHeads.run(objectNo),
    nameWriter: (no: number, author: Uint8Array, id: Uint8Array) => void nameWriter.run(author, id, no),
    nameDataset: (no: number, name: string) => void nameDataset.run(name, no),
    setDataset: (change: number, datasetNo: number) => void setDataset.run(datasetNo, change),
    mendObject: (no: number, { id, root, author, createdMs }: ObjectRoot) =>
      void mendObject.run(id, root, author ? 0 : 1, author ?? null, createdMs, no),
    /** Drops traces of a change that are not among these. A pass over its object's traces. */
    dropFalseTraces: (objectNo: number, lamport: number, change: number, right: readonly Uint8Array[]) =>
      void dropFalseTraces.run(
        objectNo,
        lamport,
        change,
        JSON.stringify(right.map((trace) => Buffer.from(trace).toString("hex").toUpperCase())),
      ),
    /** Where changes that touched rows of a collection belong, most of them first. */
    touchedFrom: (collectionId: number) => touchedFrom.all(collectionId),
    /** Numbers of the first rows of a collection. */
    someRows: (collectionId: number): number[] => someRows.all(collectionId).map(({ no }) => no),
    /** The collection behind this one. */
    collectionAfter: (no: number) => collectionAfter.get(no) ?? undefined,
    /** Makes a collection one of another object or dataset, unless that has one. */
    moveCollection: (no: number, objectNo: number, datasetNo: number): boolean =>
      moveCollection.run(objectNo, datasetNo, no).changes > 0,
    /** Statements for a reader to run in one snapshot; `mendFound` takes their rows. They go over whole tables. */
    searches: SEARCHES,
    /** Numbers of the objects among what was found of which it is not known any more when they were deleted. */
    unsureDeletions: (found: readonly Found[]): number[] => found.at(-2)!.map(({ no }) => no as number),
    /** Where what is noted of the changes that are kept there was found to be wrong. */
    wrongTargets: (found: readonly Found[]): string[] => found.at(-1)!.map(({ target }) => target as string),
    /** Makes the rows of all writers what their changes add up to. */
    recountWriters(): void {
      for (const { no } of writers.all()) recount.run(no);
    },
    /** Whether anything was found. */
    isFound: (found: readonly Found[]): boolean => found.some((rows) => rows.length > 0),
    /** Removes the rows that still are strays, and adds up again what was added up wrongly. Answers how many of each. */
    mendFound(found: readonly Found[]): Record<string, number> {
      const mended: Record<string, number> = {};
      const count = (name: string, by: number): void => {
        if (by > 0) mended[name] = (mended[name] ?? 0) + by;
      };
      for (const [index, table] of TABLES.entries())
        for (const row of found[index]!)
          count(table, drops[index]!.run(...TRUE_ROWS[table].key.map((column) => row[column] as number)).changes);
      for (const { no } of found[TABLES.length]!) count("writers", recount.run(no as number).changes);
      for (const [index, table] of SUMMED.entries())
        if (found[TABLES.length + 1 + index]!.length > 0) count(table, sumUp[index]!.run().changes);
      return mended;
    },
  };
}
