import type { Database } from "bun:sqlite";
import { lockedFault } from "../../protocol/storage-fault.ts";
import { namingFile } from "../database/database.ts";
import { isLocked, LOCKED_RETRY_MS, LOCKED_WAIT_MS } from "../database/locked-database.ts";

interface WaitingWritesOptions {
  /** Whose database it is, in words. */
  whose: string;
  lockedWaitMs?: number;
}

/**
 * Writes to a small database, each in a transaction of its own that has begun and ended before the call returns, unless
 * another program has the database locked. Then they wait, in their order, and the loop goes on (STORE-4).
 */
export interface WaitingWrites {
  /** Errors: `server.unavailable` when it has waited for long enough; then it is never done. */
  write<T>(run: () => T): Promise<T>;
  /** For what nobody waits for: it is tried until it is done, or has waited for long enough when these writes are closed. */
  writeInTime<T>(run: () => T): Promise<T>;
  /** Refuses later writes; resolves when none waits. */
  close(): Promise<void>;
}

interface Entry {
  /** Answers whether it was done, well or not; false when the database is locked. */
  attempt(): boolean;
  refuse(error: unknown): void;
  untilMs: number;
}

/** `db` waits for no lock itself (`busy_timeout` is 0). */
export function createWaitingWrites(
  db: Database,
  { whose, lockedWaitMs = LOCKED_WAIT_MS }: WaitingWritesOptions,
): WaitingWrites {
  const waiting: Entry[] = [];
  let lastLock: unknown;
  let closed = false;
  const idleWaiters: (() => void)[] = [];

  const attempt = (run: () => void): boolean => {
    try {
      db.transaction(run).immediate();
      return true;
    } catch (error) {
      if (!isLocked(error)) throw error;
      lastLock = error;
      return false;
    }
  };

  const drain = (): void => {
    while (waiting[0]?.attempt()) waiting.shift();
    const nowMs = performance.now();
    for (const entry of [...waiting]) {
      if (entry.untilMs > nowMs) continue;
      waiting.splice(waiting.indexOf(entry), 1);
      entry.refuse(lockedFault(whose, namingFile(db.filename, lastLock)));
    }
    if (waiting.length > 0) setTimeout(drain, LOCKED_RETRY_MS);
    else for (const settle of idleWaiters.splice(0)) settle();
  };

  const enqueue = <T>(run: () => T, untilMs: number): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (closed) return reject(new Error("the database is closed"));
      const entry: Entry = {
        untilMs,
        refuse: reject,
        attempt() {
          let result: T;
          try {
            if (!attempt(() => (result = run()))) return false;
            resolve(result!);
          } catch (error) {
            reject(error);
          }
          return true;
        },
      };
      if (waiting.length === 0 && entry.attempt()) return;
      if (waiting.push(entry) === 1) setTimeout(drain, LOCKED_RETRY_MS);
    });

  return {
    write: (run) => enqueue(run, performance.now() + lockedWaitMs),
    writeInTime: (run) => enqueue(run, Number.POSITIVE_INFINITY),
    close() {
      closed = true;
      const untilMs = performance.now() + lockedWaitMs;
      for (const entry of waiting) entry.untilMs = Math.min(entry.untilMs, untilMs);
      return waiting.length === 0 ? Promise.resolve() : new Promise((settle) => void idleWaiters.push(settle));
    },
  };
}
