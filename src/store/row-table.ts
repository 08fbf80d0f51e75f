import type { Database } from "bun:sqlite";
import type { QueryIndexTable } from "./query-index-table.ts";

export type RowState = 0 | 1 | 2;
export const ROW_ABSENT: RowState = 0;
export const ROW_LIVE: RowState = 1;
export const ROW_TOMBSTONE: RowState = 2;

/** The collection of all objects of the space. */
export const OBJECTS_COLLECTION = 0;

/** More datasets than a space can have; keeps (object, dataset) apart in one number. */
const MAX_DATASETS = 1 << 20;
const MAX_CACHED_COLLECTIONS = 10_000;

export interface RowHead {
  no: number;
  doc: string | null;
  state: RowState;
  lamport: number;
  change: Uint8Array;
  ops: number;
  hasLocal: boolean;
}

interface RawRow {
  no: number;
  doc: string | null;
  state: number;
  lamport: number;
  change: Uint8Array;
  ops: number;
  has_local: number;
}

export interface Checkpoint {
  lamport: number;
  change: Uint8Array;
  ops: number;
  state: RowState;
  doc: string | null;
}

export interface RowKey {
  no: number;
  collectionId: number;
  id: string;
}

const NOTHING = new Uint8Array(0);
const PRINTABLE = /^[ -~]*$/;

const toHead = (row: RawRow): RowHead => ({
  no: row.no,
  doc: row.doc,
  state: row.state as RowState,
  lamport: row.lamport,
  change: row.change,
  ops: row.ops,
  hasLocal: row.has_local === 1,
});

/** The projection: rows, what touched them, checkpoints and device-local fields. */
export type RowTable = ReturnType<typeof createRowTable>;

