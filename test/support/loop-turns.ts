/** Resolves in the next turn of the event loop, or after so many. */
export async function loopTurns(count = 1): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Counts turns of the event loop from now on; call it for their number, and to stop counting. */
export function countTurns(): () => number {
  let turns = 0;
  let next = setImmediate(function tick() {
    turns++;
    next = setImmediate(tick);
  });
  return () => {
    clearImmediate(next);
    return turns;
  };
}
