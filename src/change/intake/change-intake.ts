import { type CommitQueue, RollBackWith, type WriteScope } from "../../store/commit/commit-queue.ts";
import { isOfEnvironment } from "../fold/fold-fault.ts";
import type { Unblocked } from "../graph/unblocked.ts";
import type { ChangeChecker } from "./change-checker.ts";
import type { Ingest } from "./ingest.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";

/** A slice ends after this long, but for the change it is at. */
const SLICE_MS = 4;
/** How much of a slice goes at most to changes that were waiting here, while others come in. */
const UNBLOCKED_MS = 2;
/** A slice ends after so many changes, however quick they were. */
const SLICE_CHANGES = 128;
/**
 * Fewer are verified where they are written: sending them to another thread, which may have to start first, is not worth
 * it.
 */
const CHECK_FROM = 100;
/** What is verified at once: the first of a batch are written while the next are verified. */
const CHECK_CHANGES = 48;
const CHECK_BYTES = 256 << 10;
/** Changes of one batch that are verified and wait to be written. */
const AHEAD = 2000;

interface Incoming {
  readonly bytes: Uint8Array;
  readonly checked: Uint8Array | undefined;
  readonly resolve: (verdict: IngestVerdict) => void;
  readonly reject: (error: unknown) => void;
  /** Something threw while it was taken in alone, and this device was not the cause. */
  isFaulty: boolean;
}

interface IntakeDeps {
  queue: CommitQueue;
  ingest: Pick<Ingest, "take" | "giveUp" | "tryUnblocked">;
  unblocked: Unblocked;
  /** Called with what was thrown. */
  onFailure?: ((error: unknown) => void) | undefined;
  checker?: ChangeChecker | undefined;
}

/**
 * Brings changes of others to the commit queue in their order, and the waiting changes that something has unblocked: in
 * slices of a few milliseconds, one write each. If something throws in a slice, the slice is undone and its changes are
 * taken in one by one. A change that throws again is given up, unless the device itself fails.
 */
