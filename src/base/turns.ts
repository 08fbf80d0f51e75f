/** Work that comes in pieces from several sides at once: one piece in each turn of the event loop, so that all else has its share. */
export interface Turns {
  join(): Participant;
}

export interface Participant extends Disposable {
  /** Resolves when it is this one's turn; at once while nobody else takes part. */
  turn(): Promise<void> | undefined;
}

export function createTurns(): Turns {
  const waiting: (() => void)[] = [];
  let participants = 0;
  let scheduled = false;
  const next = (): void => {
    const go = waiting.shift();
    scheduled = go !== undefined;
    if (!go) return;
    go();
    setImmediate(next);
  };
  return {
    join() {
      participants++;
      let joined = true;
      return {
        turn() {
          if (participants === 1) return undefined;
          return new Promise((resolve) => {
            waiting.push(resolve);
            if (scheduled) return;
            scheduled = true;
            setImmediate(next);
          });
        },
        [Symbol.dispose]() {
          if (joined) participants--;
          joined = false;
        },
      };
    },
  };
}
