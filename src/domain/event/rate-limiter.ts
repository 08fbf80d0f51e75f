import type { Clock } from "../../base/clock.ts";

/** Keys that are remembered; the longest silent one is forgotten first, and is then treated as new. */
const MAX_KEYS = 4096;

export interface RateLimiter {
  /** Whether one more is allowed for this key now; if so it is counted. */
  take(key: string): boolean;
}

/** A token bucket a key: `burst` at once, then `perSecond`. */
export function createRateLimiter(deps: { clock: Clock; perSecond: number; burst: number }): RateLimiter {
  const { clock, perSecond, burst } = deps;
  const buckets = new Map<string, { tokens: number; atMs: number }>();
  return {
    take(key) {
      const nowMs = clock.nowMs();
      const bucket = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
      // A clock that was set back gives nothing.
      const elapsedMs = Math.max(0, nowMs - bucket.atMs);
      const tokens = Math.min(burst, bucket.tokens + (elapsedMs * perSecond) / 1000);
      const allowed = tokens >= 1;
      buckets.delete(key);
      buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, atMs: nowMs });
      if (buckets.size > MAX_KEYS) buckets.delete(buckets.keys().next().value!);
      return allowed;
    },
  };
}
