/** Everything else gets its turn after this long. */
const SLICE_MS = 4;

/** Goes through the steps of `work` in slices of a few milliseconds, and answers what it returns. */
export async function inSlices<T>(work: Iterator<void, T>): Promise<T> {
  for (let until = performance.now() + SLICE_MS; ; ) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await new Promise((turn) => setImmediate(turn));
    until = performance.now() + SLICE_MS;
  }
}

/** Goes through them without a pause: of work that is known to be short, or that nothing may come between. */
export function atOnce<T>(work: Iterator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
