import type { Database } from "bun:sqlite";

/**
 * Inbox messages, in the database of the account's own space. inbox_outgoing: messages that their receivers have not got yet,
 * in the order in which they were left: one may take back what another says. inbox_taken: messages that were taken in, so that
 * they are not taken in twice. Ids are hashes of the sealed bytes.
 */
export const INBOX_SCHEMA = `
  CREATE TABLE inbox_outgoing(no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, receiver BLOB NOT NULL, sealed BLOB NOT NULL);
  CREATE TABLE inbox_taken(id BLOB PRIMARY KEY, taken_ms INTEGER NOT NULL) WITHOUT ROWID;
`;

export interface OutgoingMessage {
  readonly id: Uint8Array;
  /** The receiver's public key. */
  readonly receiver: Uint8Array;
  readonly sealed: Uint8Array;
}

export function createInboxTable(db: Database) {
  const outgoing = db.query<OutgoingMessage, []>("SELECT id, receiver, sealed FROM inbox_outgoing ORDER BY no");
  const put = db.query<null, [Uint8Array, Uint8Array, Uint8Array]>(
    "INSERT OR REPLACE INTO inbox_outgoing(id, receiver, sealed) VALUES(?, ?, ?)",
  );
  const drop = db.query<null, [Uint8Array]>("DELETE FROM inbox_outgoing WHERE id = ?");
  const isTaken = db.query<{ found: number }, [Uint8Array]>("SELECT 1 AS found FROM inbox_taken WHERE id = ?");
  const noteTaken = db.query<null, [Uint8Array, number]>(
    "INSERT OR REPLACE INTO inbox_taken(id, taken_ms) VALUES(?, ?)",
  );
  const forgetOldest = db.query<null, [number]>(
    `DELETE FROM inbox_taken WHERE id IN (SELECT id FROM inbox_taken ORDER BY taken_ms DESC, id LIMIT -1 OFFSET ?)`,
  );
  return {
    outgoing: (): OutgoingMessage[] => outgoing.all(),
    put: ({ id, receiver, sealed }: OutgoingMessage) => void put.run(id, receiver, sealed),
    drop: (id: Uint8Array) => void drop.run(id),
    isTaken: (id: Uint8Array): boolean => isTaken.get(id) !== null,
    /** Notes that a message was taken in; only the `remembered` newest ids are kept. */
    noteTaken(id: Uint8Array, nowMs: number, remembered: number): void {
      noteTaken.run(id, nowMs);
      forgetOldest.run(remembered);
    },
  };
}
