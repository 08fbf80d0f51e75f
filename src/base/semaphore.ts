/** Runs a limited number of works at once; the others wait and run in the order they came. */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>;

export function createSemaphore(atOnce: number): Semaphore {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    // A work that ends hands its place to the next, so that no newcomer overtakes those that wait.
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
