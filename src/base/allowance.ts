import { createRateLimit } from "./rate-limit.ts";
import type { Timers } from "./timers.ts";

/**
 * Limits what each caller (`who`) may cost: `burst` at once, then `perSecond`. The function it returns resolves when
 * there is enough for `cost`. A cost above `burst` waits until the whole burst is available.
 */
export function createAllowance(
  timers: Timers,
  { perSecond, burst }: { perSecond: number; burst: number },
): (who: string, cost: number) => Promise<void> {
  const limit = createRateLimit({ nowMs: () => timers.elapsedMs() }, { perSecond, burst });
  return async (who, cost) => {
    for (;;) {
      const waitMs = limit.take(who, Math.min(cost, burst));
      if (waitMs === 0) return;
      await timers.sleep(waitMs);
    }
  };
}