export function createRowTable(db: Database, queryIndexes: Pick<QueryIndexTable, "retireCollection">) {
  const get = db.query<RawRow, [number, string]>(
    "SELECT no, doc, state, lamport, change, ops, has_local FROM rows WHERE collectionId = ? AND id = ?",
  );
  const statesOf = db.query<{ id: string; state: number }, [number, string]>(
    "SELECT r.id, r.state FROM json_each(?2) w CROSS JOIN rows r ON r.collectionId = ?1 AND r.id = w.value",
  );
  const getByNo = db.query<RawRow & { collectionId: number; id: string }, [number]>(
    "SELECT no, collectionId, id, doc, state, lamport, change, ops, has_local FROM rows WHERE no = ?",
  );
  const insert = db.query<null, [number, string, string | null, number, number, Uint8Array, number]>(
    "INSERT INTO rows(collectionId, id, doc, state, lamport, change, ops) VALUES(?,?,?,?,?,?,?)",
  );
  const update = db.query<null, [string | null, number, number, Uint8Array, number, number]>(
    "UPDATE rows SET doc = ?, state = ?, lamport = ?, change = ?, ops = ? WHERE no = ?",
  );
  const moveOrder = db.query<null, [number, Uint8Array, number]>(
    "UPDATE rows SET lamport = ?, change = ? WHERE no = ?",
  );
  const setDoc = db.query<null, [string, number]>("UPDATE rows SET doc = ? WHERE no = ?");
  const setHasLocal = db.query<null, [number, number]>("UPDATE rows SET has_local = ? WHERE no = ?");
  const touch = db.query<null, [number, number, number]>(
    "INSERT OR IGNORE INTO touches(row, lamport, change) VALUES(?,?,?)",
  );
  const rowsOfObject = db.query<RowKey & { state: number }, [number, string]>(
    `SELECT r.no, r.collectionId, r.id, r.state FROM collections c JOIN rows r ON r.collectionId = c.no WHERE c.objectNo = ? AND c.no <> ${OBJECTS_COLLECTION}
     UNION ALL SELECT no, collectionId, id, state FROM rows WHERE collectionId = ${OBJECTS_COLLECTION} AND id = ?`,
  );
  const docs = db.query<{ doc: string }, [number]>(
    "SELECT doc FROM rows WHERE collectionId = ? AND state = 1 ORDER BY id",
  );
  const docsWithLocal = db.query<{ doc: string }, [number]>(
    "SELECT doc FROM rows WHERE collectionId = ? AND has_local = 1 AND state = 1 ORDER BY no",
  );
  const lastPosition = db.query<{ pos: string }, [string]>(
    "SELECT doc ->> '$.nav.pos' AS pos FROM rows WHERE collectionId = 0 AND state = 1 AND doc ->> '$.nav.parentId' = ? ORDER BY doc ->> '$.nav.pos' DESC LIMIT 1",
  );
  const addCheckpoint = db.query<null, [number, number, Uint8Array, number, number, string | null]>(
    "INSERT OR REPLACE INTO checkpoints(row, lamport, change, ops, state, doc) VALUES(?,?,?,?,?,?)",
  );
  const bestCheckpoint = db.query<
    { lamport: number; change: Uint8Array; ops: number; state: number; doc: string | null },
    [number, number, number, Uint8Array]
  >(
    `SELECT lamport, change, ops, state, doc FROM checkpoints WHERE row = ? AND (lamport < ? OR (lamport = ? AND change < ?))
     ORDER BY lamport DESC, change DESC LIMIT 1`,
  );
  const placesOfCheckpoints = db.query<{ lamport: number; change: Uint8Array }, [number, number, number, Uint8Array]>(
    `SELECT lamport, change FROM checkpoints WHERE row = ? AND (lamport > ? OR (lamport = ? AND change >= ?))
     ORDER BY lamport, change`,
  );
  const checkpointAt = db.query<{ state: number; doc: string | null }, [number, number, Uint8Array]>(
    "SELECT state, doc FROM checkpoints WHERE row = ? AND lamport = ? AND change = ?",
  );
  const dropCheckpoint = db.query<null, [number, number, Uint8Array]>(
    "DELETE FROM checkpoints WHERE row = ? AND lamport = ? AND change = ?",
  );
  const collectionsOfDeleted = db.query<{ no: number }, []>(
    `SELECT c.no FROM objects o JOIN collections c ON c.objectNo = o.no WHERE o.deleted = 1 AND c.no <> ${OBJECTS_COLLECTION}`,
  );
  const someRows = db.query<{ no: number }, [number, number]>("SELECT no FROM rows WHERE collectionId = ? LIMIT ?");
  const dropRow = db.query<null, [number]>("DELETE FROM rows WHERE no = ?");
  const dropTouches = db.query<null, [number]>("DELETE FROM touches WHERE row = ?");
  const dropCheckpoints = db.query<null, [number]>("DELETE FROM checkpoints WHERE row = ?");
  const dropCollection = db.query<null, [number]>("DELETE FROM collections WHERE no = ?");
  const getLocal = db.query<{ base: string; fields: string }, [number]>(
    "SELECT base, fields FROM locals WHERE row = ?",
  );
  const putLocal = db.query<null, [number, string, string]>(
    "INSERT INTO locals(row, base, fields) VALUES(?,?,?) ON CONFLICT(row) DO UPDATE SET base = excluded.base, fields = excluded.fields",
  );
  const dropLocal = db.query<null, [number]>("DELETE FROM locals WHERE row = ?");

  const collectionIdOf = db.query<{ no: number }, [number, number]>(
    "SELECT no FROM collections WHERE objectNo = ? AND datasetNo = ?",
  );
  const addCollection = db.query<null, [number, number]>("INSERT INTO collections(objectNo, datasetNo) VALUES(?, ?)");
  const collectionInfo = db.query<{ no: number; objectNo: number; datasetNo: number; live: number }, [number]>(
    "SELECT no, objectNo, datasetNo, live FROM collections WHERE no = ?",
  );
  const addLive = db.query<null, [number, number]>("UPDATE collections SET live = live + ? WHERE no = ?");

  /** Numbers of collections by object and dataset, as far as they were read lately. */
  const collectionIdsByKey = new Map<number, number>();

  function findCollectionId(objectNo: number, datasetNo: number): number | undefined {
    const key = objectNo * MAX_DATASETS + datasetNo;
    const known = collectionIdsByKey.get(key);
    if (known !== undefined) return known;
    const no = collectionIdOf.get(objectNo, datasetNo)?.no;
    if (no === undefined) return undefined;
    if (collectionIdsByKey.size >= MAX_CACHED_COLLECTIONS) collectionIdsByKey.clear();
    collectionIdsByKey.set(key, no);
    return no;
  }

  /** Live records by collection, as of the last commit: never filled inside a transaction, dropped by what counts anew. */
  const liveCounts = new Map<number, number>();

  function liveCount(collectionId: number): number {
    const known = liveCounts.get(collectionId);
    if (known !== undefined) return known;
    const live = collectionInfo.get(collectionId)?.live ?? 0;
    if (db.inTransaction) return live;
    if (liveCounts.size >= MAX_CACHED_COLLECTIONS) liveCounts.clear();
    liveCounts.set(collectionId, live);
    return live;
  }

  return {
    forgetCollections: () => collectionIdsByKey.clear(),
    get(collectionId: number, id: string): RowHead | undefined {
      const row = get.get(collectionId, id);
      return row ? toHead(row) : undefined;
    },
    /** States of those of the records that have a row. */
    statesOf(collectionId: number, ids: readonly string[]): Map<string, RowState> {
      // JSON and a bound text part ways on lone surrogates and NUL: such ids are looked up one by one.
      if (ids.every((id) => PRINTABLE.test(id)))
        return new Map(statesOf.all(collectionId, JSON.stringify(ids)).map((row) => [row.id, row.state as RowState]));
      const rows = ids.map((id) => [id, get.get(collectionId, id)] as const);
      return new Map(rows.flatMap(([id, row]) => (row ? [[id, row.state as RowState]] : [])));
    },
    byNo(no: number): (RowHead & RowKey) | undefined {
      const row = getByNo.get(no);
      return row ? { ...toHead(row), collectionId: row.collectionId, id: row.id } : undefined;
    },
    insert: (
      collectionId: number,
      id: string,
      doc: string | null,
      state: RowState,
      lamport: number,
      change: Uint8Array,
      ops: number,
    ): number => Number(insert.run(collectionId, id, doc, state, lamport, change, ops).lastInsertRowid),
    /** A row that was only touched: nothing counted reached it yet. */
    insertAbsent: (collectionId: number, id: string): number =>
      Number(insert.run(collectionId, id, null, ROW_ABSENT, 0, NOTHING, 0).lastInsertRowid),
    update: (no: number, doc: string | null, state: RowState, lamport: number, change: Uint8Array, ops: number) =>
      void update.run(doc, state, lamport, change, ops, no),
    /** The row was judged by a change that left it as it is. */
    moveOrder: (no: number, lamport: number, change: Uint8Array) => void moveOrder.run(lamport, change, no),
    reset(no: number): void {
      update.run(null, ROW_ABSENT, 0, NOTHING, 0, no);
      dropTouches.run(no);
    },
    setDoc: (no: number, doc: string) => void setDoc.run(doc, no),
    touch: (row: number, lamport: number, change: number) => void touch.run(row, lamport, change),
    /** The rows of a collection that carry device-local fields. */
    docsWithLocal: (collectionId: number): string[] => docsWithLocal.all(collectionId).map((row) => row.doc),
    /** Position of the last object in a folder (`nav.parentId`), by the index on it. */
    lastPosition: (parentId: string): string | undefined => lastPosition.get(parentId)?.pos ?? undefined,
    /** The stored texts of a small collection, by id. */
    docs: (collectionId: number): string[] => docs.all(collectionId).map((row) => row.doc),
    rowsOfObject: (objectNo: number, objectId: string): (RowKey & { state: number })[] =>
      rowsOfObject.all(objectNo, objectId),

    addCheckpoint: (row: number, at: Checkpoint) =>
      void addCheckpoint.run(row, at.lamport, at.change, at.ops, at.state, at.doc),
    /** The newest checkpoint strictly before a place in the order. */
    checkpointBefore(row: number, lamport: number, change: Uint8Array): Checkpoint | undefined {
      const found = bestCheckpoint.get(row, lamport, lamport, change);
      return found ? { ...found, state: found.state as RowState } : undefined;
    },
    /** Where there are checkpoints at or after a place in the order, in order. */
    placesOfCheckpoints: (row: number, lamport: number, change: Uint8Array) =>
      placesOfCheckpoints.all(row, lamport, lamport, change),
    checkpointAt: (row: number, at: { lamport: number; change: Uint8Array }) =>
      checkpointAt.get(row, at.lamport, at.change) ?? undefined,
    dropCheckpoint: (row: number, at: { lamport: number; change: Uint8Array }) =>
      void dropCheckpoint.run(row, at.lamport, at.change),
    /** Forgets all checkpoints of a row. */
    dropCheckpoints: (row: number) => void dropCheckpoints.run(row),

    /** Collections of objects that the deletion log holds: to be torn down. */
    collectionsOfDeleted: (): number[] => collectionsOfDeleted.all().map((row) => row.no),
    /** Removes up to `limit` rows of a collection with all that belongs to them; the collection itself with the last. Answers whether it is gone. */
    tearDown(collectionId: number, limit: number): boolean {
      queryIndexes.retireCollection(collectionId);
      const numbers = someRows.all(collectionId, limit);
      for (const { no } of numbers) {
        dropTouches.run(no);
        dropCheckpoints.run(no);
        dropLocal.run(no);
        dropRow.run(no);
      }
      if (numbers.length === limit) return false;
      dropCollection.run(collectionId);
      collectionIdsByKey.clear();
      liveCounts.delete(collectionId);
      return true;
    },
    local: (row: number) => getLocal.get(row) ?? undefined,
    putLocal(row: number, base: string, fields: string): void {
      putLocal.run(row, base, fields);
      setHasLocal.run(1, row);
    },
    dropLocal(row: number): void {
      dropLocal.run(row);
      setHasLocal.run(0, row);
    },

    findCollectionId,
    collectionId(objectNo: number, datasetNo: number): number {
      return findCollectionId(objectNo, datasetNo) ?? Number(addCollection.run(objectNo, datasetNo).lastInsertRowid);
    },
    collectionInfo: (no: number) => collectionInfo.get(no) ?? undefined,
    /** How many live records a collection has. */
    liveCount,
    addLive(collectionId: number, by: number): void {
      addLive.run(by, collectionId);
      liveCounts.delete(collectionId);
    },
  };
}
