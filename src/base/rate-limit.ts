import type { Clock } from "./clock.ts";

export interface RateLimit {
  /** Takes `cost` from a key's bucket: 0 when it had that much, else the milliseconds until it will. */
  take(key: string, cost?: number): number;
}

/** Keys in memory: one that is forgotten begins with a full bucket, as it would have by then. */
const MAX_KEYS = 100_000;

/** A bucket a key that holds `burst` and gains `perSecond`. Bounded in memory, whoever makes up keys. */
export function createRateLimit(clock: Clock, { perSecond, burst }: { perSecond: number; burst: number }): RateLimit {
  const bucketByKey = new Map<string, { level: number; atMs: number }>();

  return {
    take(key, cost = 1) {
      const nowMs = clock.nowMs();
      const known = bucketByKey.get(key);
      const gained = known ? ((nowMs - known.atMs) / 1000) * perSecond : 0;
      const level = known ? Math.min(burst, known.level + Math.max(0, gained)) : burst;
      bucketByKey.delete(key); // put back as the youngest
      if (bucketByKey.size >= MAX_KEYS) bucketByKey.delete(bucketByKey.keys().next().value!);
      const enough = level >= cost;
      bucketByKey.set(key, { level: enough ? level - cost : level, atMs: nowMs });
      return enough ? 0 : Math.ceil(((cost - level) / perSecond) * 1000);
    },
  };
}
