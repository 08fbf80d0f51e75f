/**
 * Work on a long document that may be done a step at a time, so that other work goes on between: each `yield` ends a step,
 * which takes a few milliseconds.
 */
export type Steps<T> = Generator<void, T, void>;

/** How many blocks are a step's work. */
export const STEP_BLOCKS = 4096;

/** Whether a loop over blocks is to end a step at this one. */
export function endsStep(index: number): boolean {
  return index > 0 && index % STEP_BLOCKS === 0;
}

/** Does all steps in this turn of the loop. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Does each step in a turn of its own. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
