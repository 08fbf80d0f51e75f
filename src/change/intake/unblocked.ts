import { equalBytes } from "../../base/bytes.ts";
import type { Arrival, ArrivalCursor, ArrivalTable } from "../../store/arrival-table.ts";
import type { WriteScope } from "../../store/commit-queue.ts";
import type { ParkedChange, ParkedTable } from "../../store/parked-table.ts";
import type { Unopened, UnopenedTable } from "../../store/unopened-table.ts";
import { isOfEnvironment } from "../fold/fold-fault.ts";
import { type Arrivals, isOpeningKind, type OpeningKind } from "./arrivals.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";

interface UnblockedDeps {
  /** What has come. */
  news: Arrivals;
  arrivals: ArrivalTable;
  parked: ParkedTable;
  unopened: UnopenedTable;
  /** Judges a parked change again. */
  retry(waiting: ParkedChange, scope: WriteScope): IngestVerdict;
  /** Tries to read the body of a change of the graph again. */
  openAgain(change: number, scope: WriteScope): void;
  /** One that cannot be taken in whatever comes: it waits no more. */
  giveUp(waiting: ParkedChange): void;
  /** The same for one of the graph: it does nothing. */
  giveUpOpening(change: number): void;
  /** Told of what threw. */
  onFailure?: ((error: unknown) => void) | undefined;
}

const UNOPENED_FIRST: ArrivalCursor = { waitFor: new Uint8Array(0), id: new Uint8Array(0), no: 0 };

/**
 * Tries the changes that waited for what has come, one a step: a hundred thousand of them may wait for one parent, or each
 * for the next. What is still to be tried is stored with what came.
 */
export function createUnblocked(deps: UnblockedDeps) {
  const { news, arrivals, parked, unopened } = deps;

  const attempt = (scope: WriteScope, run: () => void, giveUp: () => void): void => {
    try {
      scope.attempt(run);
    } catch (error) {
      if (isOfEnvironment(error)) throw error;
      deps.onFailure?.(error);
      giveUp();
    }
  };

  /** The next to be tried. Those that were, and still wait for the same, lie before the cursor. */
  const nextParked = ({ kind, what, after }: Arrival): ParkedChange | undefined =>
    what.length === 0 ? parked.nextOfKind(kind, after.waitFor, after.id) : parked.nextWaitingFor(kind, what, after.id);
  const nextUnopened = ({ what, after }: Arrival, kind: OpeningKind): Unopened | undefined =>
    what.length === 0
      ? unopened.nextOfKind(kind, after.waitFor, after.no ?? 0)
      : unopened.nextWaitingFor(kind, what, after.no ?? 0);

  const tryParked = (arrival: Arrival, waiting: ParkedChange, scope: WriteScope): void => {
    attempt(
      scope,
      () => {
        if (deps.retry(waiting, scope).kind === "known") parked.drop(waiting.id);
      },
      () => deps.giveUp(waiting),
    );
    const left = parked.get(waiting.id);
    if (left?.waitKind === waiting.waitKind && equalBytes(left.waitFor, waiting.waitFor))
      arrivals.moveOn(arrival, { waitFor: waiting.waitFor, id: waiting.id, no: null });
  };

  const tryUnopened = (arrival: Arrival, waiting: Unopened, scope: WriteScope): void => {
    attempt(
      scope,
      () => deps.openAgain(waiting.change, scope),
      () => deps.giveUpOpening(waiting.change),
    );
    const left = unopened.get(waiting.change);
    if (left?.waitKind === waiting.waitKind && equalBytes(left.waitFor, waiting.waitFor))
      arrivals.moveOn(arrival, { ...arrival.after, waitFor: waiting.waitFor, no: waiting.change });
  };

  return {
    /** Tries one change, and notes what it settles. Answers false when there was none to try. */
    step(scope: WriteScope): boolean {
      if (!news.due()) return false;
      news.dueAfterRollback(scope);
      const arrival = arrivals.first();
      if (!arrival) {
        news.done();
        return false;
      }
      const { kind } = arrival;
      const waiting = arrival.after.no === null ? nextParked(arrival) : undefined;
      if (waiting) tryParked(arrival, waiting, scope);
      else if (!isOpeningKind(kind)) arrivals.drop(arrival);
      else if (arrival.after.no === null) arrivals.moveOn(arrival, UNOPENED_FIRST);
      else {
        const next = nextUnopened(arrival, kind);
        if (next) tryUnopened(arrival, next, scope);
        else arrivals.drop(arrival);
      }
      return true;
    },
  };
}
