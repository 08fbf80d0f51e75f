import { createSemaphore, type Semaphore } from "./semaphore.ts";

/** Runs works of one key one after the other, in the order they came; those of different keys do not wait for each other. */
export interface KeyedSemaphore<K> {
  run<T>(key: K, work: () => Promise<T>): Promise<T>;
  /** Resolves when everything that runs or waits now has ended, in success or failure. */
  idle(): Promise<void>;
}

export function createKeyedSemaphore<K>(): KeyedSemaphore<K> {
  const byKey = new Map<K, { readonly inTurn: Semaphore; works: number }>();
  return {
    async run(key, work) {
      const own = byKey.get(key) ?? { inTurn: createSemaphore(1), works: 0 };
      byKey.set(key, own);
      own.works++;
      try {
        return await own.inTurn(work);
      } finally {
        if (--own.works === 0) byKey.delete(key);
      }
    },
    async idle() {
      await Promise.all(Array.from(byKey.values(), ({ inTurn }) => inTurn(async () => {})));
    },
  };
}
