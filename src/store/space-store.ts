import { mendTypes, mistypedRows, searchForMistyped } from "./database/column-types.ts";
import { openDatabase } from "./database/database.ts";
import { type KeptRepair, keptDifference, mendKept } from "./database/kept-thrice.ts";
import type { OwnDatabase } from "./database/own-database.ts";
import { type Reindexed, reindex } from "./database/reindex.ts";
import { createWalKeeper, type WalCopying } from "./database/wal-keeper.ts";
import { emptySpace } from "./empty-databases.ts";
import { createDirtyRowTable } from "./rows/dirty-row-table.ts";
import { createQueryIndexTable } from "./rows/query-index-table.ts";
import { createReadMemo } from "./rows/read-memo.ts";
import { createRowLogTable } from "./rows/row-log-table.ts";
import { createRowTable } from "./rows/row-table.ts";
import { createSchemaTable } from "./rows/schema-table.ts";
import { KEPT_FOR_OPENING, KEPT_IN_SPACE, SPACE_SCHEMA } from "./space-schema.ts";
import { createAclTable } from "./tables/acl-table.ts";
import { createChangeTable } from "./tables/change-table.ts";
import { createDerivedTable } from "./tables/derived-table.ts";
import { createEarlyRequestTable } from "./tables/early-request-table.ts";
import { createFileTable } from "./tables/file-table.ts";
import { createHistoryTable } from "./tables/history-table.ts";
import { createInboxTable } from "./tables/inbox-table.ts";
import { createParkedTable } from "./tables/parked-table.ts";
import { createPendingBodyTable } from "./tables/pending-body-table.ts";
import { createPlaceTable } from "./tables/place-table.ts";
import { createSyncTable } from "./tables/sync-table.ts";
import { createUnblockedTable } from "./tables/unblocked-table.ts";
import { createUnnotifiedTable } from "./tables/unnotified-table.ts";

/** The database of one space. */
export type SpaceStore = ReturnType<typeof createSpaceStore>;

interface SpaceStoreOptions {
  /** Without it, COMMIT itself copies the log into the database. */
  copying?: WalCopying | undefined;
}

/** Opens or creates the database of a space. Throws as `openDatabase` does. */
export function openSpaceStore(path: string, { copying }: SpaceStoreOptions = {}): SpaceStore {
  const db = openDatabase(path, { ...SPACE_SCHEMA, empty: emptySpace, durability: "full" });
  try {
    return createSpaceStore(db, path, copying);
  } catch (error) {
    db.close();
    throw error;
  }
}

const toChangedRow = ({ no, collectionId }: Record<string, unknown>) => ({
  row: Number(no),
  collectionId: Number(collectionId),
});

