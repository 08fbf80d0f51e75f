/**
 * Work that comes in pieces from several sides at once: one piece in each turn of the event loop, and no more than half of its
 * time, so that all else has its share.
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
const MOST_OWED_MS = 2;

export function createTurns(elapsedMs: () => number = () => performance.now()): Turns {
  const waiting: (() => void)[] = [];
  let participants = 0;
  let scheduled = false;
  /** How long pieces have taken for which the loop was not left to others as long since. */
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
      owedMs = Math.min(MOST_OWED_MS, owedMs + endedMs - startedMs);
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
