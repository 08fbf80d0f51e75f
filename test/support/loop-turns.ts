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
