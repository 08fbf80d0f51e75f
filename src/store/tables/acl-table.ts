import type { Database } from "bun:sqlite";

/**
 * The ACL log by position, and beside it what is not in the log. pending_records: what waits for the owner to give it a position;
 * lost: 1 for a record of a branch that lost, which waits no more but which other records may follow. lost_positions: records
 * that were in the log until their branch lost. kept_keys: read keys, sealed to the account, of epochs that are no longer in the
 * log. acl_ahead: at most one row; records from this position on are stored, but are not part of the log yet. lost_position_changes:
 * changes that counted until the record they name lost its position, and that would count again if the record got a new one.
 */
export const ACL_SCHEMA = `
  CREATE TABLE acl_records(pos INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
  CREATE TABLE acl_ahead(pos INTEGER PRIMARY KEY);
  CREATE TABLE pending_records(
    id BLOB PRIMARY KEY, lost INTEGER NOT NULL DEFAULT 0, received_ms INTEGER NOT NULL, bytes BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE lost_positions(id BLOB PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE lost_position_changes(change INTEGER PRIMARY KEY, writer INTEGER NOT NULL, record BLOB NOT NULL);
  CREATE INDEX lost_position_changes_by_record ON lost_position_changes(record);
  CREATE INDEX lost_position_changes_by_writer ON lost_position_changes(writer);
  CREATE TABLE kept_keys(id BLOB PRIMARY KEY, box BLOB NOT NULL) WITHOUT ROWID;
`;

export interface PendingRow {
  readonly id: Uint8Array;
  readonly lost: boolean;
  readonly receivedMs: number;
  readonly bytes: Uint8Array;
}

interface RawPending {
  id: Uint8Array;
  lost: number;
  received_ms: number;
  bytes: Uint8Array;
}

const PENDING_COLUMNS = "id, lost, received_ms, bytes";

/** Whether a row of acl_records is part of the log. */
export const IS_IN_LOG = "pos < coalesce((SELECT min(pos) FROM acl_ahead), 1 << 52)";

/** Numbers of writers whose changes wait for the record that they name to get a position in the log. */
export const WRITERS_AWAITING_POSITION = `SELECT d.writer FROM lost_position_changes d
  JOIN pending_records p ON p.id = d.record AND p.lost = 0`;

const toPending = (row: RawPending): PendingRow => ({
  id: row.id,
  lost: row.lost === 1,
  receivedMs: row.received_ms,
  bytes: row.bytes,
});

export function createAclTable(db: Database) {
  const all = db.query<{ pos: number; id: Uint8Array; bytes: Uint8Array }, []>(
    `SELECT pos, id, bytes FROM acl_records WHERE ${IS_IN_LOG} ORDER BY pos`,
  );
  const add = db.query<null, [number, Uint8Array, Uint8Array]>(
    "INSERT INTO acl_records(pos, id, bytes) VALUES(?, ?, ?)",
  );
  const mend = db.query<null, [Uint8Array, Uint8Array, number]>(
    "UPDATE acl_records SET id = ?, bytes = ? WHERE pos = ?",
  );
  const cut = db.query<null, [number]>("DELETE FROM acl_records WHERE pos >= ?");
  return {
    aclRecords: () => all.all(),
    addAclRecord: (pos: number, id: Uint8Array, bytes: Uint8Array) => void add.run(pos, id, bytes),
    /** Replaces the bytes of a damaged record with those held in memory. */
    mendAclRecord: (pos: number, id: Uint8Array, bytes: Uint8Array) => void mend.run(id, bytes, pos),
    /** Removes the records from a position on, because a fork was resolved and others replace them. */
    dropAclRecordsFrom: (pos: number) => void cut.run(pos),
    aclAhead: createAheadTable(db),
    pendingRecords: createPendingTable(db),
    lostPositions: createLostPositionTable(db),
    lostPositionChanges: createLostPositionChangeTable(db),
    keptKeys: createKeptKeyTable(db),
  };
}

function createAheadTable(db: Database) {
  const from = db.query<{ pos: number }, []>("SELECT pos FROM acl_ahead");
  const begin = db.query<null, [number]>("INSERT INTO acl_ahead(pos) VALUES(?)");
  const end = db.query<null, []>("DELETE FROM acl_ahead");
  const dropSome = db.query<null, [number]>(
    "DELETE FROM acl_records WHERE pos >= (SELECT pos FROM acl_ahead) AND pos > (SELECT max(pos) FROM acl_records) - ?",
  );
  return {
    /** Returns the position from which records are not part of the log yet; undefined when all are. */
    from: (): number | undefined => from.get()?.pos,
    begin: (pos: number) => void begin.run(pos),
    /** Makes the stored records part of the log from now on. */
    end: () => void end.run(),
    /** Removes the last `count` of them. Returns whether there were any. */
    drop: (count: number): boolean => dropSome.run(count).changes > 0,
  };
}

