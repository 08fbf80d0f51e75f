import { lockedFault } from "../../protocol/storage-fault.ts";
import { namingFile } from "../database/database.ts";
import { isLocked, LOCKED_RETRY_MS, LOCKED_WAIT_MS } from "../database/locked-database.ts";
import { OutgrownError, type OwnDatabase } from "../database/own-database.ts";
import { createBatchTransaction } from "./batch-transaction.ts";

/** What a write may do in its transaction besides SQL: undo its in-memory effects. */
export interface WriteScope {
  /** Runs, newest first, if this write is taken back, alone or with its batch, or its batch fails. */
  onRollback(undo: () => void): void;
  /** Runs a part of this write that is undone alone when it throws; the error goes on to the caller. */
  attempt<T>(part: () => T): T;
}

/** Thrown by a write to be taken back and still answer its caller: nothing was worth keeping. */
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
  /** A write has run: what it calls for may be enqueued now, and is part of the batch where there is time. */
  ran?(): void;
  /**
   * In the transaction, after the last write: does what is written once a batch, then calls `makeDurable`, which is COMMIT and
   * the answers to those who wrote, then whatever follows from a batch that is durable.
   */
  commit(makeDurable: () => void): void;
  /** The same for a batch of nothing but notes, from which nothing follows. */
  commitNotes(makeDurable: () => void): void;
  /** About how long `commit` will take by what the batch has done so far: the more, the longer the batch may grow. */
  owedMs?(): number;
  /** COMMIT (or the batch's own SQL) failed, and its writes were undone: all other in-memory state of the batch must be forgotten. */
  onFailure(error: unknown): void;
}

type Priority = "local" | "background";

/**
 * Whether a write can be run more than once, and what it is when it becomes large, which delays the others of its batch. `anew`: it
 * can, and what it leaves in memory has its undo; large behind others it is taken back, and run as the first of the next batch.
 * `first` and `slice` cannot: the one always begins a batch, the other sees to it that it stays small.
 */
type Growth = "anew" | "first" | "slice";

interface Entry {
  run: (scope: WriteScope) => unknown;
  growth: Growth;
  isNote: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** A batch ends after this long even if more waits, so that reads get their turn. */
const SLICE_MS = 8;
/** What is paid once a batch is shared by writes that take as long, up to this. */
const MAX_SHARED_MS = 250;

/** A write behind others of its batch that runs more statements than this is large. A page of 500 records runs about 1,000. */
const SMALL_RUNS = 2_500;

/** So many batches have a savepoint for each write behind one that threw, its own run anew among them: others like it may follow. */
const CAREFUL_BATCHES = 64;

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
  {
    lockedWaitMs = LOCKED_WAIT_MS,
    smallRuns = SMALL_RUNS,
    carefulFor = CAREFUL_BATCHES,
  }: { lockedWaitMs?: number; smallRuns?: number; carefulFor?: number } = {},
): CommitQueue {
  const local: Entry[] = [];
  const background: Entry[] = [];
  /** Go before all others: they had begun, or were taken out, when the batch before them ended. */
  const ahead: Entry[] = [];
  let scheduled = false;
  let closed = false;
  let idleWaiters: (() => void)[] = [];
  const transaction = createBatchTransaction(db);

  const waiting = (): number => ahead.length + local.length + background.length;
  const takeNext = (): Entry | undefined => ahead.shift() ?? local.shift() ?? background.shift();
  const takeAll = (): Entry[] => [...ahead.splice(0), ...local.splice(0), ...background.splice(0)];

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

  /** What has run of the batch: all of it ends with COMMIT, or is run anew. */
  let taken: Entry[] = [];
  let settled: (() => void)[] = [];
  let undos: (() => void)[] = [];
  /** Whether all that has run of the batch can be run more than once. */
  let canRepeat = true;
  let carefulBatches = 0;
  const isFirst = (): boolean => taken.length === 1;

  const clearBatch = (): void => {
    taken = [];
    settled = [];
    undos = [];
    canRepeat = true;
  };

  const undoTo = (kept: number): void => {
    for (const undo of undos.splice(kept).reverse()) undo();
  };

  const createScope = (): WriteScope => ({
    onRollback: (undo) => void undos.push(undo),
    attempt(part) {
      const before = undos.length;
      hooks.began?.(this);
      const savepoint = transaction.partBegins(isFirst());
      try {
        const result = part();
        savepoint.leave();
        return result;
      } catch (error) {
        savepoint.comeBack();
        undoTo(before);
        throw error;
      }
    },
  });

  /** The write taken last is to begin the next batch. */
  const leaveForNext = (): void => void ahead.unshift(taken.pop()!);

  /** Everything that ran in this batch is taken back and waits in front, to be run again. */
  const repeatBatch = (): void => {
    transaction.beginAnew();
    undoTo(0);
    ahead.unshift(...taken);
    clearBatch();
  };

  /**
   * Runs one write, the last of those taken. Where it and all before it can be run more than once it has no savepoint, which would
   * be 2 % of what a write takes. When it throws, the batch is run anew, with one for each; when it becomes large, up to it. Answers
   * whether the batch can go on.
   */
  const runOne = (entry: Entry): boolean => {
    const isBehind = !isFirst();
    if (isBehind && entry.growth === "first") {
      leaveForNext();
      return false;
    }
    canRepeat &&= entry.growth === "anew";
    const savepoint = isBehind && canRepeat && carefulBatches === 0 ? undefined : transaction.writeBegins(!isBehind);
    const before = undos.length;
    if (isBehind && entry.growth === "anew") db.runsLeft = smallRuns;
    try {
      const scope = createScope();
      hooks.began?.(scope);
      const result = entry.run(scope);
      if (db.runsLeft < 0) throw new OutgrownError(); // whoever caught the first
      savepoint?.leave();
      settled.push(() => entry.resolve(result));
      return true;
    } catch (error) {
      const isOutgrown = db.runsLeft < 0;
      db.runsLeft = Number.POSITIVE_INFINITY;
      if (isOutgrown) entry.growth = "first";
      if (!savepoint) {
        if (!isOutgrown) carefulBatches = carefulFor;
        repeatBatch();
        return true;
      }
      savepoint.comeBack();
      undoTo(before);
      if (isOutgrown) {
        leaveForNext();
        return false;
      }
      settled.push(error instanceof RollBackWith ? () => entry.resolve(error.result) : () => entry.reject(error));
      return true;
    } finally {
      db.runsLeft = Number.POSITIVE_INFINITY;
    }
  };

  const drain = () => {
    scheduled = false;
    clearBatch();
    try {
      transaction.begin();
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
        taken.push(entry);
        if (!runOne(entry)) break;
        hooks.ran?.();
      } while (taken.length === 0 || !isOver());
      if (carefulBatches > 0) carefulBatches--;
      const end = taken.every(({ isNote }) => isNote) ? hooks.commitNotes : hooks.commit;
      end(() => {
        transaction.commit();
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

  const fail = (refused: readonly Entry[], error: unknown) => {
    if (db.inTransaction) db.exec("ROLLBACK");
    undoTo(0);
    hooks.onFailure(error);
    for (const entry of refused) entry.reject(error);
    finish();
  };

  const finish = () => {
    clearBatch();
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
    note: (run) => join(run, { growth: "slice", isNote: true }, local),
    idle,
    closing: () => closed,
    close: async () => {
      closed = true;
      await idle();
    },
  };
}
