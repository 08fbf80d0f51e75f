/** Entry of the checkpointer: copies what a write-ahead log holds into its database, on a thread of its own. */
import { Database } from "bun:sqlite";
import type { CheckpointReply, CheckpointRequest, LogPosition } from "./wal-checkpointer.ts";

declare const self: Worker;

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
    reply = { position: checkpoint(event.data.path) };
  } catch (error) {
    reply = { fault: error instanceof Error ? error.message : String(error) };
  }
  self.postMessage(reply);
};
