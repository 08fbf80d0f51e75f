import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { createSemaphore } from "../base/semaphore.ts";
import { createSingleFlight } from "../base/single-flight.ts";
import type { Timers } from "../base/timers.ts";
import type { ProgressBook } from "./progress.ts";
import type { Resting } from "./resting.ts";
import type { Transport } from "./transport.ts";

/** Rounds that have a reason follow each other no faster than this, so that what comes together is fetched together. */
const ROUND_GAP_MS = 40;
/**
 * How many rounds that nobody asked for by name run at once. Each keeps its space open and has one request at a time with
 * every peer, and a peer serves a bounded number of requests.
 */
const ROUNDS_AT_ONCE = 8;

interface RoundSchedulerDeps {
  readonly book: ProgressBook;
  readonly resting: Resting;
  readonly transports: readonly Transport[];
  readonly clock: Clock;
  readonly log: Log;
  readonly timers: Timers;
  /** Time between rounds that have no reason. */
  readonly intervalMs: number;
  /** The account's own space. */
  readonly techId: SpaceId;
  /** Spaces that are kept in sync. */
  held(): SpaceId[];
  isHere(spaceId: SpaceId): boolean;
  /** One round with everybody who is reached, for one space. */
  round(spaceId: SpaceId): Promise<void>;
  /** Shows how far catching up has come while rounds are under way. */
  during<T>(rounds: () => Promise<T>): Promise<T>;
  notifyStatus(spaceId: SpaceId): void;
}

/** Decides when rounds take place: soon if there is a reason, otherwise at an interval; one at a time for each space. */
export function createRoundScheduler(deps: RoundSchedulerDeps) {
  const { book, resting, clock, log, timers } = deps;
  const rounds = createSingleFlight();
  const inTurn = createSemaphore(ROUNDS_AT_ONCE);
  const soonBySpace = new Map<SpaceId, () => void>();
  /** Rounds that wait for their turn; whoever asks for one meanwhile shares it. */
  const waiting = new Map<SpaceId, Promise<void>>();
  let cancelNext: (() => void) | undefined;
  let first: Promise<void> = Promise.resolve();
  let all: Promise<void> = Promise.resolve();
  let closed = false;

  /** One round that begins after this call; calls during a round share the next. */
  const round = (spaceId: SpaceId): Promise<void> => rounds.run(spaceId, () => deps.during(() => deps.round(spaceId)));

  /** A round that nobody asked for by name: it waits its turn, and its failure is logged. */
  const quietRound = (spaceId: SpaceId): Promise<void> => {
    const known = waiting.get(spaceId);
    if (known) return known;
    let begun = false;
    const done = inTurn(async () => {
      begun = true;
      waiting.delete(spaceId);
      try {
        if (!closed) await round(spaceId);
      } catch (error) {
        if (!closed && deps.isHere(spaceId)) log.warn("sync: a round failed", { err: error, spaceId });
      }
    });
    if (!begun) waiting.set(spaceId, done);
    return done;
  };

  /** A round that nobody waits for. */
  const soon = (spaceId: SpaceId): void => {
    if (closed || deps.transports.length === 0 || soonBySpace.has(spaceId)) return;
    const sinceMs = clock.nowMs() - (book.of(spaceId).lastRoundEndedMs ?? 0);
    const delayMs = Math.min(ROUND_GAP_MS, Math.max(0, ROUND_GAP_MS - sinceMs));
    soonBySpace.set(
      spaceId,
      timers.after(delayMs, () => {
        soonBySpace.delete(spaceId);
        void quietRound(spaceId);
      }),
    );
  };

  /** The account's own space comes first, because it says which other spaces there are; the others follow, newest first. */
  const roundOfAll = (): Promise<void> =>
    deps.during(async () => {
      await round(deps.techId);
      const known = deps.held();
      const still = await resting.among(known, deps.transports);
      for (const spaceId of still) deps.notifyStatus(spaceId);
      await Promise.all(known.filter((spaceId) => !still.has(spaceId)).map(quietRound));
    });

  const schedule = (): void => {
    if (closed) return;
    cancelNext = timers.after(deps.intervalMs, () => {
      all = roundOfAll()
        .catch((error: unknown) => {
          if (!closed) log.warn("sync: a round failed", { err: error });
        })
        .finally(schedule);
    });
  };

  return {
    round,
    soon,
    /** A round for every space, without waiting for the next regular one. */
    allSoon(): void {
      soon(deps.techId);
      for (const spaceId of deps.held()) soon(spaceId);
    },
    /** Begins the round of the boot pass; the regular ones follow, also when it fails. */
    start(): void {
      first = roundOfAll().finally(schedule);
      first.catch(() => undefined); // whoever awaits it is told
    },
    /** The round of the boot pass. Rejects as it does. */
    firstRound: (): Promise<void> => first,
    /** No round begins any more. */
    close(): void {
      closed = true;
      cancelNext?.();
      for (const cancel of soonBySpace.values()) cancel();
    },
    /** Resolves when all rounds that had begun have ended. */
    async ended(): Promise<void> {
      await all;
      await rounds.idle();
    },
  };
}