function createPendingTable(db: Database) {
  const get = db.query<RawPending, [Uint8Array]>(`SELECT ${PENDING_COLUMNS} FROM pending_records WHERE id = ?`);
  const all = db.query<RawPending, []>(`SELECT ${PENDING_COLUMNS} FROM pending_records ORDER BY lost, id`);
  const waiting = db.query<RawPending, []>(`SELECT ${PENDING_COLUMNS} FROM pending_records WHERE lost = 0 ORDER BY id`);
  const waitingCount = db.query<{ count: number }, []>("SELECT count(*) AS count FROM pending_records WHERE lost = 0");
  const put = db.query<null, [Uint8Array, number, Uint8Array]>(
    "INSERT OR REPLACE INTO pending_records(id, lost, received_ms, bytes) VALUES(?, 0, ?, ?)",
  );
  const lose = db.query<null, [Uint8Array]>("UPDATE pending_records SET lost = 1 WHERE id = ?");
  const drop = db.query<null, [Uint8Array]>("DELETE FROM pending_records WHERE id = ?");
  const dropOldest = db.query<null, [number]>(
    `DELETE FROM pending_records WHERE id IN
       (SELECT id FROM pending_records WHERE lost = 1 ORDER BY received_ms DESC, id LIMIT -1 OFFSET ?)`,
  );
  return {
    get(id: Uint8Array): PendingRow | undefined {
      const row = get.get(id);
      return row ? toPending(row) : undefined;
    },
    /** Returns the records that wait, then those that lost. */
    all: (): PendingRow[] => all.all().map(toPending),
    waiting: (): PendingRow[] => waiting.all().map(toPending),
    waitingCount: (): number => waitingCount.get()!.count,
    /** Stores a record that waits from now on. */
    put: (id: Uint8Array, bytes: Uint8Array, receivedMs: number) => void put.run(id, receivedMs, bytes),
    /** Marks that a record waits no more; of such records the `kept` newest are kept. */
    lose(id: Uint8Array, kept: number): void {
      lose.run(id);
      dropOldest.run(kept);
    },
    drop: (id: Uint8Array) => void drop.run(id),
  };
}

function createLostPositionTable(db: Database) {
  const has = db.query<{ one: number }, [Uint8Array]>("SELECT 1 AS one FROM lost_positions WHERE id = ?");
  const ids = db.query<{ id: Uint8Array }, []>("SELECT id FROM lost_positions");
  const put = db.query<null, [Uint8Array]>("INSERT OR IGNORE INTO lost_positions(id) VALUES(?)");
  const drop = db.query<null, [Uint8Array]>("DELETE FROM lost_positions WHERE id = ?");
  return {
    has: (id: Uint8Array): boolean => has.get(id) !== null,
    ids: (): Uint8Array[] => ids.all().map((row) => row.id),
    put: (id: Uint8Array) => void put.run(id),
    drop: (id: Uint8Array) => void drop.run(id),
  };
}

function createLostPositionChangeTable(db: Database) {
  const authors = db.query<{ author: Uint8Array }, [Uint8Array]>(
    "SELECT DISTINCT w.author FROM lost_position_changes d JOIN writers w ON w.no = d.writer WHERE d.record = ?",
  );
  const put = db.query<null, [number, number, Uint8Array]>(
    "INSERT OR REPLACE INTO lost_position_changes(change, writer, record) VALUES(?, ?, ?)",
  );
  const drop = db.query<null, [Uint8Array]>("DELETE FROM lost_position_changes WHERE record = ?");
  return {
    /** Returns the authors of the changes that name this record. */
    authorsUnder: (record: Uint8Array): Uint8Array[] => authors.all(record).map(({ author }) => author),
    put: (change: number, writer: number, record: Uint8Array) => void put.run(change, writer, record),
    /** Forgets the changes under a record that got its position. */
    drop: (record: Uint8Array) => void drop.run(record),
  };
}

function createKeptKeyTable(db: Database) {
  const all = db.query<{ id: Uint8Array; box: Uint8Array }, []>("SELECT id, box FROM kept_keys");
  const put = db.query<null, [Uint8Array, Uint8Array]>("INSERT OR REPLACE INTO kept_keys(id, box) VALUES(?, ?)");
  return {
    all: () => all.all(),
    put: (id: Uint8Array, box: Uint8Array) => void put.run(id, box),
  };
}
