/** Those who wait for news of something. All who wait for one thing are woken together. */
export function createWaiters<K>() {
  const waiting = new Map<K, PromiseWithResolvers<void>>();
  return {
    /** Resolves at the next `wake`. */
    whenWoken(key: K): Promise<void> {
      const known = waiting.get(key);
      if (known) return known.promise;
      const made = Promise.withResolvers<void>();
      waiting.set(key, made);
      return made.promise;
    },
    wake(key: K): void {
      waiting.get(key)?.resolve();
      waiting.delete(key);
    },
  };
}
