import type { Database, Statement } from "bun:sqlite";
import { lockedFault } from "../protocol/storage-fault.ts";
import { namingFile } from "./database.ts";
import { isLocked, LOCKED_RETRY_MS, LOCKED_WAIT_MS } from "./locked-database.ts";

/** What a write may do in its transaction besides SQL: undo its in-memory effects, and act once it is durable. */
export interface WriteScope {
  /** Runs, newest first, if this write's savepoint is rolled back. */
  onRollback(undo: () => void): void;
  /** Runs a part of this write that is undone alone when it throws; the error goes on to the caller. */
  attempt<T>(part: () => T): T;
}

/** Thrown by a write to roll its savepoint back and still answer its caller: nothing was worth keeping. */
export class RollBackWith<T> extends Error {
  readonly result: T;
  constructor(result: T) {
    super("rolled back on purpose");
    this.result = result;
  }
}

export interface CommitQueueHooks {
  /** A write begins, or a part of one that may be undone alone. */
  began?(scope: WriteScope): void;
  /**
   * In the transaction, after the last write: does what is written once a batch, then calls `makeDurable`, which is COMMIT and
   * the answers to those who wrote, then whatever follows from a batch that is durable.
   */
  commit(makeDurable: () => void): void;
  /** About how long `commit` will take by what the batch has done so far: the more, the longer the batch may grow. */
  owedMs?(): number;
  /** COMMIT (or the batch's own SQL) failed: all in-memory state of the batch must be forgotten. */
  onFailure(error: unknown): void;
}

interface Entry {
  run: (scope: WriteScope) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

interface Place {
  leave(): void;
  comeBack(): void;
}

/** A batch ends after this long even if more waits, so that reads get their turn. */
const SLICE_MS = 8;
/** What is paid once a batch is shared by writes that take as long, up to this. */
const MAX_SHARED_MS = 250;

/** Turns of the event loop that a batch waits at most while writes keep coming in. */
const GATHER_TURNS = 3;

/**
 * Group commit: everything enqueued in one turn of the event loop runs in ONE transaction, and no promise settles before
 * COMMIT has returned (fsync with durability `full`). A write that throws is rolled back alone. Local writes go before
 * `background` ones (changes of others).
 */
export interface CommitQueue {
  enqueue<T>(run: (scope: WriteScope) => T, priority?: "local" | "background"): Promise<T>;
  /** Resolves when nothing is queued. */
  idle(): Promise<void>;
  /** Whether later writes are refused. */
  closing(): boolean;
  /** Refuses later writes; what is queued still commits. */
  close(): Promise<void>;
}

export function createCommitQueue(
  db: Database,
  hooks: CommitQueueHooks,
  { lockedWaitMs = LOCKED_WAIT_MS }: { lockedWaitMs?: number } = {},
): CommitQueue {
  const local: Entry[] = [];
  const background: Entry[] = [];
  let scheduled = false;
  let closed = false;
  let idleWaiters: (() => void)[] = [];
  const beginImmediate = db.query("BEGIN IMMEDIATE");
  const rollback = db.query("ROLLBACK");
  const changesEver = db.query<{ n: number }, []>("SELECT total_changes() AS n");
  const savepoint = db.query("SAVEPOINT write_scope");
  const release = db.query("RELEASE write_scope");
  const rollbackTo = db.query("ROLLBACK TO write_scope");
  const savepointOfPart = db.query("SAVEPOINT part_of_write");
  const releasePart = db.query("RELEASE part_of_write");
  const rollbackToPart = db.query("ROLLBACK TO part_of_write");
  const commit = db.query("COMMIT");

  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    gather(local.length + background.length, GATHER_TURNS);
  };

  /** Waits for a turn in which nothing joined the batch: requests that are on their way share its fsync. */
  const gather = (seen: number, turnsLeft: number) => {
    setImmediate(() => {
      const waiting = local.length + background.length;
      if (turnsLeft === 0 || waiting === seen) drain();
      else gather(waiting, turnsLeft - 1);
    });
  };

  /** Since when another program has kept the batch from beginning. */
  let lockedSinceMs: number | undefined;

