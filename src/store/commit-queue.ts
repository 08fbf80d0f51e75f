import type { Statement } from "bun:sqlite";
import { lockedFault } from "../protocol/storage-fault.ts";
import { namingFile } from "./database.ts";
import { lazyStatement } from "./lazy-statement.ts";
import { isLocked, LOCKED_RETRY_MS, LOCKED_WAIT_MS } from "./locked-database.ts";
import { OutgrownError, type OwnDatabase } from "./own-database.ts";

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
  /** The same for a batch of nothing but notes, from which nothing follows. */
  commitNotes(makeDurable: () => void): void;
  /** About how long `commit` will take by what the batch has done so far: the more, the longer the batch may grow. */
  owedMs?(): number;
  /** COMMIT (or the batch's own SQL) failed: all in-memory state of the batch must be forgotten. */
  onFailure(error: unknown): void;
}

type Priority = "local" | "background";

/**
 * What a write is when it becomes large, which costs quadratic time behind other writes of its batch (`placeOf`). `anew`: it is
 * taken back, and run anew as the first of the next batch, so that it may be run twice and what it leaves in memory has its
 * undo. `first`: it always begins a batch. `slice`: it sees to it that it stays small.
 */
type Growth = "anew" | "first" | "slice";

interface Entry {
  run: (scope: WriteScope) => unknown;
  growth: Growth;
  isNote: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

interface Savepoint {
  leave(): void;
  comeBack(): void;
}

/** A batch ends after this long even if more waits, so that reads get their turn. */
const SLICE_MS = 8;
/** What is paid once a batch is shared by writes that take as long, up to this. */
const MAX_SHARED_MS = 250;

/** A write behind others of its batch that runs more statements than this is large. A page of 500 records runs about 1,000. */
const SMALL_RUNS = 2_500;

/** Turns of the event loop that a batch waits at most while writes keep coming in. */
const GATHER_TURNS = 3;

/**
 * Group commit (CHANGE-10): everything enqueued in one turn of the event loop runs in one transaction, or in several where that takes
 * longer than `SLICE_MS`, in its order. No promise settles before COMMIT has returned (fsync with durability `full`). A write that
 * throws is rolled back alone. Local writes go before `background` ones (changes of others).
 */
export interface CommitQueue {
  /** `priority` is local unless told, `growth` anew for local writes and slice for others. */
  enqueue<T>(run: (scope: WriteScope) => T, priority?: Priority, growth?: Growth): Promise<T>;
  /** A local write that brings neither changes nor records, only what is noted beside them. */
  note<T>(run: (scope: WriteScope) => T): Promise<T>;
  /** Resolves when nothing is queued. */
  idle(): Promise<void>;
  /** Whether later writes are refused. */
  closing(): boolean;
  /** Refuses later writes; what is queued still commits. */
  close(): Promise<void>;
}

export function createCommitQueue(
  db: OwnDatabase,
  hooks: CommitQueueHooks,
  { lockedWaitMs = LOCKED_WAIT_MS, smallRuns = SMALL_RUNS }: { lockedWaitMs?: number; smallRuns?: number } = {},
): CommitQueue {
  const local: Entry[] = [];
  const background: Entry[] = [];
  /** Goes before all others: it had begun, or was taken out, when the batch before it ended. */
  let next: Entry | undefined;
  let scheduled = false;
  let closed = false;
  let idleWaiters: (() => void)[] = [];
  // Not by `query`, which counts them among the runs of a write.
  const statement = (sql: string) => lazyStatement(() => db.prepare(sql));
  const beginImmediate = statement("BEGIN IMMEDIATE");
  const rollback = statement("ROLLBACK");
  const changesEver = lazyStatement(() => db.prepare<{ n: number }, []>("SELECT total_changes() AS n"));
  const savepoint = statement("SAVEPOINT write_scope");
  const release = statement("RELEASE write_scope");
  const rollbackTo = statement("ROLLBACK TO write_scope");
  const savepointOfPart = statement("SAVEPOINT part_of_write");
  const releasePart = statement("RELEASE part_of_write");
  const rollbackToPart = statement("ROLLBACK TO part_of_write");
  const commit = statement("COMMIT");

  const waiting = (): number => local.length + background.length + (next ? 1 : 0);
  const takeNext = (): Entry | undefined => {
    const entry = next ?? local.shift() ?? background.shift();
    next = undefined;
    return entry;
  };
  const takeAll = (): Entry[] => [...(next ? [takeNext()!] : []), ...local.splice(0), ...background.splice(0)];

  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    gather(waiting(), GATHER_TURNS);
  };

