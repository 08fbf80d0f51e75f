import type { Clock } from "./clock.ts";

export interface RateLimit {
  /** Takes `cost` from a key's bucket. Returns 0 when the bucket held that much, else the milliseconds until it will. */
  take(key: string, cost?: number): number;
}

/** Maximum number of keys in memory. A forgotten key starts again with a full bucket. */
const MAX_KEYS = 100_000;

/**
 * Creates one bucket per key, which holds `burst` and gains `perSecond`. Memory stays bounded even when callers invent
 * keys.
 */
export function createRateLimit(clock: Clock, { perSecond, burst }: { perSecond: number; burst: number }): RateLimit {
  const bucketByKey = new Map<string, { level: number; atMs: number }>();

  return {
    take(key, cost = 1) {
      const nowMs = clock.nowMs();
      const known = bucketByKey.get(key);
      const gained = known ? ((nowMs - known.atMs) / 1000) * perSecond : 0;
      const level = known ? Math.min(burst, known.level + Math.max(0, gained)) : burst;
      bucketByKey.delete(key); // becomes the youngest again
      if (bucketByKey.size >= MAX_KEYS) bucketByKey.delete(bucketByKey.keys().next().value!);
      const enough = level >= cost;
      bucketByKey.set(key, { level: enough ? level - cost : level, atMs: nowMs });
      return enough ? 0 : Math.ceil(((cost - level) / perSecond) * 1000);
    },
  };
}