  /** Nothing was begun: those that wait are tried again in a while, and the loop goes on meanwhile. */
  const waitForLock = (error: unknown) => {
    lockedSinceMs ??= performance.now();
    if (performance.now() - lockedSinceMs < lockedWaitMs) {
      scheduled = true;
      setTimeout(drain, LOCKED_RETRY_MS);
      return;
    }
    lockedSinceMs = undefined;
    const refused = lockedFault("this space's", namingFile(db.filename, error));
    for (const entry of [...local.splice(0), ...background.splice(0)]) entry.reject(refused);
    finish();
  };

  /** Of this connection, when the transaction began. */
  let changesAtBegin = 0;
  /** Whether the batch's first write is being run. */
  let isFirst = false;
  const begin = () => {
    beginImmediate.run();
    changesAtBegin = changesEver.get()!.n;
  };

  /**
   * A place that the transaction can come back to. Before its first change none need be kept: coming back is beginning
   * anew. A savepoint has SQLite copy every page that is changed after it, which made a page of records with an index take
   * half as long again (docs/performance.md).
   */
  const placeOf = (set: Statement, drop: Statement, backTo: Statement): Place => {
    if (isFirst && changesEver.get()!.n === changesAtBegin)
      return {
        leave: () => {},
        comeBack() {
          rollback.run();
          begin();
        },
      };
    set.run();
    return {
      leave: () => void drop.run(),
      comeBack() {
        backTo.run();
        drop.run();
      },
    };
  };

  const scopeOf = (undos: (() => void)[]): WriteScope => ({
    onRollback: (undo) => void undos.push(undo),
    attempt(part) {
      const before = undos.length;
      hooks.began?.(this);
      const place = placeOf(savepointOfPart, releasePart, rollbackToPart);
      try {
        const result = part();
        place.leave();
        return result;
      } catch (error) {
        place.comeBack();
        for (const undo of undos.splice(before).reverse()) undo();
        throw error;
      }
    },
  });

  /** Runs one write under its savepoint; answers how to settle it once the batch is durable. */
  const runOne = (entry: Entry): (() => void) => {
    const undos: (() => void)[] = [];
    const place = placeOf(savepoint, release, rollbackTo);
    try {
      const scope = scopeOf(undos);
      hooks.began?.(scope);
      const result = entry.run(scope);
      place.leave();
      return () => entry.resolve(result);
    } catch (error) {
      place.comeBack();
      for (const undo of undos.reverse()) undo();
      return error instanceof RollBackWith ? () => entry.resolve(error.result) : () => entry.reject(error);
    }
  };

  const drain = () => {
    scheduled = false;
    const settled: (() => void)[] = [];
    const taken: Entry[] = [];
    try {
      begin();
    } catch (error) {
      if (isLocked(error)) waitForLock(error);
      else fail([...local.splice(0), ...background.splice(0)], error);
      return;
    }
    lockedSinceMs = undefined;
    let isDurable = false;
    try {
      const until = performance.now() + SLICE_MS;
      const isOver = () => performance.now() - until >= Math.min(hooks.owedMs?.() ?? 0, MAX_SHARED_MS);
      do {
        const entry = local.shift() ?? background.shift();
        if (!entry) break;
        isFirst = taken.push(entry) === 1;
        settled.push(runOne(entry));
      } while (!isOver());
      hooks.commit(() => {
        commit.run();
        isDurable = true;
        for (const settle of settled) settle();
      });
    } catch (error) {
      // What comes after COMMIT is no reason to take back what was answered.
      if (isDurable) throw error;
      fail(taken, error);
      return;
    }
    finish();
  };

  const fail = (taken: readonly Entry[], error: unknown) => {
    if (db.inTransaction) db.exec("ROLLBACK");
    hooks.onFailure(error);
    for (const entry of taken) entry.reject(error);
    finish();
  };

  const finish = () => {
    if (local.length + background.length > 0) schedule();
    else {
      const waiters = idleWaiters;
      idleWaiters = [];
      for (const waiter of waiters) waiter();
    }
  };

  const idle = () => (scheduled ? new Promise<void>((resolve) => idleWaiters.push(resolve)) : Promise.resolve());

  return {
    enqueue: <T>(run: (scope: WriteScope) => T, priority: "local" | "background" = "local") =>
      new Promise<T>((resolve, reject) => {
        if (closed) return reject(new Error("the commit queue is closed"));
        (priority === "local" ? local : background).push({ run, resolve: resolve as (value: unknown) => void, reject });
        schedule();
      }),
    idle,
    closing: () => closed,
    close: async () => {
      closed = true;
      await idle();
    },
  };
}
