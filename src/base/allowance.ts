import { createRateLimit } from "./rate-limit.ts";
import type { Timers } from "./timers.ts";

/**
 * What somebody may cost: `burst` at once, then `perSecond`. Answers how to wait for one's turn; what costs more than there
 * ever is waits until there is all of it.
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
