import type { Log } from "../../base/log.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { ChildLost } from "../../search/child-process.ts";
import type { IndexAnswer, IndexRequest } from "../../search/index/index-protocol.ts";

/** A search that takes longer is ended: twenty times what the dearest takes of a million texts that people wrote. */
const DEADLINE_MS = 10_000;
/** One for which a search of another space waits so long is ended sooner. */
const HOLD_UP_MS = 4_000;

type SearchRequest = Extract<IndexRequest, { kind: "search" }>;

export interface SearchTurnsDeps {
  /** Sends a request to the process of the indexes; rejects with ChildLost when that ends before it answers. */
  ask(request: SearchRequest): Promise<IndexAnswer>;
  /** Ends the process, whatever it is doing: nothing else interrupts a statement. */
  kill(): void;
  isStopped(): boolean;
  readonly log: Log;
  readonly deadlineMs?: number;
  readonly holdUpMs?: number;
}

interface Turn {
  readonly request: SearchRequest;
  readonly answered: PromiseWithResolvers<IndexAnswer>;
}

/** The search that the process has. */
interface Current {
  readonly spaceId: string;
  hasBegun: boolean;
  /** It took too long, and its process is being ended. */
  isLate: boolean;
  readonly timers: ReturnType<typeof setTimeout>[];
}

/**
 * Sends searches to the process of the indexes, one at a time, and ends one that takes too long (SEARCH-7). Spaces take turns, so
 * that one whose texts are dear to search holds up a search of another space for no more than one of its own.
 */
export function createSearchTurns(deps: SearchTurnsDeps) {
  const { ask, kill, isStopped, log, deadlineMs = DEADLINE_MS, holdUpMs = HOLD_UP_MS } = deps;
  /** The waiting searches by space; the space that waits longest for its turn comes first. */
  const waiting = new Map<string, Turn[]>();
  /** The space that had the last turn. */
  let served: string | undefined;
  let isWorking = false;
  let current: Current | undefined;

  const next = (): Turn | undefined => {
    const [first] = waiting.keys();
    // A space that has just had its turn comes after the others, whichever asked first.
    const spaceId = [...waiting.keys()].find((each) => each !== served) ?? first;
    if (spaceId === undefined) return undefined;
    served = spaceId;
    const turns = waiting.get(spaceId)!;
    const turn = turns.shift();
    waiting.delete(spaceId);
    if (turns.length > 0) waiting.set(spaceId, turns);
    return turn;
  };

  const work = async (): Promise<void> => {
    if (isWorking) return;
    isWorking = true;
    for (let turn = next(); turn; turn = next()) {
      const { request, answered } = turn;
      await take(request).then(answered.resolve, answered.reject);
    }
    isWorking = false;
  };

  const take = async (request: SearchRequest): Promise<IndexAnswer> => {
    const one: Current = { spaceId: request.files.spaceId, hasBegun: false, isLate: false, timers: [] };
    current = one;
    try {
      // A process that died meanwhile is not the search's fault, so the request is sent once more.
      return await ask(request).catch((error: unknown) => {
        disarm(one);
        if (!(error instanceof ChildLost) || one.isLate || isStopped()) throw error;
        return ask(request);
      });
    } catch (error) {
      throw error instanceof ChildLost ? lostAs(one) : error;
    } finally {
      disarm(one);
      current = undefined;
    }
  };

  const disarm = (one: Current): void => {
    for (const timer of one.timers.splice(0)) clearTimeout(timer);
    one.hasBegun = false;
  };

  const endAfter = (one: Current, ms: number): void => {
    const timer = setTimeout(() => {
      if (one.isLate) return;
      one.isLate = true;
      log.warn("a search took too long and is ended, with the process that searched", { spaceId: one.spaceId, ms });
      kill();
    }, ms);
    timer.unref();
    one.timers.push(timer);
  };

  /** Gives the search that the process has less time from when one of another space begins to wait for it. */
  const mindOthers = (): void => {
    const one = current;
    // The first timer is that of the deadline.
    if (!one?.hasBegun || one.timers.length > 1) return;
    if ([...waiting.keys()].some((spaceId) => spaceId !== one.spaceId)) endAfter(one, holdUpMs);
  };

  const lostAs = ({ isLate }: Current): Error => {
    if (isLate) return refusedAs("server.unavailable", undefined, refusal("search.took_long"));
    if (isStopped()) return svcError("server.unavailable");
    return refusedAs("server.unavailable", undefined, refusal("search.lost_twice"));
  };

  return {
    /** Rejects with server.unavailable when the search took too long, or its process died over it twice. */
    run(request: SearchRequest): Promise<IndexAnswer> {
      const answered = Promise.withResolvers<IndexAnswer>();
      const { spaceId } = request.files;
      const turns = waiting.get(spaceId);
      if (turns) turns.push({ request, answered });
      else waiting.set(spaceId, [{ request, answered }]);
      mindOthers();
      void work();
      return answered.promise;
    },
    /** The process has a space's index open and searches it from now on; what was done before counts for nobody. */
    begun(spaceId: string): void {
      if (current?.spaceId !== spaceId) return;
      disarm(current);
      current.hasBegun = true;
      endAfter(current, deadlineMs);
      mindOthers();
    },
  };
}
