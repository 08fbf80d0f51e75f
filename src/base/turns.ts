/**
 * Shares the event loop among work that comes in pieces from several sides: one piece per turn of the loop, and only a
 * share of its time, so that everything else has the rest.
 */
export interface Turns {
  join(): Participant;
  /** Resolves when it is the caller's turn, whoever else takes part. */
  turn(): Promise<void>;
}

export interface Participant extends Disposable {
  /**
   * Resolves when it is this participant's turn. Returns undefined while nobody else takes part: the turn is immediate.
   */
  turn(): Promise<void> | undefined;
}

/** A shorter wait is not worth a timer. */
const TIMER_MS = 1;
/** A piece that seems to have taken longer was not alone: a commit may have run in between. */
const LONGEST_MS = 2;

interface TurnsOptions {
  /** The share of the loop's time that the work may take at the moment, above 0 and below 1. Default: half. */
  readonly share?: () => number;
  readonly elapsedMs?: () => number;
}

export function createTurns({ share = () => 1 / 2, elapsedMs = () => performance.now() }: TurnsOptions = {}): Turns {
  const waiting: (() => void)[] = [];
  let participants = 0;
  let scheduled = false;
  /** For how long the loop must still be left to others, for the pieces so far. */
  let owedMs = 0;
  let endedMs = elapsedMs();

  const schedule = (): void => {
    scheduled = waiting.length > 0;
    if (!scheduled) return;
    const leftMs = owedMs - (elapsedMs() - endedMs);
    if (leftMs < TIMER_MS) setImmediate(next);
    else setTimeout(next, leftMs);
  };
  const next = (): void => {
    const startedMs = elapsedMs();
    owedMs = Math.max(0, owedMs - (startedMs - endedMs));
    waiting.shift()?.();
    // A piece is over by the next turn of the loop.
    setImmediate(() => {
      endedMs = elapsedMs();
      // How long the loop is left alone for each millisecond of a piece.
      const rest = 1 / share() - 1;
      owedMs = Math.min(rest * LONGEST_MS, owedMs + rest * (endedMs - startedMs));
      schedule();
    });
  };
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (!scheduled) schedule();
    });
  return {
    turn,
    join() {
      participants++;
      let joined = true;
      return {
        turn: () => (participants === 1 ? undefined : turn()),
        [Symbol.dispose]() {
          if (joined) participants--;
          joined = false;
        },
      };
    },
  };
}
