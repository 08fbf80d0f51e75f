/**
 * Work that comes in pieces from several sides at once: one piece in each turn of the event loop, and no more than a share of
 * its time, so that all else has the rest.
 */
export interface Turns {
  join(): Participant;
  /** Resolves when it is the caller's turn, whoever else takes part. */
  turn(): Promise<void>;
}

export interface Participant extends Disposable {
  /** Resolves when it is this one's turn; at once while nobody else takes part. */
  turn(): Promise<void> | undefined;
}

/** Less than this is not worth a timer. */
const TIMER_MS = 1;
/** What seems to have taken longer was not this work alone: a commit may have come between. */
const LONGEST_MS = 2;

interface TurnsOptions {
  /** How much of the loop's time the work may take at the moment, above 0 and below 1. Default: half. */
  readonly share?: () => number;
  readonly elapsedMs?: () => number;
}

export function createTurns({ share = () => 1 / 2, elapsedMs = () => performance.now() }: TurnsOptions = {}): Turns {
  const waiting: (() => void)[] = [];
  let participants = 0;
  let scheduled = false;
  /** How long the loop is still to be left to others for the pieces that there were. */
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
    // A piece is over by the next turn.
    setImmediate(() => {
      endedMs = elapsedMs();
      // What the loop is left for each millisecond that the piece took.
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