function createSpaceStore(db: OwnDatabase, path: string, copying: WalCopying | undefined) {
  const wal = createWalKeeper(db, path, copying);
  const getMeta = db.query<{ value: Uint8Array }, [string]>("SELECT value FROM meta WHERE key = ?");
  const putMeta = db.query<null, [string, Uint8Array]>(
    "INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
  );
  const dropMeta = db.query<null, [string]>("DELETE FROM meta WHERE key = ?");
  const datasetByName = db.query<{ no: number }, [string]>("SELECT no FROM datasets WHERE name = ?");
  const datasetByNo = db.query<{ name: string }, [number]>("SELECT name FROM datasets WHERE no = ?");
  const addDataset = db.query<null, [string]>("INSERT INTO datasets(name) VALUES(?)");
  const tables = db.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  const eraseLog = db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)");

  const changes = createChangeTable(db);
  const queryIndexes = createQueryIndexTable(db);
  const rowLog = createRowLogTable(db);
  const rows = createRowTable(db, queryIndexes, rowLog);
  const schema = createSchemaTable(db, rows);
  const derived = createDerivedTable(db);
  /** Numbers that were read; a rollback may take some back, so all of them are forgotten then. */
  const datasetNumbers = new Map<string, number>();

  function findDatasetNo(name: string): number | undefined {
    const known = datasetNumbers.get(name);
    if (known !== undefined) return known;
    const no = datasetByName.get(name)?.no;
    if (no !== undefined) datasetNumbers.set(name, no);
    return no;
  }

  return {
    db,
    path,
    changes,
    rows,
    derived,
    /** Statements for a reader that find where the copies of small tables differ; `mendKept` sets that right. */
    keptDifferences: KEPT_IN_SPACE.map(keptDifference),
    mendKept: (): KeptRepair[] => mendKept(db, KEPT_IN_SPACE),
    /** A statement for a reader, with a row for each table in which a value has another type than its column. */
    mistypedTables: (): string => searchForMistyped(db),
    /**
     * Gives values of another type than their columns' their types again, after the copies of small tables agree: what is wrong then is
     * a value like any other. Answers what was set right.
     */
    mendTypes(): { kept: KeptRepair[]; types: Record<string, number> } {
      const kept = mendKept(db, KEPT_IN_SPACE);
      // Whoever follows the log has passed over a text that was none.
      rowLog.add(mistypedRows(db, "rows", ["no", "collectionId"]).map(toChangedRow));
      const types = mendTypes(db);
      // The next change of a writer follows the last one by what its row says, before anybody goes over it.
      if (types["writers"] !== undefined) derived.recountWriters();
      return { kept, types };
    },
    /** Called when a value is read that is of another type than its column, before the read fails. Answers how to stop. */
    onMistyped: (listener: () => void): (() => void) => db.onMistyped(listener),
    /** The same of what a space cannot be opened without: a fraction of a millisecond where they agree. */
    mendForOpening: (): KeptRepair[] => mendKept(db, KEPT_FOR_OPENING),
    dirtyRows: createDirtyRowTable(db),
    queryIndexes,
    rowLog,
    history: createHistoryTable(db),
    /** Forgets numbers after a rollback, because those created in the rolled-back transaction are not valid. */
    forgetNumbers(): void {
      datasetNumbers.clear();
      rows.forgetCollections();
      schema.forget();
    },
    files: createFileTable(db),
    parked: createParkedTable(db),
    unblocked: createUnblockedTable(db),
    pendingBodies: createPendingBodyTable(db),
    schema,
    sync: createSyncTable(db, changes.rewrites),
    /** Single values, each under a name of its own. */
    meta: (key: string): Uint8Array | undefined => getMeta.get(key)?.value,
    putMeta: (key: string, value: Uint8Array) => void putMeta.run(key, value),
    dropMeta: (key: string) => void dropMeta.run(key),
    /** Returns the local number of a dataset's name, and creates it on first use. */
    datasetNo: (name: string): number => findDatasetNo(name) ?? Number(addDataset.run(name).lastInsertRowid),
    findDatasetNo,
    datasetName: (no: number): string => datasetByNo.get(no)?.name ?? "",
    ...createAclTable(db),
    inbox: createInboxTable(db),
    earlyRequests: createEarlyRequestTable(db),
    places: createPlaceTable(db),
    unnotified: createUnnotifiedTable(db),
    memo: createReadMemo(db),
    /**
     * Outside a transaction: copies the log into the database and leaves it empty, so that nothing is left in it of what was
     * deleted. Answers whether it could: a reader, or another program, may need it, and is not waited for.
     */
    eraseLog: (): boolean => eraseLog.get()?.busy === 0,
    /** Names of its tables. */
    tables: (): string[] => tables.all().map(({ name }) => name),
    /** Makes SQLite's indexes of a table anew, on the thread that copies the log where there is one. */
    reindex: async (table: string): Promise<Reindexed> =>
      copying ? copying.checkpointer.reindex(path, table) : reindex(db, table),
    committed: wal.committed,
    /** Resolves when the database may be closed, because no other connection has its file open. */
    idle: wal.idle,
    close(): void {
      db.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)");
      db.close();
    },
  };
}
