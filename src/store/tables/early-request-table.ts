import type { Database } from "bun:sqlite";

/**
 * In the database of the account's own space: requests to join, and their withdrawals, that came before what they refer to,
 * in the order in which they came. id: the hash of the signed bytes.
 */
export const EARLY_REQUEST_SCHEMA = `
  CREATE TABLE early_requests(no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, spaceId TEXT NOT NULL, request BLOB NOT NULL);
`;

export function createEarlyRequestTable(db: Database) {
  const ofSpace = db.query<{ request: Uint8Array }, [string]>(
    "SELECT request FROM early_requests WHERE spaceId = ? ORDER BY no",
  );
  const put = db.query<null, [Uint8Array, string, Uint8Array]>(
    "INSERT OR IGNORE INTO early_requests(id, spaceId, request) VALUES(?, ?, ?)",
  );
  const drop = db.query<null, [Uint8Array]>("DELETE FROM early_requests WHERE id = ?");
  const dropOldest = db.query<null, [number]>(
    "DELETE FROM early_requests WHERE no IN (SELECT no FROM early_requests ORDER BY no DESC LIMIT -1 OFFSET ?)",
  );
  return {
    /** Oldest first. */
    of: (spaceId: string): Uint8Array[] => ofSpace.all(spaceId).map(({ request }) => request),
    /** Stores a request; only the `kept` newest of all spaces are kept. */
    put(id: Uint8Array, spaceId: string, request: Uint8Array, kept: number): void {
      put.run(id, spaceId, request);
      dropOldest.run(kept);
    },
    drop: (id: Uint8Array) => void drop.run(id),
  };
}
