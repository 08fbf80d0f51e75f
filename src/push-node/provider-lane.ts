import type { Clock } from "../base/clock.ts";
import type { Outcome } from "./provider.ts";

/** So many failures in a row, and a provider counts as unreachable: then one request at a time asks whether it still is. */
const UNREACHABLE_AFTER = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** How long a delivery waits that found no place. */
const FULL_MS = 250;

/** The way to one provider: how much may be under way on it, and when it is to be left alone. */
export interface ProviderLane {
  /** Milliseconds to wait before asking the provider for anything; 0: now. */
  waitMs(): number;
  /** Something is under way from now on, until `ended`. */
  begun(): void;
  ended(outcome: Outcome): void;
}

/** `places` is less than the node has in all, so that a provider that hangs leaves some to the others. */
export function createProviderLane(clock: Clock, places: number): ProviderLane {
  let running = 0;
  let failures = 0;
  let pausedUntilMs = 0;
  return {
    waitMs() {
      const pausedMs = pausedUntilMs - clock.nowMs();
      if (pausedMs > 0) return pausedMs;
      const open = failures >= UNREACHABLE_AFTER ? 1 : places;
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
