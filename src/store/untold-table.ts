import type { Database } from "bun:sqlite";

/**
 * ACL records by which this device lets accounts in, until it has told them. position: where such a record stands, if it
 * comes to stand in the log. accounts: their public keys, one behind the other.
 */
export const UNTOLD_SCHEMA = `
  CREATE TABLE untold(
    no INTEGER PRIMARY KEY, record BLOB NOT NULL UNIQUE, position INTEGER NOT NULL, accounts BLOB NOT NULL);
`;

/** What accounts were let in by, and have yet to be told of. */
export interface UntoldRow {
  readonly record: Uint8Array;
  readonly position: number;
  readonly accounts: readonly Uint8Array[];
}

interface RawUntold {
  record: Uint8Array;
  position: number;
  accounts: Uint8Array;
}

const KEY_BYTES = 32;

export function createUntoldTable(db: Database) {
  const all = db.query<RawUntold, []>("SELECT record, position, accounts FROM untold ORDER BY no");
  const put = db.query<null, [Uint8Array, number, Uint8Array]>(
    "INSERT OR REPLACE INTO untold(record, position, accounts) VALUES(?, ?, ?)",
  );
  const drop = db.query<null, [Uint8Array]>("DELETE FROM untold WHERE record = ?");
  const dropOldest = db.query<null, [number]>(
    "DELETE FROM untold WHERE no IN (SELECT no FROM untold ORDER BY no DESC LIMIT -1 OFFSET ?)",
  );
  return {
    /** Oldest first. */
    all: (): UntoldRow[] =>
      all.all().map(({ record, position, accounts }) => ({ record, position, accounts: keysIn(accounts) })),
    /** So many of the newest are kept. */
    put({ record, position, accounts }: UntoldRow, kept: number): void {
      put.run(record, position, Buffer.concat(accounts));
      dropOldest.run(kept);
    },
    drop: (record: Uint8Array) => void drop.run(record),
  };
}

const keysIn = (bytes: Uint8Array): Uint8Array[] =>
  Array.from({ length: bytes.length / KEY_BYTES }, (_, at) => bytes.slice(at * KEY_BYTES, (at + 1) * KEY_BYTES));
