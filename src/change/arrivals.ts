import { equalBytes } from "../base/bytes.ts";
import type { Arrival, ArrivalTable } from "../store/arrival-table.ts";
import type { WriteScope } from "../store/commit-queue.ts";
import type { ParkedChange, ParkedTable, WaitKind } from "../store/parked-table.ts";
import type { IngestVerdict } from "./ingest.ts";

interface ArrivalsDeps {
  arrivals: ArrivalTable;
  parked: ParkedTable;
  /** Judges a parked change again. */
  retry(waiting: ParkedChange, scope: WriteScope): IngestVerdict;
  /** A parked change could not be tried; it stays where it is. */
  onFailure?: ((error: unknown) => void) | undefined;
}

const EVERYTHING = new Uint8Array(0);

/**
 * What has come that parked changes wait for, and the trying of those changes, one a step: a hundred thousand of them may
 * wait for one parent, or each for the next. What is still to be tried is stored with what came.
 */
export type Arrivals = ReturnType<typeof createArrivals>;

export function createArrivals({ arrivals, parked, retry, onFailure }: ArrivalsDeps) {
  /** False only when there is surely nothing to do. */
  let due = arrivals.first() !== undefined;

  const add = (kind: WaitKind, what: Uint8Array): void => {
    arrivals.add(kind, what);
    due = true;
  };

  /** The next change to be tried. Those that were, and still wait for the same, stay behind the cursor. */
  const nextOf = ({ kind, what, afterFor, afterId }: Arrival): ParkedChange | undefined =>
    what.length === 0 ? parked.nextOfKind(kind, afterFor, afterId) : parked.nextWaitingFor(kind, what, afterId);

  const tryOne = (waiting: ParkedChange, scope: WriteScope): IngestVerdict["kind"] => {
    try {
      return scope.attempt(() => retry(waiting, scope)).kind;
    } catch (error) {
      onFailure?.(error);
      return "parked";
    }
  };

  return {
    /** Something has come. It costs one look when nothing waits for it. */
    note(kind: WaitKind, what: Uint8Array, scope: WriteScope): void {
      if (!parked.anyWaitingFor(kind, what)) return;
      add(kind, what);
      scope.onRollback(() => {
        due = true;
      });
    },

    /** Whatever changes of this kind wait for may have come. */
    noteAll: (kind: WaitKind) => add(kind, EVERYTHING),

    /** Whether `step` may find something to do. */
    due: () => due,

    /** After a failed batch. */
    forgetBatch(): void {
      due = true;
    },

    /** Tries one parked change, and notes what it settles. Answers false when there was none to try. */
    step(scope: WriteScope): boolean {
      const arrival = due ? arrivals.first() : undefined;
      scope.onRollback(() => {
        due = true;
      });
      if (!arrival) {
        due = false;
        return false;
      }
      const waiting = nextOf(arrival);
      if (!waiting) {
        arrivals.drop(arrival);
        return true;
      }
      const verdict = tryOne(waiting, scope);
      if (verdict === "known") parked.drop(waiting.id);
      const left = parked.get(waiting.id);
      if (left && left.waitKind === waiting.waitKind && equalBytes(left.waitFor, waiting.waitFor))
        arrivals.moveOn(arrival, waiting.waitFor, waiting.id);
      return true;
    },
  };
}