  /** Waits for a turn in which nothing joined the batch: requests that are on their way share its fsync. */
  const gather = (seen: number, turnsLeft: number) => {
    setImmediate(() => {
      const now = waiting();
      if (turnsLeft === 0 || now === seen) drain();
      else gather(now, turnsLeft - 1);
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
    for (const entry of takeAll()) entry.reject(refused);
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
   * half as long again (docs/performance.md); and at the end of each statement it walks the list of the copies, so that what
   * a large write takes grows with the square of its size.
   */
  const placeOf = (set: Statement, drop: Statement, backTo: Statement): Savepoint => {
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

  /** Runs one write under its savepoint; answers how to settle it once the batch is durable, or undefined if it is too large. */
  const runOne = (entry: Entry): (() => void) | undefined => {
    const undos: (() => void)[] = [];
    const place = placeOf(savepoint, release, rollbackTo);
    const takeBack = () => {
      db.runsLeft = Number.POSITIVE_INFINITY;
      place.comeBack();
      for (const undo of undos.reverse()) undo();
    };
    if (!isFirst && entry.growth === "anew") db.runsLeft = smallRuns;
    try {
      const scope = scopeOf(undos);
      hooks.began?.(scope);
      const result = entry.run(scope);
      if (db.runsLeft < 0) throw new OutgrownError(); // whoever caught the first
      place.leave();
      return () => entry.resolve(result);
    } catch (error) {
      const outgrown = db.runsLeft < 0;
      takeBack();
      if (outgrown) return undefined;
      return error instanceof RollBackWith ? () => entry.resolve(error.result) : () => entry.reject(error);
    } finally {
      db.runsLeft = Number.POSITIVE_INFINITY;
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
      else fail(takeAll(), error);
      return;
    }
    lockedSinceMs = undefined;
    let isDurable = false;
    try {
      const until = performance.now() + SLICE_MS;
      const isOver = () => performance.now() - until >= Math.min(hooks.owedMs?.() ?? 0, MAX_SHARED_MS);
      do {
        const entry = takeNext();
        if (!entry) break;
        isFirst = taken.length === 0;
        taken.push(entry);
        const settle = !isFirst && entry.growth === "first" ? undefined : runOne(entry);
        if (!settle) {
          next = taken.pop();
          break;
        }
        settled.push(settle);
      } while (!isOver());
      const end = taken.every(({ isNote }) => isNote) ? hooks.commitNotes : hooks.commit;
      end(() => {
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
    if (waiting() > 0) schedule();
    else {
      const waiters = idleWaiters;
      idleWaiters = [];
      for (const waiter of waiters) waiter();
    }
  };

  const idle = () => (scheduled ? new Promise<void>((resolve) => idleWaiters.push(resolve)) : Promise.resolve());

  const join = <T>(run: (scope: WriteScope) => T, how: Pick<Entry, "growth" | "isNote">, line: Entry[]) =>
    new Promise<T>((resolve, reject) => {
      if (closed) return reject(new Error("the commit queue is closed"));
      const { growth, isNote } = how;
      line.push({ run, growth, isNote, resolve: resolve as (value: unknown) => void, reject });
      schedule();
    });

  return {
    enqueue: (run, priority = "local", growth = priority === "local" ? "anew" : "slice") =>
      join(run, { growth, isNote: false }, priority === "local" ? local : background),
    note: (run) => join(run, { growth: "anew", isNote: true }, local),
    idle,
    closing: () => closed,
    close: async () => {
      closed = true;
      await idle();
    },
  };
}
