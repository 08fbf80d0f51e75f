/** After this long everything else gets a turn. */
const SLICE_MS = 4;

/** Runs the steps of `work` in slices of a few milliseconds and resolves to what it returns. */
export async function inSlices<T>(work: Iterator<void, T>): Promise<T> {
  for (let until = performance.now() + SLICE_MS; ; ) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await new Promise((turn) => setImmediate(turn));
    until = performance.now() + SLICE_MS;
  }
}

/**
 * Runs the steps without a pause, for work that is known to be short or that must not be interrupted. Returns what it
 * returns.
 */
export function atOnce<T>(work: Iterator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
