/** Entry of the checkpointer: copies what a write-ahead log holds into its database, on a thread of its own. */
import { Database } from "bun:sqlite";
import { LOCKED_WAIT_MS } from "./locked-database.ts";
import { type Reindexed, reindex } from "./reindex.ts";
import type { CheckpointReply, CheckpointRequest, LogPosition } from "./wal-checkpointer.ts";

declare const self: Worker;

/** Waits as long for the writer as that waits for others. */
function reindexAt(path: string, table: string): Reindexed {
  const db = new Database(path, { readwrite: true, create: false });
  try {
    db.exec(`PRAGMA busy_timeout = ${LOCKED_WAIT_MS}; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;`);
    return reindex(db, table);
  } finally {
    db.close();
  }
}

/**
 * Copies as far as readers allow, without waiting for anybody. SQLite syncs the log before it writes to the database, and the
 * database afterwards.
 */
function checkpoint(path: string): LogPosition {
  const db = new Database(path, { readwrite: true, create: false });
  try {
    db.exec("PRAGMA synchronous = FULL; PRAGMA checkpoint_fullfsync = 1; PRAGMA trusted_schema = OFF;");
    db.query("PRAGMA schema_version").get(); // a connection that has read nothing does not know about the log
    return db.query("PRAGMA wal_checkpoint(PASSIVE)").get() as LogPosition;
  } finally {
    db.close();
  }
}

self.onmessage = (event: MessageEvent<CheckpointRequest>) => {
  let reply: CheckpointReply;
  try {
    const { path, reindex: table } = event.data;
    reply = table === undefined ? { position: checkpoint(path) } : { reindexed: reindexAt(path, table) };
  } catch (error) {
    reply = { fault: error instanceof Error ? error.message : String(error) };
  }
  self.postMessage(reply);
};
