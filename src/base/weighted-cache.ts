/**
 * Values by key; it keeps the most recently used ones up to a total weight. The newest always stays, however heavy it is.
 */
export interface WeightedCache<V> {
  get(key: string): V | undefined;
  /** Stores a value for the key and replaces the previous one. */
  keep(key: string, value: V, weight: number): void;
  /** Drops every key that begins with the prefix. */
  dropPrefix(prefix: string): void;
}

export function createWeightedCache<V>(limit: number): WeightedCache<V> {
  // A Map iterates in the order of insertion, so its first key is the least recently used.
  const entries = new Map<string, { value: V; weight: number }>();
  let total = 0;

  const forget = (key: string) => {
    total -= entries.get(key)?.weight ?? 0;
    entries.delete(key);
  };

  return {
    get(key) {
      const found = entries.get(key);
      if (!found) return undefined;
      entries.delete(key);
      entries.set(key, found);
      return found.value;
    },
    keep(key, value, weight) {
      forget(key);
      entries.set(key, { value, weight });
      total += weight;
      for (const oldest of entries.keys()) {
        if (total <= limit || oldest === key) return;
        forget(oldest);
      }
    },
    dropPrefix(prefix) {
      for (const key of [...entries.keys()]) if (key.startsWith(prefix)) forget(key);
    },
  };
}
