/**
 * How long pieces of work that may come in any number hold the event loop in one of its turns; the others wait for the next, so
 * that whatever else waits goes on in between. Before a piece:
 *
 *     while (budget.isSpent()) await budget.nextTurn();
 *
 * The piece begins where this was found, and those that wait go on in their order.
 */
export interface LoopBudget {
  /** Whether the pieces of this turn have had their time. */
  isSpent(): boolean;
  nextTurn(): Promise<void>;
}

/** `turnMs` counts from the first piece of a turn on. */
export function createLoopBudget(turnMs: number): LoopBudget {
  /** When the first piece of this turn began. */
  let begunAt: number | undefined;
  let turn: Promise<void> | undefined;
  const nextTurn = (): Promise<void> => {
    turn ??= new Promise((resolve) =>
      setImmediate(() => {
        turn = undefined;
        begunAt = undefined;
        resolve();
      }),
    );
    return turn;
  };
  return {
    isSpent() {
      if (begunAt !== undefined) return performance.now() - begunAt >= turnMs;
      begunAt = performance.now();
      void nextTurn();
      return false;
    },
    nextTurn,
  };
}