export function createChangeIntake({ queue, ingest, unblocked, checker, onFailure }: IntakeDeps) {
  const incoming: Incoming[] = [];
  /** How many of the first are taken alone. */
  let alone = 0;
  let isQueued = false;
  let failed = false;
  const waiters: PromiseWithResolvers<void>[] = [];

  const takeUnblocked = (scope: WriteScope, until: number): number => {
    let steps = 0;
    while (steps < SLICE_CHANGES && performance.now() < until && ingest.tryUnblocked(scope)) steps++;
    return steps;
  };

  /** Moves changes from `incoming` to `taken`; answers their verdicts. */
  const takeIncoming = (scope: WriteScope, limit: number, until: number, taken: Incoming[]): IngestVerdict[] => {
    const verdicts: IngestVerdict[] = [];
    do {
      const next = incoming[taken.length];
      if (!next) break;
      taken.push(next);
      verdicts.push(next.isFaulty ? ingest.giveUp(next.bytes, scope) : ingest.take(next.bytes, scope, next.checked));
    } while (taken.length < limit && performance.now() < until);
    incoming.splice(0, taken.length);
    alone = Math.max(0, alone - taken.length);
    return verdicts;
  };

  const runSlice = (scope: WriteScope, taken: Incoming[]): IngestVerdict[] => {
    const now = performance.now();
    const steps = takeUnblocked(scope, now + (incoming.length > 0 ? UNBLOCKED_MS : SLICE_MS));
    if (incoming.length === 0) return [];
    try {
      return takeIncoming(scope, alone > 0 ? 1 : Math.max(1, SLICE_CHANGES - steps), now + SLICE_MS, taken);
    } catch (error) {
      const [first] = taken;
      if (taken.length === 1 && (first!.isFaulty || isOfEnvironment(error))) {
        incoming.shift();
        alone = Math.max(0, alone - 1);
        throw error;
      }
      if (taken.length === 1) {
        first!.isFaulty = true;
        onFailure?.(error);
      }
      alone = Math.max(alone, taken.length);
      taken.length = 0;
      throw new RollBackWith<IngestVerdict[]>([]);
    }
  };

  const isDue = (): boolean => incoming.length > 0 || (unblocked.due() && !failed);

  /** Queues a slice when there is something to do. */
  const start = (): void => {
    if (isQueued || !isDue()) return;
    if (queue.closing()) {
      stop();
      return;
    }
    isQueued = true;
    const taken: Incoming[] = [];
    let hasBegun = false;
    const run = (scope: WriteScope): IngestVerdict[] => {
      hasBegun = true;
      isQueued = false;
      try {
        return runSlice(scope, taken);
      } finally {
        start();
      }
    };
    queue.enqueue(run, "background").then(
      (verdicts) => {
        failed = false;
        for (const [index, one] of taken.entries()) one.resolve(verdicts[index]!);
        if (!unblocked.due()) for (const waiter of waiters.splice(0)) waiter.resolve();
        start();
      },
      (error: unknown) => {
        failed = true;
        if (!hasBegun) {
          // The database could not be written to, which was waited for: whatever was to be taken in is refused with it.
          isQueued = false;
          alone = 0;
          taken.push(...incoming.splice(0));
        }
        for (const one of taken) one.reject(error);
        for (const waiter of waiters.splice(0)) waiter.reject(error);
        start();
      },
    );
  };

  /** The queue takes no more. What has come is stored; changes that were not taken in will be offered again. */
  const stop = (): void => {
    const error = new Error("the commit queue is closed");
    for (const one of incoming.splice(0)) one.reject(error);
    for (const waiter of waiters.splice(0)) waiter.reject(error);
  };

  const add = (bytes: Uint8Array, checked: Uint8Array | undefined): Promise<IngestVerdict> =>
    new Promise((resolve, reject) => void incoming.push({ bytes, checked, resolve, reject, isFaulty: false }));

  const takePart = async (part: readonly Uint8Array[]): Promise<IngestVerdict[]> => {
    const isLarge = checker !== undefined && part.length >= CHECK_FROM;
    const groups = isLarge ? groupsOf(part) : [part];
    const checks = isLarge ? groups.map((group) => checker.check(group)) : [];
    const verdicts: Promise<IngestVerdict>[] = [];
    for (const [index, group] of groups.entries()) {
      const check = checks[index];
      const digests = check && (await check);
      for (const [at, bytes] of group.entries()) {
        const verdict = add(bytes, digests?.[at]);
        verdict.catch(() => {}); // it is awaited below
        verdicts.push(verdict);
      }
      start();
    }
    return Promise.all(verdicts);
  };

  /** Starts the work, even if it failed before. */
  const restart = (): void => {
    failed = false;
    start();
  };

  /** Resolves when every change that was unblocked has been tried. */
  const idle = (): Promise<void> => {
    if (!unblocked.due()) return Promise.resolve();
    const waiter = Promise.withResolvers<void>();
    waiters.push(waiter);
    restart();
    return waiter.promise;
  };

  restart(); // what was left when the space was closed

  return {
    /** Queues a slice if something has come that changes wait for, even if the last one failed. */
    goOn(): void {
      if (unblocked.takeNews()) restart();
    },
    idle,
    /** One verdict each. When it resolves, all are durable and the changes that waited for them have been tried. */
    async take(many: readonly Uint8Array[]): Promise<IngestVerdict[]> {
      const verdicts: IngestVerdict[] = [];
      for (let at = 0; at < many.length; at += AHEAD) verdicts.push(...(await takePart(many.slice(at, at + AHEAD))));
      await idle();
      return verdicts;
    },
  };
}

/** Parts to be verified each in one go. */
function groupsOf(many: readonly Uint8Array[]): Uint8Array[][] {
  const groups: Uint8Array[][] = [];
  let group: Uint8Array[] = [];
  let bytes = 0;
  for (const one of many) {
    if (group.length > 0 && (group.length >= CHECK_CHANGES || bytes + one.length > CHECK_BYTES)) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(one);
    bytes += one.length;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}
