/**
 * Runs work by key, one run per key at a time: a call gets a run that begins after it, and all calls during a run share
 * the next.
 */
export interface SingleFlight {
  run(key: string, work: () => Promise<void>): Promise<void>;
  running(key: string): boolean;
  /** Resolves when everything that runs or waits now has ended, in success or failure. */
  idle(): Promise<void>;
}

export function createSingleFlight(): SingleFlight {
  const running = new Map<string, Promise<void>>();
  const queued = new Map<string, Promise<void>>();
  return {
    run(key, work) {
      const begin = (): Promise<void> => {
        queued.delete(key);
        const done = work().finally(() => running.delete(key));
        running.set(key, done);
        return done;
      };
      const current = running.get(key);
      if (!current) return begin();
      let next = queued.get(key);
      if (!next) {
        next = current.then(begin, begin);
        queued.set(key, next);
      }
      return next;
    },
    running: (key) => running.has(key),
    async idle() {
      await Promise.allSettled([...running.values(), ...queued.values()]);
    },
  };
}
