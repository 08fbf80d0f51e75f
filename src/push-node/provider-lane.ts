import type { Clock } from "../base/clock.ts";
import type { Outcome } from "./provider.ts";

/** After this many failures in a row a provider counts as unreachable; then one request at a time tests it. */
const UNREACHABLE_AFTER = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** How long a delivery waits that found no free slot. */
const FULL_MS = 250;

/** Limits the deliveries under way to one provider, and says when to leave it alone. */
export interface ProviderLane {
  /** Milliseconds to wait before the next request to the provider; 0 means now. */
  waitMs(): number;
  /** Counts a request as under way until `ended`. */
  begun(): void;
  ended(outcome: Outcome): void;
}

/** Creates a lane. `slots` is less than the node's total, so that a provider that hangs leaves some to the others. */
export function createProviderLane(clock: Clock, slots: number): ProviderLane {
  let running = 0;
  let failures = 0;
  let pausedUntilMs = 0;
  return {
    waitMs() {
      const pausedMs = pausedUntilMs - clock.nowMs();
      if (pausedMs > 0) return pausedMs;
      const open = failures >= UNREACHABLE_AFTER ? 1 : slots;
      return running < open ? 0 : FULL_MS;
    },
    begun() {
      running++;
    },
    ended(outcome) {
      running--;
      if (outcome.kind !== "later") {
        failures = 0;
        return;
      }
      if (outcome.unreachable) failures++;
      const overMs = outcome.everyone
        ? (outcome.delayMs ?? FIRST_PAUSE_MS)
        : failures >= UNREACHABLE_AFTER
          ? Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - UNREACHABLE_AFTER, 16))
          : 0;
      pausedUntilMs = Math.max(pausedUntilMs, clock.nowMs() + overMs);
    },
  };
}
