import { equalBytes } from "../../base/bytes.ts";
import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { ParkedChange, ParkedTable } from "../../store/tables/parked-table.ts";
import type { PendingBody, PendingBodyTable } from "../../store/tables/pending-body-table.ts";
import type { RetryCursor, UnblockedEntry, UnblockedTable } from "../../store/tables/unblocked-table.ts";
import { isOfEnvironment } from "../fold/fold-fault.ts";
import { isOpeningKind, type OpeningKind, type Unblocked } from "../graph/unblocked.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";

interface RetryDeps {
  unblocked: Unblocked;
  /** What has come that changes wait for, and how far these were tried. */
  table: UnblockedTable;
  parked: ParkedTable;
  pendingBodies: PendingBodyTable;
  /** Judges a parked change again. */
  retry(waiting: ParkedChange, scope: WriteScope): IngestVerdict;
  /** Tries to read the body of a change of the graph again. */
  openAgain(change: number, scope: WriteScope): void;
  /** Ends the waiting of a change that cannot be taken in, whatever comes. */
  giveUp(waiting: ParkedChange): void;
  /** The same for a change that is in the graph: it has no effect. */
  giveUpOpening(change: number): void;
  /** Called with what was thrown. */
  onFailure?: ((error: unknown) => void) | undefined;
}

const FIRST_BODY: RetryCursor = { waitFor: new Uint8Array(0), id: new Uint8Array(0), no: 0 };

/**
 * Tries the changes that waited for what has come, one a step, because a hundred thousand of them may wait for one parent,
 * or each for the next. What is still to be tried is stored with what came.
 */
export function createRetry(deps: RetryDeps) {
  const { unblocked, table, parked, pendingBodies } = deps;

  const attempt = (scope: WriteScope, run: () => void, giveUp: () => void): void => {
    try {
      scope.attempt(run);
    } catch (error) {
      if (isOfEnvironment(error)) throw error;
      deps.onFailure?.(error);
      giveUp();
    }
  };

  /** The next to be tried. Those that were tried, and still wait for the same, lie before the cursor. */
  const nextParked = ({ kind, what, after }: UnblockedEntry): ParkedChange | undefined =>
    what.length === 0 ? parked.nextOfKind(kind, after.waitFor, after.id) : parked.nextWaitingFor(kind, what, after.id);
  const nextBody = ({ what, after }: UnblockedEntry, kind: OpeningKind): PendingBody | undefined =>
    what.length === 0
      ? pendingBodies.nextOfKind(kind, after.waitFor, after.no ?? 0)
      : pendingBodies.nextWaitingFor(kind, what, after.no ?? 0);

  const tryParked = (entry: UnblockedEntry, waiting: ParkedChange, scope: WriteScope): void => {
    attempt(
      scope,
      () => {
        if (deps.retry(waiting, scope).kind === "known") parked.drop(waiting.id);
      },
      () => deps.giveUp(waiting),
    );
    const left = parked.get(waiting.id);
    if (left?.waitKind === waiting.waitKind && equalBytes(left.waitFor, waiting.waitFor))
      table.moveOn(entry, { waitFor: waiting.waitFor, id: waiting.id, no: null });
  };

  const tryBody = (entry: UnblockedEntry, waiting: PendingBody, scope: WriteScope): void => {
    attempt(
      scope,
      () => deps.openAgain(waiting.change, scope),
      () => deps.giveUpOpening(waiting.change),
    );
    const left = pendingBodies.get(waiting.change);
    if (left?.waitKind === waiting.waitKind && equalBytes(left.waitFor, waiting.waitFor))
      table.moveOn(entry, { ...entry.after, waitFor: waiting.waitFor, no: waiting.change });
  };

  return {
    /** Tries one change, and notes what it unblocks. Answers false when there was none to try. */
    step(scope: WriteScope): boolean {
      if (!unblocked.due()) return false;
      unblocked.dueAfterRollback(scope);
      const entry = table.first();
      if (!entry) {
        unblocked.done();
        return false;
      }
      const { kind } = entry;
      const waiting = entry.after.no === null ? nextParked(entry) : undefined;
      if (waiting) tryParked(entry, waiting, scope);
      else if (!isOpeningKind(kind)) table.drop(entry);
      else if (entry.after.no === null) table.moveOn(entry, FIRST_BODY);
      else {
        const next = nextBody(entry, kind);
        if (next) tryBody(entry, next, scope);
        else table.drop(entry);
      }
      return true;
    },
  };
}
