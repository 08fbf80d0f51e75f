import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import type { LogPosition, WalCheckpointer } from "./wal-checkpointer.ts";

/** After this many new frames (pages of 4 KiB) the log is copied into the database. */
const COPY_FRAMES = 6000;
/** A log of this length is made to begin anew, which holds the writer up while the database is synced. */
const RESTART_FRAMES = 2 * COPY_FRAMES;
/** Up to this many remaining frames are copied between two commits, because only a log that is copied to its end begins anew. */
const FINISH_FRAMES = 400;
/** When a reader kept a log from being copied to its end, the copy is tried again after this many more frames. */
const RETRY_FRAMES = 500;
/** From this length on COMMIT itself copies, in case nothing else did. */
const BACKSTOP_FRAMES = RESTART_FRAMES + COPY_FRAMES;
/** Each pass leaves what was written during it, so the passes get shorter. */
const MAX_PASSES = 4;
/**
 * The first SQLite version that may be used in this way; with an older one (the system's, on macOS) COMMIT copies. This version
 * reports the length of the log without copying anything, and a checkpoint beside a writer cannot damage the database
 * (sqlite.org/wal.html, "The WAL-Reset Bug").
 */
const LEAST_SQLITE = "3.51.3";

export interface WalCopying {
  readonly checkpointer: WalCheckpointer;
  /** A checkpoint failed. Nothing is lost; it is tried again. */
  readonly onFault: (error: unknown) => void;
}

/** Keeps the write-ahead log of a database short without its writer having to stop for it (STORE-8). */
export interface WalKeeper {
  /** Must be called after each commit. Never throws. */
  committed(): void;
  /** Resolves when no copying is under way that has the database's file open. */
  idle(): Promise<void>;
}

const UNKEPT: WalKeeper = { committed: () => {}, idle: () => Promise.resolve() };

/**
 * Another connection copies, on a thread of its own, while this connection goes on writing; `db` only copies the few frames that
 * came in meanwhile. A crash at any point leaves the log, which is read again. Without `copying`, COMMIT copies, as
 * `openDatabase` has set it.
 */
export function createWalKeeper(db: Database, path: string, copying: WalCopying | undefined): WalKeeper {
  if (!copying || !isSafeBeside(db)) return UNKEPT;
  const { checkpointer, onFault } = copying;
  db.exec(`PRAGMA wal_autocheckpoint = ${BACKSTOP_FRAMES}`);
  const look = db.query<LogPosition, []>("PRAGMA wal_checkpoint(NOOP)");
  const finish = db.query<LogPosition, []>("PRAGMA wal_checkpoint(PASSIVE)");
  let running: Promise<void> | undefined;
  let lastLog = 0;
  let dueAt = COPY_FRAMES;

  /** Shortens a log of this length. Returns the length at which it has to be shortened again. */
  const shorten = async (length: number): Promise<number> => {
    let log = length;
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const copied = await checkpointer.run(path);
      // A reader uses an older state, so what came after that state stays in the log until it is done.
      const isHeld = copied.checkpointed < copied.log;
      log = copied.log;
      if (log < RESTART_FRAMES) return log + (isHeld ? RETRY_FRAMES : COPY_FRAMES);
      const now = unlessReading(look);
      if (!now) break;
      log = now.log;
      if (log - now.checkpointed <= FINISH_FRAMES) unlessReading(finish);
      else if (!isHeld) continue;
      break;
    }
    return log + RETRY_FRAMES;
  };

  const keepShort = async (log: number): Promise<void> => {
    try {
      dueAt = await shorten(log);
    } catch (error) {
      dueAt = log + RETRY_FRAMES;
      onFault(error);
    } finally {
      running = undefined;
    }
  };

  return {
    committed() {
      try {
        const log = running ? undefined : unlessReading(look)?.log;
        if (log === undefined) return;
        if (log < lastLog) dueAt = COPY_FRAMES;
        lastLog = log;
        if (log >= dueAt) running = keepShort(log);
      } catch (error) {
        onFault(error);
      }
    },
    idle: () => running ?? Promise.resolve(),
  };
}

/**
 * Returns what a statement reports about the log; undefined while a read of the same connection is under way, which makes SQLite
 * refuse it.
 */
function unlessReading(statement: Statement<LogPosition, []>): LogPosition | undefined {
  try {
    return statement.get() ?? undefined;
  } catch (error) {
    if (error instanceof SQLiteError && error.code === "SQLITE_LOCKED") return undefined;
    throw error;
  }
}

function isSafeBeside(db: Database): boolean {
  const { version } = db.query("SELECT sqlite_version() AS version").get() as { version: string };
  return Bun.semver.order(version, LEAST_SQLITE) >= 0;
}
