import type { OwnDatabase } from "../database/own-database.ts";
import { createCheckpointTable } from "./checkpoint-table.ts";
import { createLocalTable } from "./local-table.ts";
import type { QueryIndexTable } from "./query-index-table.ts";
import { createRowInserts, NO_CHANGE } from "./row-insert.ts";
import type { RowLogTable } from "./row-log-table.ts";
import { createRowRestore } from "./row-restore.ts";
import { createSoundReads, docSumOf, headSumOf, isDocSound, isRowSound } from "./row-sums.ts";
import { ROW_ABSENT, type RowHead, type RowKey, type RowState } from "./row-types.ts";

/** The collection of all objects of the space. */
export const OBJECTS_COLLECTION = 0;

/** More datasets than a space can have; keeps (object, dataset) apart in one number. */
const MAX_DATASETS = 1 << 20;
const MAX_CACHED_COLLECTIONS = 10_000;

interface RawRow {
  no: number;
  doc: string | null;
  state: number;
  lamport: number;
  change: Uint8Array;
  ops: number;
  has_local: number;
  doc_sum: number;
  head_sum: number;
}

/** A row as it stands, whether it is what was stored or not. */
export interface StoredRow extends RowHead, RowKey {
  isSound: boolean;
  /** Whether its text is. */
  isText: boolean;
}

interface LiveDoc {
  no: number;
  doc: string;
  doc_sum: number;
}

type RowNumbers = Pick<RowKey, "no" | "collectionId">;

const COLUMNS = "no, doc, state, lamport, change, ops, has_local, doc_sum, head_sum";
const REPAIR_PAGE = 200;
const PRINTABLE = /^[ -~]*$/;

const toHead = (row: RawRow, collectionId: number): RowHead => ({
  no: row.no,
  collectionId,
  doc: row.doc,
  state: row.state as RowState,
  lamport: row.lamport,
  change: row.change,
  ops: row.ops,
  hasLocal: row.has_local === 1,
});

const ID_BEGINS = '{"id":"';
const QUOTE = 0x22;

/** Whether a row is of a record: where a text begins with an id, as those of records nearly always do, it is that one. */
function isOf({ doc }: RawRow, id: string): boolean {
  if (doc === null || !doc.startsWith(ID_BEGINS)) return true;
  const after = ID_BEGINS.length;
  if (doc.startsWith(id, after) && doc.charCodeAt(after + id.length) === QUOTE) return true;
  return doc.startsWith(JSON.stringify(id.toWellFormed()), after - 1); // as it is bound to a statement, and escaped
}

const toStored = (row: RawRow & { collectionId: number; id: string }): StoredRow => ({
  ...toHead(row, row.collectionId),
  id: row.id,
  isSound: isRowSound(row),
  isText: isDocSound(row),
});

/** The projection: rows, what touched them, checkpoints and device-local fields. */
export type RowTable = ReturnType<typeof createRowTable>;

