/** Runs work when its turn comes: so much at once, the rest in the order it came. */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>;

export function createSemaphore(atOnce: number): Semaphore {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    // Whoever ends hands its place on, so nobody slips in before those who wait.
    if (running < atOnce) running++;
    else await new Promise<void>((begin) => waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
