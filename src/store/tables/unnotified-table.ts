import type { Database } from "bun:sqlite";

/**
 * ACL records by which this device lets accounts in, until it has notified these accounts. position: where the record will be in
 * the log, if it gets there. accounts: their public keys, joined.
 */
export const UNNOTIFIED_SCHEMA = `
  CREATE TABLE unnotified(
    no INTEGER PRIMARY KEY, record BLOB NOT NULL UNIQUE, position INTEGER NOT NULL, accounts BLOB NOT NULL);
`;

/** A record that let accounts in that have not been notified yet. */
export interface UnnotifiedRow {
  readonly record: Uint8Array;
  readonly position: number;
  readonly accounts: readonly Uint8Array[];
}

interface RawUnnotified {
  record: Uint8Array;
  position: number;
  accounts: Uint8Array;
}

const KEY_BYTES = 32;

export function createUnnotifiedTable(db: Database) {
  const all = db.query<RawUnnotified, []>("SELECT record, position, accounts FROM unnotified ORDER BY no");
  const put = db.query<null, [Uint8Array, number, Uint8Array]>(
    "INSERT OR REPLACE INTO unnotified(record, position, accounts) VALUES(?, ?, ?)",
  );
  const drop = db.query<null, [Uint8Array]>("DELETE FROM unnotified WHERE record = ?");
  const dropOldest = db.query<null, [number]>(
    "DELETE FROM unnotified WHERE no IN (SELECT no FROM unnotified ORDER BY no DESC LIMIT -1 OFFSET ?)",
  );
  return {
    /** Oldest first. */
    all: (): UnnotifiedRow[] =>
      all.all().map(({ record, position, accounts }) => ({ record, position, accounts: keysIn(accounts) })),
    /** Stores a row; only the `kept` newest are kept. */
    put({ record, position, accounts }: UnnotifiedRow, kept: number): void {
      put.run(record, position, Buffer.concat(accounts));
      dropOldest.run(kept);
    },
    drop: (record: Uint8Array) => void drop.run(record),
  };
}

const keysIn = (bytes: Uint8Array): Uint8Array[] =>
  Array.from({ length: bytes.length / KEY_BYTES }, (_, at) => bytes.slice(at * KEY_BYTES, (at + 1) * KEY_BYTES));
