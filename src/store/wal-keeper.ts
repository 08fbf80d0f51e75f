import type { Database } from "bun:sqlite";
import type { LogPosition, WalCheckpointer } from "./wal-checkpointer.ts";

/** Frames (pages of 4 KiB) after which the log is copied into the database. */
const CHECKPOINT_FRAMES = 4000;
/** So few left over are copied between two commits: only a log that is copied to its end begins anew. */
const FINISH_FRAMES = 400;
/** A log that a reader kept from being copied to its end is tried again after so many more. */
const RETRY_FRAMES = 500;
/** Should nobody else get to it, COMMIT itself copies from here on. */
const BACKSTOP_FRAMES = 4 * CHECKPOINT_FRAMES;
/** Each pass leaves what was written meanwhile; they get shorter. */
const MAX_PASSES = 4;
/**
 * The first SQLite that may be used so; an older one (the system's, on macOS) copies within COMMIT. It tells how long the log
 * is without copying anything, and a checkpoint beside a writer cannot damage the database (sqlite.org/wal.html, "The
 * WAL-Reset Bug").
 */
const LEAST_SQLITE = "3.51.3";

/** Keeps the write-ahead log of a database short without its writer having to stop for it. */
export interface WalKeeper {
  /** A transaction was committed. */
  committed(): void;
  /** Resolves when nothing is under way that has the database's file open. */
  settled(): Promise<void>;
}

const UNKEPT: WalKeeper = { committed: () => {}, settled: () => Promise.resolve() };

/**
 * The copying is done by another connection on a thread of its own, while this one goes on writing; `db` only copies the
 * few frames that came in meanwhile. A crash at any point leaves the log, which is read again. `onFault` hears of
 * checkpoints that failed. Without a checkpointer COMMIT copies, as `openDatabase` has set it.
 */
export function createWalKeeper(
  db: Database,
  path: string,
  checkpointer: WalCheckpointer | undefined,
  onFault: (error: unknown) => void,
): WalKeeper {
  if (!checkpointer || !isSafeBeside(db)) return UNKEPT;
  db.exec(`PRAGMA wal_autocheckpoint = ${BACKSTOP_FRAMES}`);
  const look = db.query<LogPosition, []>("PRAGMA wal_checkpoint(NOOP)");
  const finish = db.query<LogPosition, []>("PRAGMA wal_checkpoint(PASSIVE)");
  let running: Promise<void> | undefined;
  let lastLog = 0;
  let dueAt = CHECKPOINT_FRAMES;

  const shorten = async (): Promise<void> => {
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const copied = await checkpointer.run(path);
      const { log, checkpointed } = look.get()!;
      if (log - checkpointed <= FINISH_FRAMES) {
        finish.get();
        return;
      }
      // Somebody reads an older state: what came after it stays in the log until then.
      if (copied.checkpointed < copied.log) return;
    }
  };

  return {
    committed() {
      if (running) return;
      const { log } = look.get()!;
      if (log < lastLog) dueAt = CHECKPOINT_FRAMES;
      lastLog = log;
      if (log < dueAt) return;
      running = shorten()
        .catch(onFault)
        .finally(() => {
          running = undefined;
          dueAt = look.get()!.log + RETRY_FRAMES;
        });
    },
    settled: () => running ?? Promise.resolve(),
  };
}

function isSafeBeside(db: Database): boolean {
  const { version } = db.query("SELECT sqlite_version() AS version").get() as { version: string };
  return Bun.semver.order(version, LEAST_SQLITE) >= 0;
}