export function createRowTable(
  db: OwnDatabase,
  queryIndexes: Pick<QueryIndexTable, "retireCollection" | "rekeyed">,
  log: Pick<RowLogTable, "note" | "add">,
) {
  const get = db.query<RawRow, [number, string]>(`SELECT ${COLUMNS} FROM rows WHERE collectionId = ? AND id = ?`);
  const statesOf = db.query<{ id: string; state: number }, [number, string]>(
    "SELECT r.id, r.state FROM json_each(?2) w CROSS JOIN rows r ON r.collectionId = ?1 AND r.id = w.value",
  );
  const getByNo = db.query<RawRow & { collectionId: number; id: string }, [number]>(
    `SELECT collectionId, id, ${COLUMNS} FROM rows WHERE no = ?`,
  );
  const update = db.query<null, [string | null, number, number, Uint8Array, number, number, number, number]>(
    "UPDATE rows SET doc = ?, state = ?, lamport = ?, change = ?, ops = ?, doc_sum = ?, head_sum = ? WHERE no = ?",
  );
  const moveOrder = db.query<null, [number, Uint8Array, number, number]>(
    "UPDATE rows SET lamport = ?, change = ?, head_sum = ? WHERE no = ?",
  );
  const setDoc = db.query<null, [string, number, number]>("UPDATE rows SET doc = ?, doc_sum = ? WHERE no = ?");
  const touch = db.query<null, [number, number, number]>(
    "INSERT OR IGNORE INTO touches(row, lamport, change) VALUES(?,?,?)",
  );
  const touchAll = db.query<null, [string, number, number]>(
    "INSERT OR IGNORE INTO touches(row, lamport, change) SELECT value, ?2, ?3 FROM json_each(?1)",
  );
  const rowsOfObject = db.query<RowKey & { state: number }, [number, string]>(
    `SELECT r.no, r.collectionId, r.id, r.state FROM collections c JOIN rows r ON r.collectionId = c.no WHERE c.objectNo = ? AND c.no <> ${OBJECTS_COLLECTION}
     UNION ALL SELECT no, collectionId, id, state FROM rows WHERE collectionId = ${OBJECTS_COLLECTION} AND id = ?`,
  );
  const docs = db.query<LiveDoc, [number]>(
    "SELECT no, doc, doc_sum FROM rows WHERE collectionId = ? AND state = 1 ORDER BY id",
  );
  const docsWithLocal = db.query<LiveDoc, [number]>(
    "SELECT no, doc, doc_sum FROM rows WHERE collectionId = ? AND has_local = 1 AND state = 1 ORDER BY no",
  );
  const pageByNo = db.query<RawRow & { collectionId: number; id: string }, [number, number]>(
    `SELECT collectionId, id, ${COLUMNS} FROM rows WHERE no > ? ORDER BY no LIMIT ?`,
  );
  const pageOf = db.query<RawRow & { id: string }, [number, string]>(
    `SELECT id, ${COLUMNS} FROM rows WHERE collectionId = ? AND id > ? ORDER BY id LIMIT ${REPAIR_PAGE}`,
  );
  const origin = db.query<{ objectNo: number; datasetNo: number }, [number]>(
    `SELECT c.objectNo, c.datasetNo FROM touches t JOIN changes c ON c.no = t.change
     WHERE t.row = ? AND c.datasetNo <> 0 ORDER BY t.lamport LIMIT 1`,
  );
  const lastPosition = db.query<{ pos: string }, [string]>(
    "SELECT doc ->> '$.nav.pos' AS pos FROM rows WHERE collectionId = 0 AND state = 1 AND doc ->> '$.nav.parentId' = ? ORDER BY doc ->> '$.nav.pos' DESC LIMIT 1",
  );
  const isOfDeleted = db.query<{ one: number }, [number]>(
    "SELECT 1 AS one FROM collections c JOIN objects o ON o.no = c.objectNo WHERE c.no = ? AND o.deleted = 1",
  );
  const collectionsOfDeleted = db.query<{ no: number }, []>(
    `SELECT c.no FROM objects o JOIN collections c ON c.objectNo = o.no WHERE o.deleted = 1 AND c.no <> ${OBJECTS_COLLECTION}`,
  );
  const someRows = db.query<{ no: number }, [number, number]>("SELECT no FROM rows WHERE collectionId = ? LIMIT ?");
  const dropRow = db.query<null, [number]>("DELETE FROM rows WHERE no = ?");
  const dropTouches = db.query<null, [number]>("DELETE FROM touches WHERE row = ?");
  const dropCollection = db.query<null, [number]>("DELETE FROM collections WHERE no = ?");
  const reads = createSoundReads();
  const inserts = createRowInserts(db, log);
  const checkpoints = createCheckpointTable(db);
  const locals = createLocalTable(db, reads);

  const collectionIdOf = db.query<{ no: number }, [number, number]>(
    "SELECT no FROM collections WHERE objectNo = ? AND datasetNo = ?",
  );
  const addCollection = db.query<null, [number, number]>("INSERT INTO collections(objectNo, datasetNo) VALUES(?, ?)");
  const collectionInfo = db.query<{ no: number; objectNo: number; datasetNo: number; live: number }, [number]>(
    "SELECT no, objectNo, datasetNo, live FROM collections WHERE no = ?",
  );
  const recount = db.query<null, [number]>(
    "UPDATE collections SET live = (SELECT count(*) FROM rows WHERE collectionId = ?1 AND state = 1) WHERE no = ?1",
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

  /** Repairs the damaged rows of a collection, a page a turn. Answers how many there were. */
  const repairCollection = async (collectionId: number): Promise<number> => {
    let repaired = 0;
    for (let after = ""; ; await new Promise((turn) => setImmediate(turn))) {
      const page = pageOf.all(collectionId, after);
      for (const row of page) {
        if (isRowSound(row)) continue;
        reads.repair(row.no);
        repaired++;
      }
      if (page.length < REPAIR_PAGE) return repaired;
      after = page[page.length - 1]!.id;
    }
  };

  const updateRow = (
    { no, collectionId }: RowNumbers,
    doc: string | null,
    state: RowState,
    lamport: number,
    change: Uint8Array,
    ops: number,
  ): void => {
    update.run(doc, state, lamport, change, ops, docSumOf(doc), headSumOf(state, lamport, change, ops), no);
    log.note(no, collectionId);
  };

  return {
    forgetCollections: () => collectionIdsByKey.clear(),
    get(collectionId: number, id: string): RowHead | undefined {
      const row = reads.row(
        () => get.get(collectionId, id),
        (found) => isOf(found, id),
      );
      return row ? toHead(row, collectionId) : undefined;
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
      const row = reads.row(() => getByNo.get(no));
      return row ? { ...toHead(row, row.collectionId), id: row.id } : undefined;
    },
    update: updateRow,
    /** The row was judged by a change that left it as it is. */
    moveOrder: ({ no, state, ops }: Pick<RowHead, "no" | "state" | "ops">, lamport: number, change: Uint8Array) =>
      void moveOrder.run(lamport, change, headSumOf(state, lamport, change, ops), no),
    reset(row: RowNumbers): void {
      updateRow(row, null, ROW_ABSENT, 0, NO_CHANGE, 0);
      dropTouches.run(row.no);
    },
    setDoc({ no, collectionId }: RowNumbers, doc: string): void {
      setDoc.run(doc, docSumOf(doc), no);
      log.note(no, collectionId);
    },
    touch: (row: number, lamport: number, change: number) => void touch.run(row, lamport, change),
    /** Notes that a change touches rows. */
    touchAll(numbers: readonly number[], lamport: number, change: number): void {
      if (numbers.length === 1) touch.run(numbers[0]!, lamport, change);
      else if (numbers.length > 0) {
        db.spend(numbers.length - 1);
        touchAll.run(JSON.stringify(numbers), lamport, change);
      }
    },
    /** The rows of a collection that carry device-local fields. */
    docsWithLocal: (collectionId: number): string[] =>
      reads.docs(() => docsWithLocal.all(collectionId)).map((row) => row.doc),
    /** Position of the last object in a folder (`nav.parentId`), by the index on it. */
    lastPosition: (parentId: string): string | undefined => lastPosition.get(parentId)?.pos ?? undefined,
    /** The stored texts of a small collection, by id. */
    docs: (collectionId: number): string[] => reads.docs(() => docs.all(collectionId)).map((row) => row.doc),
    rowsOfObject: (objectNo: number, objectId: string): (RowKey & { state: number })[] =>
      rowsOfObject.all(objectNo, objectId),

    ...inserts,
    ...checkpoints,
    ...locals,
    ...createRowRestore(db, queryIndexes, log),
    /** Sets what repairs rows that the disk changed; why it is set later: `createSoundReads`. */
    repairBy: reads.repairBy,
    /** Runs reads that raise DamagedRowError again, once the row was repaired. */
    soundly: reads.soundly,
    /** The same for a read of a collection that ends later, or in which SQL itself may stumble over a damaged text. */
    soundlyLater: <T>(collectionId: number | undefined, read: () => Promise<T>): Promise<T> =>
      reads.soundlyLater(read, async () => (collectionId === undefined ? 0 : repairCollection(collectionId))),
    /** Texts of rows, read again where one was damaged. */
    soundDocs: reads.docs,
    /** Of which object and dataset the changes are that touched a row. */
    origin: (no: number) => origin.get(no) ?? undefined,
    /** A row as it stands, sound or not. */
    unchecked(no: number): StoredRow | undefined {
      const row = getByNo.get(no);
      return row ? toStored(row) : undefined;
    },
    /** A page of all rows, by number. */
    pageUnchecked: (after: number, limit: number): StoredRow[] => pageByNo.all(after, limit).map(toStored),
    /** Collections of objects that the deletion log holds: to be torn down. */
    collectionsOfDeleted: (): number[] => collectionsOfDeleted.all().map((row) => row.no),
    /**
     * Removes up to `limit` rows of a deleted object's collection with all that belongs to them; the collection itself with the
     * last. Answers whether it is gone, or is none to be removed: its object may be back, or its number another's.
     */
    tearDown(collectionId: number, limit: number): boolean {
      if (isOfDeleted.get(collectionId) === null) return true;
      queryIndexes.retireCollection(collectionId);
      const numbers = someRows.all(collectionId, limit);
      for (const { no } of numbers) {
        dropTouches.run(no);
        checkpoints.dropCheckpoints(no);
        locals.forgetLocal(no);
        dropRow.run(no);
        log.note(no, collectionId);
      }
      if (numbers.length === limit) return false;
      dropCollection.run(collectionId);
      collectionIdsByKey.clear();
      liveCounts.delete(collectionId);
      return true;
    },
    findCollectionId,
    collectionId(objectNo: number, datasetNo: number): number {
      return findCollectionId(objectNo, datasetNo) ?? Number(addCollection.run(objectNo, datasetNo).lastInsertRowid);
    },
    collectionInfo: (no: number) => collectionInfo.get(no) ?? undefined,
    /** How many live records a collection has. */
    liveCount,
    /** Counts the live records of a collection anew. */
    recount(collectionId: number): void {
      recount.run(collectionId);
      liveCounts.delete(collectionId);
    },
    addLive(collectionId: number, by: number): void {
      addLive.run(by, collectionId);
      liveCounts.delete(collectionId);
    },
  };
}
